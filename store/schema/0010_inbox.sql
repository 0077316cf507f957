-- +goose Up

-- What refused and anonymous callers leave, until the worker has recorded it. A
-- row counts what is alike within a minute. Writing one takes no lock that
-- anybody else waits for. See docs/decisions/0011-inbox.md.
CREATE TABLE inbox (
    source    TEXT NOT NULL,   -- a client network, a user, a key, or a counter of attempts
    action    TEXT NOT NULL,
    reason    TEXT NOT NULL,   -- why it was refused: a problem's code; '' for what was asked for
    subject   TEXT NOT NULL,   -- tells rows of one source apart
    minute    BIGINT NOT NULL, -- its beginning
    email     TEXT NOT NULL,   -- canonical address that the worker looks up; '' for none
    return_to TEXT NOT NULL,   -- for the mail of a reset
    event     TEXT NOT NULL,   -- JSON: the first one's
    hits      BIGINT NOT NULL, -- how many there were
    recorded  BIGINT NOT NULL, -- how many of them the trail has
    due_at    BIGINT NOT NULL, -- when the worker takes the row
    aside     BIGINT NOT NULL DEFAULT 0, -- since when it is set aside because it could not be recorded; 0: it isn't
    PRIMARY KEY (source, action, reason, subject, minute)
);
CREATE INDEX inbox_due ON inbox (due_at);
CREATE INDEX inbox_action ON inbox (action, minute);
CREATE INDEX inbox_aside ON inbox (aside) WHERE aside > 0;

-- How many refusals an event stands for: its change "count", to be added up.
ALTER TABLE events ADD COLUMN times BIGINT NOT NULL DEFAULT 1;

-- From when on a counter decides nothing. 0: the version before wrote it, which
-- keeps every counter for 30 days.
ALTER TABLE throttles ADD COLUMN expires_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX throttles_expires ON throttles (expires_at);
