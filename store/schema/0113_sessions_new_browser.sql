-- +goose Up

-- Whether the login was from a browser that the account didn't know: pages mark such a session.
ALTER TABLE sessions ADD COLUMN new_browser BOOLEAN NOT NULL DEFAULT FALSE;
