-- +goose Up

-- What a connection signs people in by: a row in force, and one that awaits a test and a switch.
CREATE TABLE connection_parameters (
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    pending       BOOLEAN NOT NULL,
    issuer        TEXT NOT NULL, -- '': not known yet
    client_id     TEXT NOT NULL,
    client_auth   TEXT NOT NULL, -- secret_basic, secret_post, private_key_jwt
    email_from    TEXT NOT NULL, -- the claim with the address
    tested_at     BIGINT,        -- when a test of exactly this has passed
    -- The provider's discovery document as it was read last.
    discovery     TEXT NOT NULL DEFAULT '',
    discovered_at BIGINT NOT NULL DEFAULT 0,
    -- When a node has last begun to read it, so that one node does, and not again at once after a fault.
    asked_at      BIGINT NOT NULL DEFAULT 0,
    -- Another number after each change: a test of what was before is void.
    revision      BIGINT NOT NULL,
    PRIMARY KEY (connection_id, pending)
);
CREATE INDEX connection_parameters_asked ON connection_parameters (asked_at) WHERE issuer <> '';
