-- +goose Up

-- Lists are sorted by each column without reading all of their rows. The roles are those of
-- rankOf. docs/upgrades.md says how to build these on PostgreSQL before, without blocking
-- writers.
CREATE INDEX IF NOT EXISTS memberships_role ON memberships (tenant_id, (CASE role WHEN 'VIEWER' THEN 1 WHEN 'USER' THEN 2 WHEN 'ADMIN' THEN 3 WHEN 'OWNER' THEN 4 ELSE 0 END), user_id);
CREATE INDEX IF NOT EXISTS memberships_status ON memberships (tenant_id, (CASE status WHEN 'active' THEN 0 ELSE 1 END), user_id);
CREATE INDEX IF NOT EXISTS memberships_seen ON memberships (tenant_id, (coalesce(last_login_at, 0)), user_id);
CREATE INDEX IF NOT EXISTS invitations_role ON invitations (tenant_id, (CASE role WHEN 'VIEWER' THEN 1 WHEN 'USER' THEN 2 WHEN 'ADMIN' THEN 3 WHEN 'OWNER' THEN 4 ELSE 0 END), id);
CREATE INDEX IF NOT EXISTS invitations_expiry ON invitations (tenant_id, expires_at, id);

-- The state of the newest mail of an invitation, from the index alone.
CREATE INDEX IF NOT EXISTS mails_newest ON mails (subject_id, created_at, id, state);
DROP INDEX mails_subject;
