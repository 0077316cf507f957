-- +goose Up

-- A tenant's word that the second factors of a member may be removed. asked_at 0: it was given and is
-- void; the row stays to count the mails.
CREATE TABLE factor_words (
    tenant_id     TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    asked_at      BIGINT NOT NULL,
    mails         INTEGER NOT NULL, -- asked for since first_mail_at
    first_mail_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES memberships (tenant_id, user_id) ON DELETE CASCADE
);
CREATE INDEX factor_words_user ON factor_words (user_id);
CREATE INDEX factor_words_mailed ON factor_words (first_mail_at);
