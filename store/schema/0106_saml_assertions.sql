-- +goose Up

-- Assertions of SAML responses that were accepted, hashed with their connection: each is used once, over all nodes, and is
-- known until it wouldn't be accepted any more. What it says waits for the browser that began, sealed by a key that is
-- made of what only the browser and the provider have.
CREATE TABLE saml_assertions (
    hash          BYTEA PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    said          BYTEA,
    waits_until   BIGINT NOT NULL,
    ends_at       BIGINT NOT NULL
);
CREATE INDEX saml_assertions_connection ON saml_assertions (connection_id);
CREATE INDEX saml_assertions_ends ON saml_assertions (ends_at);
