-- +goose Up

-- What directories say of an account, in the order of its ids: the first one is the person's.
CREATE INDEX directory_users_account ON directory_users (user_id, tenant_id, id);
DROP INDEX directory_users_member;
