-- +goose Up

-- The protocol of a connection. Equal faults in a row are one row with a count.
CREATE TABLE connection_attempts (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    kind          TEXT NOT NULL, -- sign_in, test, step_up, metadata
    at            BIGINT NOT NULL,
    outcome       TEXT NOT NULL, -- signed_in, asked, done, refused, unavailable
    checked       TEXT NOT NULL DEFAULT '', -- the check that refused
    seen          TEXT NOT NULL DEFAULT '',
    advice        TEXT NOT NULL DEFAULT '', -- a key of a text
    subject       TEXT NOT NULL DEFAULT '',
    user_id       TEXT NOT NULL DEFAULT '',
    count         BIGINT NOT NULL DEFAULT 1,
    request_ids   TEXT NOT NULL DEFAULT '' -- of the last ten, words
);
CREATE INDEX connection_attempts_page ON connection_attempts (connection_id, kind, at, id);
CREATE INDEX connection_attempts_user ON connection_attempts (user_id) WHERE user_id <> '';
CREATE INDEX connection_attempts_at ON connection_attempts (at);
