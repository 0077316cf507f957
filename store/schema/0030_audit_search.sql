-- +goose Up

-- Searching a trail reads only what is found. Building these blocks writers of the table;
-- docs/upgrades.md says how to build them on PostgreSQL before, without that.
CREATE INDEX IF NOT EXISTS events_by_request ON events (tenant_id, request_id, seq);
CREATE INDEX IF NOT EXISTS events_by_target ON events (tenant_id, target_id, seq);
CREATE INDEX IF NOT EXISTS events_by_actor ON events (tenant_id, actor_id, seq);
CREATE INDEX IF NOT EXISTS events_by_address ON events (tenant_id, actor_email, seq);
CREATE INDEX IF NOT EXISTS events_by_action ON events (tenant_id, action, seq);
CREATE INDEX IF NOT EXISTS events_refused ON events (tenant_id, seq) WHERE outcome = 'refused';
