-- +goose Up

-- What the last reading of a provider's metadata, or discovery document, said. failed_at 0: it has succeeded.
ALTER TABLE connection_parameters ADD COLUMN failed_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE connection_parameters ADD COLUMN failing_since BIGINT NOT NULL DEFAULT 0; -- the first failure since the last success
ALTER TABLE connection_parameters ADD COLUMN retry_at BIGINT NOT NULL DEFAULT 0;      -- 0: with the daily reading
ALTER TABLE connection_parameters ADD COLUMN failing_noticed BOOLEAN NOT NULL DEFAULT FALSE; -- OWNERs were told

-- Readings because of responses by certificates that aren't known, which are limited apart from all others: when the
-- last one began, the fingerprint of the certificate that the response named, and how many there were for it in a row.
ALTER TABLE connection_parameters ADD COLUMN unknown_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE connection_parameters ADD COLUMN unknown_signer TEXT NOT NULL DEFAULT '';
ALTER TABLE connection_parameters ADD COLUMN unknown_readings BIGINT NOT NULL DEFAULT 0;

CREATE INDEX connection_parameters_retry ON connection_parameters (retry_at) WHERE retry_at > 0;
