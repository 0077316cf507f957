-- +goose Up

-- Sign-ins that test a connection and open no session.
CREATE TABLE connection_tests (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    pending       BOOLEAN NOT NULL, -- whether it tests what is pending
    browser_hash  BYTEA NOT NULL,   -- of the session, or of the link, that asked
    fingerprint   BYTEA NOT NULL,   -- of what it tests: the test is void after a change
    status        TEXT NOT NULL,    -- waiting, passed, failed
    created_at    BIGINT NOT NULL,
    begun_at      BIGINT,           -- it is used up by beginning
    ended_at      BIGINT,
    claims        TEXT NOT NULL DEFAULT '', -- JSON, for 24 h
    checks        TEXT NOT NULL DEFAULT ''  -- JSON
);
CREATE INDEX connection_tests_connection ON connection_tests (connection_id, created_at);
CREATE INDEX connection_tests_created ON connection_tests (created_at);
