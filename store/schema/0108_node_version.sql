-- +goose Up

-- The version of the program that a node runs; empty: of one that doesn't say so.
ALTER TABLE nodes ADD COLUMN version TEXT NOT NULL DEFAULT '';
