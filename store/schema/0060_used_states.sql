-- +goose Up

-- States of sign-ins that were answered: each is used once, over all nodes.
CREATE TABLE used_states (
    state_hash BYTEA PRIMARY KEY,
    ends_at    BIGINT NOT NULL
);
CREATE INDEX used_states_ends ON used_states (ends_at);
