-- +goose Up

-- Demands for second factors that not all members concerned have been notified of yet. event_id is the
-- event of the demand; the mails to users up to after_id are queued.
CREATE TABLE factor_demands (
    tenant_id TEXT PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    event_id  TEXT NOT NULL,
    after_id  TEXT NOT NULL
);
