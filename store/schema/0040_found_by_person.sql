-- +goose Up

-- What erasing and exporting an account look for by person or address, without reading the
-- tables: others wait for an erasure. Deleting an account asks for its invitations, too.
CREATE INDEX IF NOT EXISTS invitations_inviter ON invitations (invited_by) WHERE invited_by IS NOT NULL;
CREATE INDEX IF NOT EXISTS mails_recipient ON mails (recipient) WHERE recipient <> '';

-- Lists of tenants are sorted by it.
CREATE INDEX IF NOT EXISTS tenants_created ON tenants (created_at, id);
