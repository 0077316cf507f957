-- +goose Up

-- The language in which a person is written to (BCP 47), that of the invitation
-- the account came from; empty: none was chosen.
ALTER TABLE users ADD COLUMN locale TEXT NOT NULL DEFAULT '';
