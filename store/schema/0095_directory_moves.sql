-- +goose Up

-- Who has joined or left a group by an effect of a directory, by the id of a User.
CREATE TABLE directory_moves (
    effect_id TEXT NOT NULL REFERENCES directory_effects (id) ON DELETE CASCADE,
    member_id TEXT NOT NULL,
    run_id    TEXT NOT NULL,
    group_id  TEXT NOT NULL,
    at        BIGINT NOT NULL,
    joined    BOOLEAN NOT NULL, -- else left
    undone    TEXT NOT NULL DEFAULT '', -- as that of effects
    PRIMARY KEY (effect_id, member_id)
);
CREATE INDEX directory_moves_run ON directory_moves (run_id, group_id, member_id, at);
CREATE INDEX directory_moves_member ON directory_moves (member_id);
