-- +goose Up

-- Secrets by which a customer's directory writes people here.
CREATE TABLE scim_secrets (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    hash          BYTEA NOT NULL UNIQUE, -- SHA-256 of the secret
    hint          TEXT NOT NULL, -- its first and last characters
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT,
    last_used_at  BIGINT,
    notices       BIGINT NOT NULL DEFAULT 0 -- mails sent about its end
);
CREATE INDEX scim_secrets_connection ON scim_secrets (connection_id);
CREATE INDEX scim_secrets_expiring ON scim_secrets (expires_at) WHERE expires_at IS NOT NULL;
