-- +goose Up

-- What the operator allows a tenant to have; NULL: as many as it likes.
ALTER TABLE tenants ADD COLUMN quota_people BIGINT;
ALTER TABLE tenants ADD COLUMN quota_api_keys BIGINT;
ALTER TABLE tenants ADD COLUMN quota_webhooks BIGINT;
