-- +goose Up

-- The oldest binaries that can go on with this schema, by the newest migration
-- that they know. A migration that takes something away from them raises it:
-- UPDATE oldest_binary SET knows = 9; see docs/upgrades.md.
CREATE TABLE oldest_binary (
    id    BIGINT PRIMARY KEY,
    knows BIGINT NOT NULL
);
INSERT INTO oldest_binary (id, knows) VALUES (1, 8);
