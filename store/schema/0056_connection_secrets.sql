-- +goose Up

-- Client secrets that a provider has given out.
CREATE TABLE connection_secrets (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    hint          TEXT NOT NULL, -- the last characters
    secret_sealed BYTEA NOT NULL, -- with the master key
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT,
    last_used_at  BIGINT,
    notices       BIGINT NOT NULL DEFAULT 0 -- mails sent about its end
);
CREATE INDEX connection_secrets_connection ON connection_secrets (connection_id);
CREATE INDEX connection_secrets_expiring ON connection_secrets (expires_at) WHERE expires_at IS NOT NULL;
