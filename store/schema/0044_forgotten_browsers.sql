-- +goose Up

-- In this tenant only a browser in which a second factor was proved after this instant stands in for
-- the factor.
ALTER TABLE memberships ADD COLUMN forgotten_at BIGINT NOT NULL DEFAULT 0;
