-- +goose Up

-- What the operator did, in a trail and in all trails: "doorward audit search --actor operator", or root@db1.
CREATE INDEX events_by_operator ON events (tenant_id, seq) WHERE actor_type = 'operator';
CREATE INDEX events_of_operator ON events (at, id) WHERE actor_type = 'operator';
