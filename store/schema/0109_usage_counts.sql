-- +goose Up

-- How often something happened to a webhook, a connection (by the hour) or an API key (by the day), for the charts
-- of their pages. What is older than 30 days is deleted.
CREATE TABLE usage_counts (
    subject_id TEXT NOT NULL,   -- the webhook, connection or key
    at         BIGINT NOT NULL, -- the beginning of the hour or day, in UTC
    outcome    TEXT NOT NULL,   -- delivered, refused, silent; signed_in, refused, unavailable; used
    times      BIGINT NOT NULL,
    PRIMARY KEY (subject_id, at, outcome)
);
CREATE INDEX usage_counts_at ON usage_counts (at);
