-- +goose Up

-- The policies of tenants, all versions. The highest version holds, unless its time to be
-- confirmed has passed: then the highest that needs no confirmation does. Nodes of the
-- version before know no policies.
CREATE TABLE policies (
    tenant_id     TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    version       BIGINT NOT NULL, -- from 1
    text          TEXT NOT NULL,   -- Cedar
    mode          TEXT NOT NULL,   -- enforce or observe
    confirm_until BIGINT,          -- NULL: it needs no confirmation, or has it
    created_at    BIGINT NOT NULL,
    created_by    TEXT NOT NULL,   -- a user
    PRIMARY KEY (tenant_id, version)
);
