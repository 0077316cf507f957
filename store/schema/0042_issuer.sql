-- +goose Up

-- Who vouches for a session: '' Doorward itself, else the id of a tenant's connection.
ALTER TABLE sessions ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
