-- +goose Up

-- Of a version in mode "observe": the version that refuses while this one holds; 0: none.
ALTER TABLE policies ADD COLUMN enforced BIGINT NOT NULL DEFAULT 0;

-- How often each policy of a version in mode "observe" would have refused.
CREATE TABLE policy_observations (
    tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    version   BIGINT NOT NULL,
    policy_id TEXT NOT NULL,
    refused   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, version, policy_id)
);

-- Refusals and some of the permits of the last days, with all that policies read, so that
-- a new text can be tried on them.
CREATE TABLE decisions (
    id        TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    at        BIGINT NOT NULL,
    actor_id  TEXT NOT NULL, -- a user or an API key
    decided   TEXT NOT NULL  -- JSON
);
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, at, id);
CREATE INDEX decisions_by_actor ON decisions (actor_id);
CREATE INDEX decisions_by_time ON decisions (at);
