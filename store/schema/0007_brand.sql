-- +goose Up

-- How a tenant presents itself. '' leaves the accent of the installation.
ALTER TABLE tenants ADD COLUMN accent TEXT NOT NULL DEFAULT ''; -- like #3b4ccf

-- A table of its own, so that no row which a check or a login reads has an image
-- in it. The image comes last: what is asked about a logo is read without it.
-- The version before destroys a tenant without knowing of logos; they go with it.
CREATE TABLE logos (
    tenant_id TEXT PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    hash      TEXT NOT NULL, -- of the image; two tenants may have the same one
    width     BIGINT NOT NULL,
    height    BIGINT NOT NULL,
    ground    TEXT NOT NULL, -- '', or that on which alone it can be seen: light, dark
    image     BYTEA NOT NULL -- a PNG
);
CREATE INDEX logos_hash ON logos (hash);
