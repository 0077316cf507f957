-- +goose Up

-- Attempts of a client with an IPv6 address also count for its /48, which may have 65,536
-- clients. '' for others.
ALTER TABLE attempts ADD COLUMN site TEXT NOT NULL DEFAULT '';

CREATE INDEX attempts_site ON attempts (site);
