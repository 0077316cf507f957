-- +goose Up

-- Notices beyond those that a recipient gets one by one: the digest, a mail, tells them. Those of
-- one kind about the same object are one row.
CREATE TABLE held_notices (
    mail_id   TEXT NOT NULL REFERENCES mails (id) ON DELETE CASCADE, -- the digest
    kind      TEXT NOT NULL,
    about     TEXT NOT NULL,   -- tenant and object of the event, separated by a space
    event_id  TEXT NOT NULL,   -- of the newest notice
    notices   BIGINT NOT NULL, -- how many there were
    PRIMARY KEY (mail_id, kind, about)
);
CREATE INDEX held_notices_event ON held_notices (event_id);
