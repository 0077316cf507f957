-- +goose Up

-- Lists of deliveries in a state read only those. It finds pending ones of a webhook, too.
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, created_at, id);
DROP INDEX webhook_deliveries_open;

-- Replays to the installation's webhooks read events by their time. Building it blocks writers
-- of the table; docs/upgrades.md says how to build it on PostgreSQL before, without that.
CREATE INDEX IF NOT EXISTS events_by_time ON events (at, id, action);
