-- +goose Up

-- DNS domains that tenants have proved, or are about to.
CREATE TABLE domains (
    id            TEXT PRIMARY KEY,
    tenant_id     TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    domain        TEXT NOT NULL, -- A-labels, lower case
    connection_id TEXT REFERENCES connections (id) ON DELETE SET NULL,
    status        TEXT NOT NULL, -- pending, verified, lapsed
    token         TEXT NOT NULL UNIQUE,
    created_at    BIGINT NOT NULL,
    verified_at   BIGINT,
    checked_at    BIGINT,
    missing_since BIGINT,
    lapsed_at     BIGINT,
    -- The operator has released it: only a proof makes it anybody's again.
    released      BOOLEAN NOT NULL DEFAULT FALSE,
    look_at       BIGINT, -- the next daily look; NULL: none, it is pending or released
    UNIQUE (tenant_id, domain)
);
-- One tenant holds a domain.
CREATE UNIQUE INDEX domains_holder ON domains (domain) WHERE status <> 'pending';
CREATE INDEX domains_page ON domains (tenant_id, created_at, id);
CREATE INDEX domains_connection ON domains (connection_id) WHERE connection_id IS NOT NULL;
CREATE INDEX domains_due ON domains (look_at) WHERE look_at IS NOT NULL;
