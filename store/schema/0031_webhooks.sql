-- +goose Up

-- Endpoints of others that get events. The version before queues nothing for them.
CREATE TABLE webhooks (
    id               TEXT PRIMARY KEY,
    tenant_id        TEXT NOT NULL,   -- '': the installation, events of all tenants
    url              TEXT NOT NULL,
    events           TEXT NOT NULL,   -- patterns, separated by spaces
    about            TEXT NOT NULL,
    include          TEXT NOT NULL,   -- separated by spaces
    enabled          BOOLEAN NOT NULL,
    disabled_reason  TEXT NOT NULL DEFAULT '',
    public_key       TEXT NOT NULL,
    secret_sealed    BYTEA NOT NULL,  -- with the master key
    previous_sealed  BYTEA,           -- the secret before a rotation, until previous_ends_at
    previous_ends_at BIGINT,
    private_sealed   BYTEA NOT NULL,  -- seed of the Ed25519 key
    created_at       BIGINT NOT NULL,
    last_success_at  BIGINT,
    failing_since    BIGINT,          -- the first failure since the last success
    notices          BIGINT NOT NULL DEFAULT 0, -- mails sent about that
    health           TEXT NOT NULL DEFAULT 'new' -- good: the last attempt succeeded within a second; bad: it did not
);
CREATE INDEX webhooks_tenant ON webhooks (tenant_id, created_at, id);
CREATE INDEX webhooks_failing ON webhooks (failing_since) WHERE failing_since IS NOT NULL;

-- One for each event and endpoint, or more after a replay. It holds no text of the event.
CREATE TABLE webhook_deliveries (
    id         TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event_id   TEXT NOT NULL,
    type       TEXT NOT NULL,
    state      TEXT NOT NULL,      -- pending, delivered, failed, dropped
    urgent     BOOLEAN NOT NULL,   -- not yet tried, and the endpoint was not failing when it was queued
    tries      BIGINT NOT NULL,
    step       BIGINT NOT NULL,    -- of the schedule of retries
    next_at    BIGINT NOT NULL,    -- of a pending one
    created_at BIGINT NOT NULL,
    attempts   TEXT NOT NULL       -- JSON, the last ones
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_urgent ON webhook_deliveries (next_at, id) WHERE state = 'pending' AND urgent;
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (webhook_id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (created_at) WHERE state <> 'pending';
