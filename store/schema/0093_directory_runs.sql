-- +goose Up

-- Runs of a connection's directory: its writes without a pause. A row is written with the effects of each write, so that
-- lists needn't read these.
CREATE TABLE directory_runs (
    id            TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    tenant_id     TEXT NOT NULL,
    began_at      BIGINT NOT NULL,
    last_at       BIGINT NOT NULL, -- of the last write so far
    made          BIGINT NOT NULL DEFAULT 0,
    changed       BIGINT NOT NULL DEFAULT 0,
    suspended     BIGINT NOT NULL DEFAULT 0,
    removed       BIGINT NOT NULL DEFAULT 0,
    alarmed       BOOLEAN NOT NULL DEFAULT FALSE, -- OWNERs were told that it ends the access of many
    undo_state    TEXT NOT NULL DEFAULT '', -- '', running, done
    undo_by       TEXT NOT NULL DEFAULT '', -- the account that has asked for it
    undo_at       BIGINT,
    undone        BIGINT NOT NULL DEFAULT 0, -- people who are as they were before the run
    left_as_is    BIGINT NOT NULL DEFAULT 0 -- people whom the undo has left as they are
);
CREATE INDEX directory_runs_connection ON directory_runs (connection_id, began_at, id);
CREATE INDEX directory_runs_last ON directory_runs (connection_id, last_at);
CREATE INDEX directory_runs_old ON directory_runs (last_at);
CREATE INDEX directory_runs_undo ON directory_runs (undo_at) WHERE undo_state = 'running';
