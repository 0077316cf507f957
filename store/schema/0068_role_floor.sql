-- +goose Up

-- The role that an OWNER, or the operator, last gave the member by hand; '-': none has; '': nobody knows,
-- since the role was given before there was this column. Groups of a connection don't lower the role below it.
ALTER TABLE memberships ADD COLUMN role_floor TEXT NOT NULL DEFAULT '';
