-- +goose Up

-- What a tenant has tightened. NULL and '' leave what the installation says.
ALTER TABLE tenants ADD COLUMN session_idle BIGINT;     -- microseconds
ALTER TABLE tenants ADD COLUMN session_absolute BIGINT; -- microseconds
ALTER TABLE tenants ADD COLUMN invitation_days BIGINT;
ALTER TABLE tenants ADD COLUMN allowed_domains TEXT NOT NULL DEFAULT ''; -- A-labels, a space between
-- When its OWNER closed it; what is closing is destroyed a hold later.
ALTER TABLE tenants ADD COLUMN closed_at BIGINT;

-- Address and name as they are searched: neither database folds letters the way
-- the program does.
ALTER TABLE memberships ADD COLUMN search TEXT NOT NULL DEFAULT '';
UPDATE memberships SET search = (SELECT u.email FROM users u WHERE u.id = memberships.user_id) || ' ' || lower(name);
CREATE INDEX memberships_page ON memberships (tenant_id, created_at, user_id);

-- How many days it is valid for, from the last mail on.
ALTER TABLE invitations ADD COLUMN days BIGINT NOT NULL DEFAULT 7;
CREATE INDEX invitations_page ON invitations (tenant_id, created_at, id);

-- A token that a newer mail has replaced is known, and opens nothing.
ALTER TABLE link_tokens ADD COLUMN retired_at BIGINT;

-- Secrets that all nodes share, such as the one that signs cursors; each is
-- made by whoever needs it first.
CREATE TABLE shared_secrets (
    name  TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);
