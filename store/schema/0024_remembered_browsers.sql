-- +goose Up

-- From where a second factor was proved in the browser, for its person; both are empty
-- while second_at is 0, and for what the version before has written.
ALTER TABLE devices ADD COLUMN ip TEXT NOT NULL DEFAULT '';
ALTER TABLE devices ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
