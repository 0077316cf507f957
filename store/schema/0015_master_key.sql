-- +goose Up

-- The master keys that values here are sealed with. The keys themselves lie in files;
-- here is what shows which key is the right one.
CREATE TABLE master_keys (
    id          TEXT PRIMARY KEY,  -- 16 hexadecimal digits, of a hash of the key
    check_value BYTEA NOT NULL,    -- a known text, sealed with the key
    wrapped     BYTEA,             -- the key, sealed with the one before it; NULL: every node has it in its file
    current     BOOLEAN NOT NULL,  -- new values are sealed with this one
    created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX master_keys_current ON master_keys (current) WHERE current;

-- The keys that assertions of who is calling are signed with. One signs from starts_at
-- until the next one does.
CREATE TABLE signing_keys (
    id             TEXT PRIMARY KEY, -- the kid of RFC 7517
    public_key     BYTEA NOT NULL,   -- SubjectPublicKeyInfo (RFC 5280)
    private_sealed BYTEA NOT NULL,   -- PKCS #8 (RFC 5958), sealed with a master key
    starts_at      BIGINT NOT NULL,
    created_at     BIGINT NOT NULL
);
