-- +goose Up

-- Where the link of a mail leads on to in the end, as the page that asked for it
-- has allowed: a path or an address. '' for nowhere. It is no secret.
ALTER TABLE mails ADD COLUMN return_to TEXT NOT NULL DEFAULT '';
