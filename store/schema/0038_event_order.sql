-- +goose Up

-- How far the numbers of a trail's events are from the order of their times, so that a search
-- by time finds where to read: see disorder.go. Binaries without this leave it as it is.
ALTER TABLE audit_chains ADD COLUMN timed BIGINT NOT NULL DEFAULT 0;     -- the last event that the others include
ALTER TABLE audit_chains ADD COLUMN latest_at BIGINT NOT NULL DEFAULT 0; -- the latest time of an event
ALTER TABLE audit_chains ADD COLUMN disorder BIGINT NOT NULL DEFAULT 0;  -- by how much one is before an earlier one, at most
