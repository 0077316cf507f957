-- +goose Up

-- The events of a tenant, and those of the installation, are chains: each
-- event has the number after the last one's, and its hash covers the last one's
-- hash. What is personal is covered by way of a salted digest, so that it can be
-- blanked later without breaking the chain. See chain.go.
ALTER TABLE events ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN salt BYTEA;   -- NULL: blanked
ALTER TABLE events ADD COLUMN digest BYTEA;
ALTER TABLE events ADD COLUMN hash BYTEA;   -- NULL: older than the chains

UPDATE events SET seq = n.seq
FROM (SELECT id, row_number() OVER (PARTITION BY tenant_id ORDER BY at, id) AS seq FROM events) n
WHERE n.id = events.id;

DROP INDEX events_tenant;
CREATE INDEX events_page ON events (tenant_id, seq);

-- The ends of the chains; the row is the lock under which one grows.
CREATE TABLE audit_chains (
    tenant_id TEXT PRIMARY KEY, -- empty: the installation
    origin    BIGINT NOT NULL,  -- seq of the last event that is older than the chain
    last      BIGINT NOT NULL,  -- seq of the last event
    head      BYTEA             -- its hash; NULL while there is none
);
INSERT INTO audit_chains (tenant_id, origin, last) SELECT tenant_id, max(seq), max(seq) FROM events GROUP BY tenant_id;
