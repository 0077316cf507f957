-- +goose Up

-- Domains of the tenant in which a member's address has lain before it was changed: a demand for sign-on covers
-- the member by them as if it still did, so that no change of address leads out of it.
CREATE TABLE former_domains (
    tenant_id TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    domain    TEXT NOT NULL, -- as in domains; counts while the tenant has it there
    left_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, domain),
    FOREIGN KEY (tenant_id, user_id) REFERENCES memberships (tenant_id, user_id) ON DELETE CASCADE
);
CREATE INDEX former_domains_user ON former_domains (user_id);
