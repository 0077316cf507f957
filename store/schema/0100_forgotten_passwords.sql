-- +goose Up

-- People whose password the operator has removed, and who have not been mailed yet. Rows of a command that was
-- interrupted are for the next one.
CREATE TABLE forgotten_passwords (
    user_id TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE
);
