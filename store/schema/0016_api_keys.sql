-- +goose Up

-- Credentials of servers that belong to a tenant. Nodes of the version before ignore
-- them, and may destroy a tenant that has some.
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    tenant_id    TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    search       TEXT NOT NULL,   -- the name, letter case folded
    role         TEXT NOT NULL,
    permissions  TEXT NOT NULL,   -- sorted actions, separated by spaces
    status       TEXT NOT NULL,   -- active, disabled, revoked; expired once that is in the trail
    owner_id     TEXT NOT NULL,   -- a user, who may have left since
    created_by   TEXT NOT NULL,   -- a user or a key
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    rotate_by    BIGINT,          -- ends then unless it is rotated; NULL: no need
    ends_at      BIGINT NOT NULL, -- the earlier of both
    allowed_ips  TEXT NOT NULL,   -- addresses and CIDRs, separated by spaces; '' for all
    per_second   BIGINT NOT NULL, -- 0: no limit
    noticed_at   BIGINT NOT NULL, -- notices of its end that were due until then are sent
    last_used_at BIGINT,
    last_used_ip TEXT NOT NULL DEFAULT ''
);
CREATE INDEX api_keys_tenant ON api_keys (tenant_id, created_at, id);
CREATE INDEX api_keys_owner ON api_keys (owner_id);
CREATE INDEX api_keys_end ON api_keys (ends_at, id) WHERE status IN ('active', 'disabled');

-- The secrets of keys: the current one, one that a rotation has replaced, and ended ones.
CREATE TABLE api_key_secrets (
    hash         BYTEA PRIMARY KEY,
    key_id       TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    hint         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    ends_at      BIGINT, -- NULL: the current one
    last_used_at BIGINT
);
CREATE INDEX api_key_secrets_key ON api_key_secrets (key_id);
CREATE INDEX api_key_secrets_end ON api_key_secrets (ends_at) WHERE ends_at IS NOT NULL;
