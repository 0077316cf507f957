-- +goose Up

-- Why a member is suspended, in words: "administrator", and the id of each connection whose directory has switched
-- the person off. It counts only while the status is suspended; empty then: an administrator, as before this column,
-- and as nodes of the version before write it.
ALTER TABLE memberships ADD COLUMN suspended_by TEXT NOT NULL DEFAULT '';
