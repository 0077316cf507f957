-- +goose Up

-- Until when the provider of a connection lets the session last (SessionNotOnOrAfter of SAML); 0: it doesn't say.
ALTER TABLE sessions ADD COLUMN provider_until BIGINT NOT NULL DEFAULT 0;
