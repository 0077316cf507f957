-- +goose Up

-- What happened lately, counted without reading the events themselves: sign-ins
-- by day, refusals by kind.
CREATE INDEX events_lately ON events (tenant_id, outcome, at, action);
