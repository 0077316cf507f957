-- +goose Up

-- The number of the last event of the trail that usage_counts have: sign-ins and refusals by the hour. Later events are
-- added a thousand at a time, and until then counted when they are read.
ALTER TABLE audit_chains ADD COLUMN usage_to BIGINT NOT NULL DEFAULT 0;
