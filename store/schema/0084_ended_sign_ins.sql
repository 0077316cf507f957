-- +goose Up

-- Whose sign-ins a provider has ended, by a hash of the person or of the provider's session: one that began
-- before opens no session any more. Kept for as long as a sign-in can take.
CREATE TABLE ended_sign_ins (
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    who_hash      BYTEA NOT NULL,
    ended_at      BIGINT NOT NULL,
    PRIMARY KEY (connection_id, who_hash)
);
CREATE INDEX ended_sign_ins_ended ON ended_sign_ins (ended_at);
