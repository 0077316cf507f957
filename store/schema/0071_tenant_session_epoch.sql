-- +goose Up

-- Rows of sessions of earlier epochs are deleted later: until swept_epoch has caught up there may be some.
ALTER TABLE tenants ADD COLUMN session_epoch BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN swept_epoch BIGINT NOT NULL DEFAULT 0;
