-- +goose Up

-- What each write of a directory has changed, before and after, so that a run can be shown and taken back.
CREATE TABLE directory_effects (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    tenant_id     TEXT NOT NULL,
    at            BIGINT NOT NULL,
    kind          TEXT NOT NULL, -- made, changed, suspended, resumed, removed
    subject_id    TEXT NOT NULL, -- the id of the User or Group, as the directory knows it
    user_id       TEXT NOT NULL, -- the account; empty: none yet
    before        TEXT NOT NULL, -- JSON; empty: it wasn't there
    after         TEXT NOT NULL -- JSON; empty: it is gone
);
CREATE INDEX directory_effects_connection ON directory_effects (connection_id, at, id);
CREATE INDEX directory_effects_user ON directory_effects (user_id);
CREATE INDEX directory_effects_at ON directory_effects (at);
