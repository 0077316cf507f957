-- +goose Up

-- What the nodes on one database have to agree on, and what a tenant was promised.

-- When the data of a closed tenant is destroyed. It is fixed when the tenant is
-- closed, so no node's setting and no node's clock can bring it forward. A tenant
-- is closed while closed_at is set; status says "frozen" of one that is also frozen.
-- NULL: closed by the version before, which any node of this one completes.
ALTER TABLE tenants ADD COLUMN destroy_at BIGINT;
CREATE INDEX tenants_closed ON tenants (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX tenants_destroyed ON tenants (destroy_at) WHERE destroy_at IS NOT NULL;

-- The settings of a node that have to be the same on all, as "name=value" lines.
-- Empty: a node of the version before.
ALTER TABLE nodes ADD COLUMN settings TEXT NOT NULL DEFAULT '';

-- The clock that everything is judged by is the database's, moved by this. It is
-- 0 but in tests of expiry, where the first node to start decides (--clock-offset).
-- The row is also the lock under which nodes register one after the other.
CREATE TABLE shared_clock (
    id    BIGINT PRIMARY KEY,
    moved BIGINT NOT NULL -- microseconds
);
INSERT INTO shared_clock (id, moved) VALUES (1, 0);
