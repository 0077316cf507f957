-- +goose Up

-- Of a connection of type saml: whether requests to its provider are signed, and whether that may encrypt
-- assertions.
ALTER TABLE connections ADD COLUMN sign_requests BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE connections ADD COLUMN encrypt BOOLEAN NOT NULL DEFAULT FALSE;
