-- +goose Up

-- What is about the actor of an event, and the values, have a digest each, so that they can be
-- blanked apart (see chain.go). salt and digest cover address, IP and personal: a JSON array of
-- the changes about the actor. values_salt and values_digest cover changes. Events of an older
-- version have no values_digest: there digest covers changes.
ALTER TABLE events ADD COLUMN personal TEXT;
ALTER TABLE events ADD COLUMN values_salt BYTEA;
ALTER TABLE events ADD COLUMN values_digest BYTEA;
