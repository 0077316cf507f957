-- +goose Up

-- Changes of an account's address. A code sent to the new address makes the change, one
-- sent to the old address takes it back; link_tokens has the hashes of both.
CREATE TABLE email_changes (
    id           TEXT PRIMARY KEY,      -- subject of the codes that confirm
    undo_id      TEXT NOT NULL UNIQUE,  -- subject of the codes that undo
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    old_email    TEXT NOT NULL,
    new_email    TEXT NOT NULL,
    generation   BIGINT NOT NULL,       -- of the account's credentials, when it was asked for
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,                -- for confirming; NULL until the mail is made
    undo_until   BIGINT NOT NULL,
    confirmed_at BIGINT,
    undone_at    BIGINT
);
CREATE INDEX email_changes_user ON email_changes (user_id);
CREATE INDEX email_changes_end ON email_changes (undo_until);

-- The kinds of MailKind.Urgent in this version. The version before uses mails_urgent.
CREATE INDEX mails_urgent_kinds ON mails (next_at, id) WHERE state = 'queued'
    AND kind IN ('reset', 'password_changed', 'signed_in', 'email_confirm', 'email_changing', 'email_changed');

-- What is held about a person, to be shown and erased.
CREATE INDEX invitations_email ON invitations (email);
CREATE INDEX mails_recipient ON mails (recipient) WHERE recipient <> '';
