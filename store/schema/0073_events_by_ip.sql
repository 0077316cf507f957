-- +goose Up

-- What came from an address, in the trail of a tenant.
CREATE INDEX events_by_ip ON events (tenant_id, ip, seq);
