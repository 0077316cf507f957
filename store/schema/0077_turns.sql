-- +goose Up

-- When each sweep is due next: the node that moves it does the sweep. If it dies, the sweep is due again then.
CREATE TABLE turns (
    name    TEXT PRIMARY KEY,
    next_at BIGINT NOT NULL
);
