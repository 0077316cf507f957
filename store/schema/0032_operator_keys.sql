-- +goose Up

-- When an operator key expires; NULL: never, as those of older versions.
ALTER TABLE operator_keys ADD COLUMN expires_at BIGINT;

-- What it may do, words; empty: everything, as those of older versions.
ALTER TABLE operator_keys ADD COLUMN may TEXT NOT NULL DEFAULT '';
