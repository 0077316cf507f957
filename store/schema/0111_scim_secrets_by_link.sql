-- +goose Up

-- Whether a set-up link has made the secret: it sees nobody while the connection is a draft.
ALTER TABLE scim_secrets ADD COLUMN by_setup_link BOOLEAN NOT NULL DEFAULT FALSE;
