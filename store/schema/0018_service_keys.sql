-- +goose Up

-- Credentials of the platform's own services, across tenants.
CREATE TABLE service_keys (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    hash        BYTEA NOT NULL UNIQUE,
    may         TEXT NOT NULL,   -- sorted permissions, separated by spaces
    tenants     TEXT NOT NULL,   -- ids, separated by spaces; '' for all
    created_at  BIGINT NOT NULL,
    disabled_at BIGINT           -- by a restore; NULL: the key works
);

-- The service key that sent it; '' for one that a person or the operator sent.
ALTER TABLE invitations ADD COLUMN service_key_id TEXT NOT NULL DEFAULT '';
CREATE INDEX invitations_service_key ON invitations (service_key_id) WHERE service_key_id <> '';
