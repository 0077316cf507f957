-- +goose Up

-- Accounts that were erased a short time ago. What is left of the personal data in their
-- audit events, more than one transaction blanks or recorded late, is blanked by a sweep.
CREATE TABLE erasures (
    user_id TEXT PRIMARY KEY,
    at      BIGINT NOT NULL
);

-- The caller, if it is a user: with the account go its marks and answers.
ALTER TABLE idempotency ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
CREATE INDEX idempotency_user ON idempotency (user_id) WHERE user_id <> '';
