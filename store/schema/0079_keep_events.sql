-- +goose Up

-- For how many days the events of the tenant's trail are kept; NULL: as long as the installation says.
ALTER TABLE tenants ADD COLUMN keep_events_days BIGINT;
CREATE INDEX tenants_keeping ON tenants (id) WHERE keep_events_days IS NOT NULL;
