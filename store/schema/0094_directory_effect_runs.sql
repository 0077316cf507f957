-- +goose Up

-- The run that an effect belongs to (empty: it was recorded before there were runs), and what the undo of the run has
-- made of it: empty, nothing yet; done; or why the person was left as they are.
ALTER TABLE directory_effects ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
ALTER TABLE directory_effects ADD COLUMN undone TEXT NOT NULL DEFAULT '';
CREATE INDEX directory_effects_run ON directory_effects (run_id, at, id);
CREATE INDEX directory_effects_subject ON directory_effects (subject_id, run_id);
