-- +goose Up

-- Changes of the address of an account. The new address confirms one, the old one can
-- undo it.
CREATE TABLE email_changes (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    old_email     TEXT NOT NULL,
    new_email     TEXT NOT NULL,
    generation    BIGINT NOT NULL, -- of the account's credentials, when it was asked for
    created_at    BIGINT NOT NULL,
    confirm_until BIGINT NOT NULL DEFAULT 0, -- 0: the mail to the new address is not made yet
    confirmed_at  BIGINT,          -- NULL: the account has the old address
    replaced_at   BIGINT,          -- NULL: it can be confirmed
    undo_until    BIGINT NOT NULL,
    undone_at     BIGINT           -- NULL: it can be undone
);
CREATE INDEX email_changes_user ON email_changes (user_id, created_at);
CREATE INDEX email_changes_new ON email_changes (new_email);
CREATE INDEX email_changes_end ON email_changes (undo_until);

-- mails_urgent, with the mails about a change of the address. The version before goes on
-- using the old index.
CREATE INDEX mails_urgent_account ON mails (next_at, id)
WHERE state = 'queued' AND kind IN ('reset', 'password_changed', 'signed_in', 'email_confirm', 'email_requested', 'email_changed', 'email_restored');

-- What is held about a person is found by these. Building them blocks writers of the table.
CREATE INDEX events_actor ON events (actor_id, at, id);
CREATE INDEX events_target ON events (target_id, at, id);
CREATE INDEX invitations_email ON invitations (email);
