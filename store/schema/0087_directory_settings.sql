-- +goose Up

-- What a connection's directory does with addresses outside of the tenant's proved domains (invite, refuse), and
-- whether the removal of members that names none empties a group.
ALTER TABLE connections ADD COLUMN directory_outside TEXT NOT NULL DEFAULT 'invite';
ALTER TABLE connections ADD COLUMN empty_by_remove BOOLEAN NOT NULL DEFAULT FALSE;
