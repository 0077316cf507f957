-- +goose Up

-- The provider's own session (its claim sid) behind a session that a connection vouches for, hashed: by it the
-- provider ends that one. '': the provider named none.
ALTER TABLE sessions ADD COLUMN provider_session TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_provider_session ON sessions (issuer, provider_session) WHERE provider_session <> '';
