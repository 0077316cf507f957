-- +goose Up

-- Counts up when the credentials of a person are replaced. Trust in a browser
-- carries the number under which it was made, and counts for nothing under
-- another one.
ALTER TABLE users ADD COLUMN credential_generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE devices ADD COLUMN credential_generation BIGINT NOT NULL DEFAULT 0;
-- When the browser signed in again; 0: not since it was made, as far as known.
ALTER TABLE devices ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;

-- When the last membership of the account ended, for what has to go later than
-- that. 0: before this migration. It decides nothing while there is a membership.
ALTER TABLE users ADD COLUMN left_at BIGINT;
UPDATE users SET left_at = 0 WHERE NOT EXISTS (SELECT 1 FROM memberships m WHERE m.user_id = users.id);
CREATE INDEX users_left ON users (left_at) WHERE left_at IS NOT NULL;

-- Attempts at a password whose outcome isn't known yet, by the names of their
-- counters in throttles. What a node that was killed has left runs out.
CREATE TABLE attempts (
    id      TEXT PRIMARY KEY,
    own     TEXT NOT NULL, -- of the account, or of the known browser
    wider   TEXT NOT NULL, -- of the client's network, or of all browsers of the account
    ends_at BIGINT NOT NULL
);
CREATE INDEX attempts_own ON attempts (own);
CREATE INDEX attempts_wider ON attempts (wider);
