-- +goose Up

-- The provider's sessions, hashed, behind a session before a step-up that the provider did by another session of its own. A
-- logout of each ends that one.
CREATE TABLE former_provider_sessions (
    session_id       TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    provider_session TEXT NOT NULL,
    PRIMARY KEY (session_id, provider_session)
);
CREATE INDEX former_provider_sessions_session ON former_provider_sessions (provider_session);
