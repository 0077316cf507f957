-- +goose Up

-- Who vouches for the proof that the challenge follows; '' is Doorward itself.
ALTER TABLE challenges ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
