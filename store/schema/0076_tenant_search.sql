-- +goose Up

-- Name and id as they are searched, folded by the program; it begins with a space. search_key is the name_key of
-- the name that it was made of: an earlier version creates and renames tenants without it.
ALTER TABLE tenants ADD COLUMN search TEXT NOT NULL DEFAULT '';
ALTER TABLE tenants ADD COLUMN search_key TEXT NOT NULL DEFAULT '';
CREATE INDEX tenants_unsearchable ON tenants (id) WHERE search_key <> name_key;
