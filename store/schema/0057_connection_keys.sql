-- +goose Up

-- Keys by which Doorward authenticates to the token endpoint of a provider (private_key_jwt).
CREATE TABLE connection_keys (
    id             TEXT PRIMARY KEY, -- the kid
    connection_id  TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    public         TEXT NOT NULL,  -- a JWK
    private_sealed BYTEA NOT NULL, -- with the master key
    created_at     BIGINT NOT NULL,
    signs_from     BIGINT NOT NULL, -- published from created_at on, so that the provider has read it by then
    ends_at        BIGINT           -- no longer published then; NULL: there is no next key yet
);
CREATE INDEX connection_keys_newest ON connection_keys (signs_from) WHERE ends_at IS NULL;
CREATE INDEX connection_keys_ends ON connection_keys (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX connection_keys_connection ON connection_keys (connection_id);
