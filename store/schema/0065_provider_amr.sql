-- +goose Up

-- What the provider said of the methods (amr) at a sign-in by a connection, words.
ALTER TABLE sessions ADD COLUMN provider_amr TEXT NOT NULL DEFAULT '';
