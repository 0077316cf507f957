-- +goose Up

-- How many events of changes the operator allows a tenant in a day of UTC; NULL: any number.
ALTER TABLE tenants ADD COLUMN quota_events_per_day BIGINT;

-- How many such events a trail got in one day, in days since 1970. It is in the row that
-- each event writes anyway.
ALTER TABLE audit_chains ADD COLUMN counted_day BIGINT NOT NULL DEFAULT 0;
ALTER TABLE audit_chains ADD COLUMN counted BIGINT NOT NULL DEFAULT 0;
