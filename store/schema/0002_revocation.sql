-- +goose Up

-- Whatever ends or changes what a session may do adds a row here, in the same
-- transaction. seq is drawn from change_position as the last statement before
-- the commit; the lock on its only row makes the order of seq the order of
-- commits, and a rolled-back draw leaves no gap.
CREATE TABLE change_position (
    id   BIGINT PRIMARY KEY,
    last BIGINT NOT NULL
);
INSERT INTO change_position (id, last) VALUES (1, 0);

CREATE TABLE changes (
    seq     BIGINT PRIMARY KEY,
    kind    TEXT NOT NULL,
    subject TEXT NOT NULL,
    at      BIGINT NOT NULL
);
CREATE INDEX changes_at ON changes (at);

-- The processes that answer from memory. A revoking call waits until all of
-- them have applied its change, or for the longest of their leases.
CREATE TABLE nodes (
    id      TEXT PRIMARY KEY,
    lease   BIGINT NOT NULL, -- microseconds
    applied BIGINT NOT NULL, -- highest seq that is applied
    beat    BIGINT NOT NULL  -- counts up while the node lives
);
