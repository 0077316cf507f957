-- +goose Up

-- People who were removed from a tenant, by a hash of tenant and address: they come back by an
-- invitation only, not by the tenant's sign-on.
CREATE TABLE removed_members (
    tenant_id    TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    address_hash BYTEA NOT NULL,
    removed_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, address_hash)
);
