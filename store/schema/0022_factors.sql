-- +goose Up

-- How the user of a session was authenticated. The version before writes none of this:
-- its sessions have a password.
ALTER TABLE sessions ADD COLUMN aal BIGINT NOT NULL DEFAULT 1;
ALTER TABLE sessions ADD COLUMN amr TEXT NOT NULL DEFAULT 'pwd'; -- RFC 8176, separated by spaces
ALTER TABLE sessions ADD COLUMN proved_at BIGINT NOT NULL DEFAULT 0; -- the last proof of any kind; 0: at created_at
ALTER TABLE sessions ADD COLUMN factor_at BIGINT NOT NULL DEFAULT 0; -- the last proof with a second factor; 0: none
ALTER TABLE sessions ADD COLUMN remembered BOOLEAN NOT NULL DEFAULT FALSE; -- the browser stood in for the second factor

-- Confirmed factors of the account, disabled ones too. It changes with them, in the same
-- transaction.
ALTER TABLE users ADD COLUMN factors BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN passkeys BIGINT NOT NULL DEFAULT 0; -- of these

-- When a second factor was proved in the browser, which then stands in for it, for as long
-- as a tenant allows; 0: it does not.
ALTER TABLE devices ADD COLUMN second_at BIGINT NOT NULL DEFAULT 0;

-- What a tenant demands. mfa_since is NULL where second factors are optional.
ALTER TABLE tenants ADD COLUMN mfa_since BIGINT;
ALTER TABLE tenants ADD COLUMN mfa_roles TEXT NOT NULL DEFAULT ''; -- separated by spaces; none: all
ALTER TABLE tenants ADD COLUMN mfa_grace_days BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN mfa_remember_days BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN step_up_minutes BIGINT NOT NULL DEFAULT 0; -- 0: the default

CREATE TABLE factors (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    kind          TEXT NOT NULL, -- totp or passkey
    name          TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    confirmed_at  BIGINT,        -- NULL: being enrolled
    last_used_at  BIGINT,
    disabled_at   BIGINT,        -- NULL: in use
    seed_sealed   BYTEA,         -- of a totp, with the master key
    last_step     BIGINT NOT NULL DEFAULT 0, -- of the last code that was accepted
    credential_id BYTEA UNIQUE,  -- of a passkey
    credential    BYTEA,         -- of a passkey: its public key and what its verification needs
    synced        BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX factors_user ON factors (user_id, created_at);

-- Each is good once.
CREATE TABLE recovery_codes (
    hash       BYTEA PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL
);
CREATE INDEX recovery_codes_user ON recovery_codes (user_id);

-- Proofs that were begun. Each is good once, for its purpose and its account.
CREATE TABLE challenges (
    hash       BYTEA PRIMARY KEY,
    purpose    TEXT NOT NULL,
    user_id    TEXT REFERENCES users (id) ON DELETE CASCADE, -- NULL: anybody, with a passkey
    tenant_id  TEXT NOT NULL, -- to sign in to; may be empty
    session_id TEXT NOT NULL, -- of who began it; empty without a session
    generation BIGINT NOT NULL, -- of the account's credentials
    methods    TEXT NOT NULL, -- separated by spaces
    state      BYTEA,         -- of the verifier of passkeys
    tries      BIGINT NOT NULL,
    ends_at    BIGINT NOT NULL
);
CREATE INDEX challenges_user ON challenges (user_id);
CREATE INDEX challenges_ends ON challenges (ends_at);
