-- +goose Up

-- What a tenant demands of sign-on; none: off. A provisional change returns to what was before
-- unless it is confirmed by confirm_by.
CREATE TABLE sso_policies (
    tenant_id     TEXT PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    mode          TEXT NOT NULL, -- off, optional, required
    guests        TEXT NOT NULL, -- allowed, refused
    revision      BIGINT NOT NULL,
    changed_at    BIGINT NOT NULL,
    confirm_by    BIGINT, -- NULL: nothing to confirm
    before_mode   TEXT NOT NULL DEFAULT '',
    before_guests TEXT NOT NULL DEFAULT ''
);
CREATE INDEX sso_policies_confirm ON sso_policies (confirm_by) WHERE confirm_by IS NOT NULL;
