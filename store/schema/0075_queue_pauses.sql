-- +goose Up

-- Queues of which nothing is sent, until the operator resumes them.
CREATE TABLE queue_pauses (
    queue  TEXT NOT NULL,   -- mail or webhook
    scope  TEXT NOT NULL,   -- '': all of it; of webhooks, the id of a tenant or of a webhook
    since  BIGINT NOT NULL,
    reason TEXT NOT NULL,   -- may be empty
    PRIMARY KEY (queue, scope)
);
