-- +goose Up

-- Members of a tenant whose role is to be read from the groups of directories: many get one by one change, which a
-- transaction of its own each for some of them gives.
CREATE TABLE due_roles (
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    by_directory  BOOLEAN NOT NULL, -- whether the directory has changed groups; else somebody has changed mappings
    user_id       TEXT NOT NULL,
    tenant_id     TEXT NOT NULL,
    PRIMARY KEY (connection_id, by_directory, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES memberships (tenant_id, user_id) ON DELETE CASCADE
);
CREATE INDEX due_roles_member ON due_roles (tenant_id, user_id);
