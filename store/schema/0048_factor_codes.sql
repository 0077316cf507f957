-- +goose Up

-- Codes of mails, each good once to remove the account's second factors.
CREATE TABLE factor_codes (
    hash       BYTEA PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
);
CREATE INDEX factor_codes_user ON factor_codes (user_id);
CREATE INDEX factor_codes_expires ON factor_codes (expires_at);
