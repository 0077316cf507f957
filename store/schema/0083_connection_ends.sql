-- +goose Up

-- What ends when the provider revokes somebody: connection, the sessions that the connection has vouched for;
-- tenant, all of the person's sessions in the tenant; and whether the person's API keys end, too.
ALTER TABLE connections ADD COLUMN ends TEXT NOT NULL DEFAULT 'tenant';
ALTER TABLE connections ADD COLUMN ends_keys BOOLEAN NOT NULL DEFAULT FALSE;
