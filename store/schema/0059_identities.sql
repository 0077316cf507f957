-- +goose Up

-- Who somebody is at a tenant's provider. The address is no part of it.
CREATE TABLE identities (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    tenant_id     TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    issuer        TEXT NOT NULL,
    subject       TEXT NOT NULL,
    user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT NOT NULL,
    UNIQUE (connection_id, issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);
CREATE INDEX identities_page ON identities (connection_id, created_at, id);
CREATE INDEX identities_tenant ON identities (tenant_id);
