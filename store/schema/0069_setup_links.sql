-- +goose Up

-- Links by which a customer's own IT sets a connection up. A connection has one at most.
CREATE TABLE setup_links (
    id            TEXT PRIMARY KEY,
    tenant_id     TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    connection_id TEXT NOT NULL UNIQUE REFERENCES connections (id) ON DELETE CASCADE,
    maker_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- under whose authority it acts
    token_hash    BYTEA NOT NULL UNIQUE,
    browser_hash  BYTEA UNIQUE, -- of the cookie of the browser that has begun; NULL: none has
    created_at    BIGINT NOT NULL,
    ends_at       BIGINT NOT NULL,
    begun_at      BIGINT
);
CREATE INDEX setup_links_maker ON setup_links (maker_id, tenant_id);
CREATE INDEX setup_links_tenant ON setup_links (tenant_id);
CREATE INDEX setup_links_end ON setup_links (ends_at);
