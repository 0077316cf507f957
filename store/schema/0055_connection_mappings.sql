-- +goose Up

-- The roles that groups of a provider give.
CREATE TABLE connection_mappings (
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    group_name    TEXT NOT NULL,
    role          TEXT NOT NULL,
    PRIMARY KEY (connection_id, group_name)
);
