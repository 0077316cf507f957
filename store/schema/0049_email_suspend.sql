-- +goose Up

-- Whether confirming a change of an address suspends the memberships whose tenants don't allow the
-- new address; else these prevent it.
ALTER TABLE email_changes ADD COLUMN suspend BOOLEAN NOT NULL DEFAULT FALSE;
