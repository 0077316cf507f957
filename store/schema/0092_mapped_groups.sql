-- +goose Up

-- The group of the connection's directory that a mapping has been found to mean; '': none so far. It
-- stays the same group when the directory gives it another name.
ALTER TABLE connection_mappings ADD COLUMN group_id TEXT NOT NULL DEFAULT '';
