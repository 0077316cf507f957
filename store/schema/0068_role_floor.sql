-- +goose Up

-- The role that an OWNER, or the operator, last gave the member by hand; '': none has. Groups of a
-- connection don't lower the role below it. Nobody knows who gave the roles of before.
ALTER TABLE memberships ADD COLUMN role_floor TEXT NOT NULL DEFAULT '';
UPDATE memberships SET role_floor = role;
