-- +goose Up

-- The IANA time zone in which the policies read context.hour and context.weekday; '' is UTC.
ALTER TABLE policies ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';
