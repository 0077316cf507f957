-- +goose Up

-- Calls with an Idempotency-Key: while an attempt is under way its mark, then the
-- answer. Neither the credential nor the key is stored: id is derived from both and
-- from the path, and so is the key that the answer is sealed with.
CREATE TABLE idempotency (
    id         BYTEA PRIMARY KEY,
    tenant_id  TEXT NOT NULL,  -- of the caller; '' for one without a tenant
    body       BYTEA NOT NULL, -- HMAC of the request's body, under a derived key
    attempt    TEXT NOT NULL,  -- which of several attempts the mark belongs to
    answer     BYTEA,          -- sealed body of the answer; NULL while under way
    expires_at BIGINT NOT NULL -- until when the mark or the answer counts
);
CREATE INDEX idempotency_expires ON idempotency (expires_at);
CREATE INDEX idempotency_tenant ON idempotency (tenant_id);
