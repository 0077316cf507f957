-- +goose Up

-- The last event of each trail that was deleted because it was too old. The chain is
-- verified from there on. A binary without this finds the events deleted.
ALTER TABLE audit_chains ADD COLUMN anchor BIGINT NOT NULL DEFAULT 0; -- its number; 0: none was deleted
ALTER TABLE audit_chains ADD COLUMN anchor_hash BYTEA;                -- its hash; NULL: it has none

-- One order over the events of all tenants, made after they are committed: see feed.go.
CREATE TABLE feed_state (
    id    BIGINT PRIMARY KEY, -- 1
    epoch TEXT NOT NULL,      -- random, another one after a restore; empty: nobody has read the feed yet
    last  BIGINT NOT NULL,    -- the last position
    trims BIGINT NOT NULL     -- how often events were deleted from the feed
);
INSERT INTO feed_state (id, epoch, last, trims) VALUES (1, '', 0, 0);
CREATE TABLE feed (
    pos       BIGINT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    after     BIGINT NOT NULL, -- events with a greater number,
    last      BIGINT NOT NULL  -- up to this one
);
CREATE INDEX feed_tenant ON feed (tenant_id, last);
-- How far each trail is in the feed.
CREATE TABLE feed_chains (
    tenant_id TEXT PRIMARY KEY,
    last      BIGINT NOT NULL
);
-- What a reader who is not beyond pos has missed since then.
CREATE TABLE feed_trims (
    trim BIGINT PRIMARY KEY,
    pos  BIGINT NOT NULL
);
