-- +goose Up

-- What happened lately is counted in usage_counts instead.
DROP INDEX events_lately;
