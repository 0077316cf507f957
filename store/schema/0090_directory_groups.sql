-- +goose Up

-- Groups that a connection's directory has made.
CREATE TABLE directory_groups (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    tenant_id     TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    display_name  TEXT NOT NULL,
    name_key      TEXT NOT NULL, -- the name without letter case, unique in the connection
    external_id   TEXT NOT NULL DEFAULT '', -- exactly as the directory wrote it; '': none
    created_at    BIGINT NOT NULL,
    changed_at    BIGINT NOT NULL,
    UNIQUE (connection_id, name_key)
);
CREATE INDEX directory_groups_page ON directory_groups (connection_id, created_at, id);
CREATE UNIQUE INDEX directory_groups_external ON directory_groups (connection_id, external_id) WHERE external_id <> '';
CREATE INDEX directory_groups_tenant ON directory_groups (tenant_id);
