-- +goose Up

-- The canonical address of the person of an effect; empty: a group, or recorded before this. Somebody who is only invited
-- has another id each time, and no account.
ALTER TABLE directory_effects ADD COLUMN address TEXT NOT NULL DEFAULT '';
CREATE INDEX directory_effects_address ON directory_effects (address);
