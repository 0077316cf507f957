-- +goose Up

-- Who was told that a connection's directory has asked for another address of their account: a hash of connection,
-- account and address.
CREATE TABLE directory_refusals (
    hash          BYTEA PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    at            BIGINT NOT NULL
);
CREATE INDEX directory_refusals_connection ON directory_refusals (connection_id);
CREATE INDEX directory_refusals_at ON directory_refusals (at);
