-- +goose Up

-- Invitations whose mail has failed are listed by this, without looking at every invitation.
-- docs/upgrades.md says how to build the index on PostgreSQL before, without blocking writers.
CREATE INDEX IF NOT EXISTS mails_failed ON mails (subject_id) WHERE state = 'failed';
