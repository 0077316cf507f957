-- +goose Up

-- A session whose epoch is not its tenant's has ended, so that one row ends all sessions of a tenant.
ALTER TABLE sessions ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
