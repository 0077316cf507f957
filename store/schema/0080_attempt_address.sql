-- +goose Up

-- The address in "seen", if one is: entries about people without an account go with the address.
ALTER TABLE connection_attempts ADD COLUMN address TEXT NOT NULL DEFAULT '';
CREATE INDEX connection_attempts_address ON connection_attempts (address) WHERE address <> '';
