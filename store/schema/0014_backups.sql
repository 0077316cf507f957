-- +goose Up

-- The newest backup that was completed: one row with the id 1, none before the first.
CREATE TABLE backups (
    id           BIGINT PRIMARY KEY,
    completed_at BIGINT NOT NULL,
    destination  TEXT NOT NULL DEFAULT '' -- a file; empty: unknown
);
