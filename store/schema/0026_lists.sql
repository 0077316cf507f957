-- +goose Up

-- What rows are found and sorted by, folded by the program: without case and accents.
-- search begins with a space where it is folded. The keys are hexadecimal digits, which
-- sort alike in every collation. The program fills them in batches.
ALTER TABLE invitations ADD COLUMN search TEXT NOT NULL DEFAULT '';
ALTER TABLE memberships ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
ALTER TABLE memberships ADD COLUMN email_key TEXT NOT NULL DEFAULT '';
ALTER TABLE invitations ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
ALTER TABLE invitations ADD COLUMN email_key TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
ALTER TABLE tenants ADD COLUMN name_key TEXT NOT NULL DEFAULT '';

CREATE INDEX memberships_unfolded ON memberships (user_id, tenant_id) WHERE substr(search, 1, 1) <> ' ';
CREATE INDEX invitations_unfolded ON invitations (id) WHERE substr(search, 1, 1) <> ' ';
CREATE INDEX api_keys_unfolded ON api_keys (id) WHERE substr(search, 1, 1) <> ' ';

CREATE INDEX memberships_name ON memberships (tenant_id, name_key, user_id);
CREATE INDEX memberships_email ON memberships (tenant_id, email_key, user_id);
CREATE INDEX invitations_name ON invitations (tenant_id, name_key, id);
CREATE INDEX invitations_address ON invitations (tenant_id, email_key, id);
CREATE INDEX tenants_name ON tenants (name_key, id);
