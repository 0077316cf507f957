-- +goose Up

-- Providers of tenants, by which their people sign in.
CREATE TABLE connections (
    id                TEXT PRIMARY KEY,
    tenant_id         TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    type              TEXT NOT NULL, -- oidc
    name              TEXT NOT NULL,
    product           TEXT NOT NULL,
    status            TEXT NOT NULL, -- draft, active, disabled
    created_at        BIGINT NOT NULL,
    last_sign_in_at   BIGINT,
    jit               TEXT NOT NULL, -- off, invited, domains
    jit_role          TEXT NOT NULL,
    groups_from       TEXT NOT NULL DEFAULT '',    -- the claim with the groups; '': none
    groups_seen       BOOLEAN NOT NULL DEFAULT FALSE, -- the provider has sent that claim
    factor_acr        TEXT NOT NULL DEFAULT '',    -- values of acr that stand for a second factor, words
    trust_factor      BOOLEAN NOT NULL DEFAULT FALSE,
    -- The last switch to another issuer or client. Identities count from their first use after it.
    switched_at       BIGINT NOT NULL DEFAULT 0,
    -- When the OWNERs were told that the provider refuses the client; at most once a day.
    client_noticed_at BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX connections_tenant ON connections (tenant_id, created_at, id);
