-- +goose Up

-- One text for SQLite and PostgreSQL: ids are TEXT made by the program, times
-- are microseconds since 1970 in BIGINT from the program's clock, secrets are
-- SHA-256 hashes in BYTEA. Migrations only go forward.

CREATE TABLE tenants (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    status     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Written to take the lock under which the people of a tenant change.
    revision   BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    email         TEXT NOT NULL UNIQUE, -- canonical
    password_hash TEXT NOT NULL,        -- PHC string; empty: no password yet
    created_at    BIGINT NOT NULL,
    -- Written by every act that opens or ends sessions of the user, so that
    -- these acts exclude each other.
    revision      BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE memberships (
    tenant_id     TEXT NOT NULL REFERENCES tenants (id),
    user_id       TEXT NOT NULL REFERENCES users (id),
    role          TEXT NOT NULL,
    status        TEXT NOT NULL,
    name          TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    last_login_at BIGINT,
    PRIMARY KEY (tenant_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE invitations (
    id          TEXT PRIMARY KEY,
    tenant_id   TEXT NOT NULL REFERENCES tenants (id),
    email       TEXT NOT NULL,
    role        TEXT NOT NULL,
    name        TEXT NOT NULL,
    locale      TEXT NOT NULL,
    state       TEXT NOT NULL,
    invited_by  TEXT REFERENCES users (id), -- NULL: the operator
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    accepted_at BIGINT,
    revoked_at  BIGINT
);
CREATE UNIQUE INDEX invitations_pending ON invitations (tenant_id, email) WHERE state = 'PENDING';

CREATE TABLE resets (
    id         TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
);
CREATE INDEX resets_user ON resets (user_id);

-- The tokens of links sent by mail. A subject (an invitation or a reset) may
-- have several: each is made when its mail leaves, so that no usable token
-- ever lies in the database.
CREATE TABLE link_tokens (
    hash       BYTEA PRIMARY KEY,
    subject_id TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX link_tokens_subject ON link_tokens (subject_id);

CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    token_hash   BYTEA NOT NULL UNIQUE,
    user_id      TEXT NOT NULL REFERENCES users (id),
    tenant_id    TEXT NOT NULL REFERENCES tenants (id),
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    ip           TEXT NOT NULL,
    user_agent   TEXT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id, created_at);
CREATE INDEX sessions_tenant ON sessions (tenant_id);

CREATE TABLE operator_keys (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    hash       BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE mails (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    recipient  TEXT NOT NULL,
    subject_id TEXT NOT NULL, -- what it is about; empty when the recipient says it all
    state      TEXT NOT NULL,
    tries      BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    sent_at    BIGINT,
    last_error TEXT NOT NULL
);
CREATE INDEX mails_due ON mails (next_at) WHERE state = 'queued';
CREATE INDEX mails_subject ON mails (subject_id, created_at);

-- Browsers that have signed in before, by the hash of their cookie.
CREATE TABLE devices (
    hash       BYTEA PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL
);
CREATE INDEX devices_user ON devices (user_id, created_at);

-- Counters of attempts. A bucket is named by what it counts for.
CREATE TABLE throttles (
    bucket TEXT PRIMARY KEY,
    hits   BIGINT NOT NULL,
    since  BIGINT NOT NULL,
    until  BIGINT NOT NULL -- no attempt is evaluated before
);
CREATE INDEX throttles_until ON throttles (until);

CREATE TABLE events (
    id          TEXT PRIMARY KEY,
    at          BIGINT NOT NULL,
    action      TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    actor_type  TEXT NOT NULL,
    actor_id    TEXT NOT NULL,
    actor_email TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id   TEXT NOT NULL,
    tenant_id   TEXT NOT NULL,
    ip          TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    changes     TEXT NOT NULL -- JSON array
);
CREATE INDEX events_tenant ON events (tenant_id, at);
