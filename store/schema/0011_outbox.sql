-- +goose Up

-- Whose mail it is: the tenant, or the client network that asked for it. Mails of
-- one share don't wait for those of another. The version before leaves it empty.
ALTER TABLE mails ADD COLUMN share TEXT NOT NULL DEFAULT '';

-- The queue is read piece by piece in this order.
DROP INDEX mails_due;
CREATE INDEX mails_due ON mails (next_at, id) WHERE state = 'queued';

-- What somebody waits for is found however much else is queued.
CREATE INDEX mails_urgent ON mails (next_at, id) WHERE state = 'queued' AND kind IN ('reset', 'password_changed', 'signed_in');

-- What is finished is forgotten a day later, or the address in it, without a look at
-- every mail there is.
CREATE INDEX mails_finished ON mails (created_at) WHERE state <> 'queued' AND recipient <> '';
