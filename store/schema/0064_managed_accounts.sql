-- +goose Up

-- The tenant whose connection made the account; '': it is nobody's but the person's. The first password
-- makes it '' for good.
ALTER TABLE users ADD COLUMN managed_by TEXT NOT NULL DEFAULT '';
-- The tenant that managed it until then, in which that password opens no session before the person has
-- signed in by the connection once more; '': none.
ALTER TABLE users ADD COLUMN managed_until_sign_on TEXT NOT NULL DEFAULT '';
