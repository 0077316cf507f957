-- +goose Up

-- Keys by which Doorward signs requests to a SAML provider, and decrypts its assertions: one of each purpose for a
-- connection.
CREATE TABLE connection_saml_keys (
    id             TEXT PRIMARY KEY,
    connection_id  TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    purpose        TEXT NOT NULL,  -- sign, decrypt
    private_sealed BYTEA NOT NULL, -- certificate and private key, with the master key
    created_at     BIGINT NOT NULL
);
CREATE UNIQUE INDEX connection_saml_keys_purpose ON connection_saml_keys (connection_id, purpose);
