-- +goose Up

-- The last address that the member had in the domain: a provider that still says it names the member.
ALTER TABLE former_domains ADD COLUMN address TEXT NOT NULL DEFAULT '';
CREATE INDEX former_domains_address ON former_domains (tenant_id, address) WHERE address <> '';
