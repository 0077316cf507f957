-- +goose Up

-- When the account's own password was proved last in a session that a connection vouches for; 0: never.
ALTER TABLE sessions ADD COLUMN password_at BIGINT NOT NULL DEFAULT 0;
