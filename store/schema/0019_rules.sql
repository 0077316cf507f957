-- +goose Up

-- The platform's own actions. The row with the highest version holds; without one the
-- built-in model does. Nodes of the version before know only that.
CREATE TABLE models (
    version    BIGINT PRIMARY KEY,
    revision   BIGINT NOT NULL UNIQUE, -- random, never 0; names the content in memory
    text       TEXT NOT NULL,          -- YAML
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL           -- an operator key; '' at the command line
);

-- Roles that tenants have made, beside the four.
CREATE TABLE roles (
    id          TEXT PRIMARY KEY,
    tenant_id   TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    about       TEXT NOT NULL,
    permissions TEXT NOT NULL, -- sorted actions, separated by spaces
    created_at  BIGINT NOT NULL,
    UNIQUE (tenant_id, name)
);

-- Random with every change of the tenant's roles; 0: it has never had any.
ALTER TABLE tenants ADD COLUMN rules_revision BIGINT NOT NULL DEFAULT 0;
