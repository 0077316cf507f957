-- +goose Up

-- One row while changes are paused.
CREATE TABLE maintenance (
    id     BIGINT PRIMARY KEY CHECK (id = 1),
    since  BIGINT NOT NULL,
    reason TEXT NOT NULL -- shown to those whose change is refused
);
