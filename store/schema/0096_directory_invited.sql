-- +goose Up

-- Those whom a directory has described and who aren't members, in the order in which it reads them.
CREATE INDEX directory_users_invited ON directory_users (connection_id, tenant_id, created_at, id) WHERE user_id IS NULL;
