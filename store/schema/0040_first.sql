-- +goose Up

-- One text for SQLite and PostgreSQL: ids are TEXT made by the program, times
-- are microseconds since 1970 in BIGINT from the program's clock, secrets are
-- SHA-256 hashes in BYTEA. Migrations only go forward.

CREATE TABLE tenants (
    id                   TEXT PRIMARY KEY,
    name                 TEXT NOT NULL,
    status               TEXT NOT NULL,
    created_at           BIGINT NOT NULL,
    -- Written to take the lock under which the people of a tenant change.
    revision             BIGINT NOT NULL DEFAULT 0,
    -- What the tenant has tightened. NULL and '' leave what the installation says.
    session_idle         BIGINT, -- microseconds
    session_absolute     BIGINT, -- microseconds
    invitation_days      BIGINT,
    allowed_domains      TEXT NOT NULL DEFAULT '', -- A-labels, a space between
    -- When its OWNER closed it. It is closed while this is set; status says "frozen" of one
    -- that is also frozen.
    closed_at            BIGINT,
    -- How a tenant presents itself. '' leaves the accent of the installation.
    accent               TEXT NOT NULL DEFAULT '', -- like #3b4ccf
    -- When the data of a closed tenant is destroyed. It is fixed when the tenant is
    -- closed, so no node's setting and no node's clock can bring it forward.
    destroy_at           BIGINT,
    -- Random with every change of the tenant's roles; 0: it has never had any.
    rules_revision       BIGINT NOT NULL DEFAULT 0,
    -- What a tenant demands. mfa_since is NULL where second factors are optional.
    mfa_since            BIGINT,
    mfa_roles            TEXT NOT NULL DEFAULT '', -- separated by spaces; none: all
    mfa_grace_days       BIGINT NOT NULL DEFAULT 0,
    mfa_remember_days    BIGINT NOT NULL DEFAULT 0,
    step_up_minutes      BIGINT NOT NULL DEFAULT 0, -- 0: the default
    name_key             TEXT NOT NULL DEFAULT '',
    -- What the operator allows a tenant to have; NULL: as many as it likes.
    quota_people         BIGINT,
    quota_api_keys       BIGINT,
    quota_webhooks       BIGINT,
    -- How many events of changes the operator allows a tenant in a day of UTC; NULL: any number.
    quota_events_per_day BIGINT
);
CREATE INDEX tenants_closed ON tenants (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX tenants_destroyed ON tenants (destroy_at) WHERE destroy_at IS NOT NULL;
CREATE INDEX tenants_name ON tenants (name_key, id);
-- Lists of tenants are sorted by it.
CREATE INDEX tenants_created ON tenants (created_at, id);

CREATE TABLE users (
    id                    TEXT PRIMARY KEY,
    email                 TEXT NOT NULL UNIQUE, -- canonical
    password_hash         TEXT NOT NULL,        -- PHC string; empty: no password yet
    created_at            BIGINT NOT NULL,
    -- Written by every act that opens or ends sessions of the user, so that
    -- these acts exclude each other.
    revision              BIGINT NOT NULL DEFAULT 0,
    -- The language in which a person is written to (BCP 47), that of the invitation
    -- the account came from; empty: none was chosen.
    locale                TEXT NOT NULL DEFAULT '',
    -- Counts up when the credentials of a person are replaced. Trust in a browser
    -- carries the number under which it was made, and counts for nothing under
    -- another one.
    credential_generation BIGINT NOT NULL DEFAULT 0,
    -- When the last membership of the account ended, for what has to go later than
    -- that. It decides nothing while there is a membership.
    left_at               BIGINT,
    -- Confirmed factors of the account, disabled ones too. It changes with them, in the same
    -- transaction.
    factors               BIGINT NOT NULL DEFAULT 0,
    passkeys              BIGINT NOT NULL DEFAULT 0 -- of these
);
CREATE INDEX users_left ON users (left_at) WHERE left_at IS NOT NULL;

CREATE TABLE memberships (
    tenant_id     TEXT NOT NULL REFERENCES tenants (id),
    user_id       TEXT NOT NULL REFERENCES users (id),
    role          TEXT NOT NULL,
    status        TEXT NOT NULL,
    name          TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    last_login_at BIGINT,
    -- Address and name as they are searched: neither database folds letters the way
    -- the program does.
    search        TEXT NOT NULL DEFAULT '',
    name_key      TEXT NOT NULL DEFAULT '',
    email_key     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);
CREATE INDEX memberships_page ON memberships (tenant_id, created_at, user_id);
CREATE INDEX memberships_unfolded ON memberships (user_id, tenant_id) WHERE substr(search, 1, 1) <> ' ';
CREATE INDEX memberships_name ON memberships (tenant_id, name_key, user_id);
CREATE INDEX memberships_email ON memberships (tenant_id, email_key, user_id);
-- Lists are sorted by each column without reading all of their rows. The roles are those of
-- rankOf.
CREATE INDEX memberships_role ON memberships (tenant_id, (CASE role WHEN 'VIEWER' THEN 1 WHEN 'USER' THEN 2 WHEN 'ADMIN' THEN 3 WHEN 'OWNER' THEN 4 ELSE 0 END), user_id);
CREATE INDEX memberships_status ON memberships (tenant_id, (CASE status WHEN 'active' THEN 0 ELSE 1 END), user_id);
CREATE INDEX memberships_seen ON memberships (tenant_id, (coalesce(last_login_at, 0)), user_id);

CREATE TABLE invitations (
    id             TEXT PRIMARY KEY,
    tenant_id      TEXT NOT NULL REFERENCES tenants (id),
    email          TEXT NOT NULL,
    role           TEXT NOT NULL,
    name           TEXT NOT NULL,
    locale         TEXT NOT NULL,
    state          TEXT NOT NULL,
    invited_by     TEXT REFERENCES users (id), -- NULL: the operator
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    accepted_at    BIGINT,
    revoked_at     BIGINT,
    -- How many days it is valid for, from the last mail on.
    days           BIGINT NOT NULL DEFAULT 7,
    -- The service key that sent it; '' for one that a person or the operator sent.
    service_key_id TEXT NOT NULL DEFAULT '',
    -- What rows are found and sorted by, folded by the program: without case and accents.
    -- search begins with a space where it is folded. The keys are hexadecimal digits, which
    -- sort alike in every collation. The program fills them in batches.
    search         TEXT NOT NULL DEFAULT '',
    name_key       TEXT NOT NULL DEFAULT '',
    email_key      TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX invitations_pending ON invitations (tenant_id, email) WHERE state = 'PENDING';
CREATE INDEX invitations_page ON invitations (tenant_id, created_at, id);
CREATE INDEX invitations_service_key ON invitations (service_key_id) WHERE service_key_id <> '';
CREATE INDEX invitations_email ON invitations (email);
CREATE INDEX invitations_unfolded ON invitations (id) WHERE substr(search, 1, 1) <> ' ';
CREATE INDEX invitations_name ON invitations (tenant_id, name_key, id);
CREATE INDEX invitations_address ON invitations (tenant_id, email_key, id);
CREATE INDEX invitations_role ON invitations (tenant_id, (CASE role WHEN 'VIEWER' THEN 1 WHEN 'USER' THEN 2 WHEN 'ADMIN' THEN 3 WHEN 'OWNER' THEN 4 ELSE 0 END), id);
CREATE INDEX invitations_expiry ON invitations (tenant_id, expires_at, id);
-- What erasing and exporting an account look for by person or address, without reading the
-- tables: others wait for an erasure. Deleting an account asks for its invitations, too.
CREATE INDEX invitations_inviter ON invitations (invited_by) WHERE invited_by IS NOT NULL;

CREATE TABLE resets (
    id         TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
);
CREATE INDEX resets_user ON resets (user_id);

-- The tokens of links sent by mail. A subject (an invitation or a reset) may
-- have several: each is made when its mail leaves, so that no usable token
-- ever lies in the database.
CREATE TABLE link_tokens (
    hash       BYTEA PRIMARY KEY,
    subject_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- A token that a newer mail has replaced is known, and opens nothing.
    retired_at BIGINT
);
CREATE INDEX link_tokens_subject ON link_tokens (subject_id);

CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    token_hash   BYTEA NOT NULL UNIQUE,
    user_id      TEXT NOT NULL REFERENCES users (id),
    tenant_id    TEXT NOT NULL REFERENCES tenants (id),
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    ip           TEXT NOT NULL,
    user_agent   TEXT NOT NULL,
    -- How the user was authenticated.
    aal          BIGINT NOT NULL DEFAULT 1,
    amr          TEXT NOT NULL DEFAULT 'pwd',   -- RFC 8176, separated by spaces
    proved_at    BIGINT NOT NULL DEFAULT 0,     -- the last proof of any kind; 0: at created_at
    factor_at    BIGINT NOT NULL DEFAULT 0,     -- the last proof with a second factor; 0: none
    remembered   BOOLEAN NOT NULL DEFAULT FALSE -- the browser stood in for the second factor
);
CREATE INDEX sessions_user ON sessions (user_id, created_at);
CREATE INDEX sessions_tenant ON sessions (tenant_id);

CREATE TABLE operator_keys (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    hash       BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    -- When an operator key expires; NULL: never.
    expires_at BIGINT,
    -- What it may do, words; empty: everything.
    may        TEXT NOT NULL DEFAULT ''
);

CREATE TABLE mails (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    recipient  TEXT NOT NULL,
    subject_id TEXT NOT NULL, -- what it is about; empty when the recipient says it all
    state      TEXT NOT NULL,
    tries      BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    sent_at    BIGINT,
    last_error TEXT NOT NULL,
    -- Where the link of a mail leads on to in the end, as the page that asked for it
    -- has allowed: a path or an address. '' for nowhere. It is no secret.
    return_to  TEXT NOT NULL DEFAULT '',
    -- Whose mail it is: the tenant, or the client network that asked for it. Mails of
    -- one share don't wait for those of another.
    share      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX mails_due ON mails (next_at, id) WHERE state = 'queued';
-- What somebody waits for is found however much else is queued.
CREATE INDEX mails_urgent ON mails (next_at, id) WHERE state = 'queued' AND kind IN ('reset', 'password_changed', 'signed_in');
-- What is finished is forgotten a day later, or the address in it, without a look at
-- every mail there is.
CREATE INDEX mails_finished ON mails (created_at) WHERE state <> 'queued' AND recipient <> '';
-- mails_urgent, with the mails about a change of the address.
CREATE INDEX mails_urgent_account ON mails (next_at, id)
WHERE state = 'queued' AND kind IN ('reset', 'password_changed', 'signed_in', 'email_confirm', 'email_requested', 'email_changed', 'email_restored');
-- The state of the newest mail of an invitation, from the index alone.
CREATE INDEX mails_newest ON mails (subject_id, created_at, id, state);
-- Invitations whose mail has failed are listed by this, without looking at every invitation.
CREATE INDEX mails_failed ON mails (subject_id) WHERE state = 'failed';
CREATE INDEX mails_recipient ON mails (recipient) WHERE recipient <> '';

-- Browsers that have signed in before, by the hash of their cookie.
CREATE TABLE devices (
    hash                  BYTEA PRIMARY KEY,
    user_id               TEXT NOT NULL REFERENCES users (id),
    created_at            BIGINT NOT NULL,
    credential_generation BIGINT NOT NULL DEFAULT 0,
    -- When the browser signed in again; 0: not since it was made, as far as known.
    used_at               BIGINT NOT NULL DEFAULT 0,
    -- When a second factor was proved in the browser, which then stands in for it, for as long
    -- as a tenant allows; 0: it does not.
    second_at             BIGINT NOT NULL DEFAULT 0,
    -- From where a second factor was proved in the browser, for its person; both are empty
    -- while second_at is 0.
    ip                    TEXT NOT NULL DEFAULT '',
    user_agent            TEXT NOT NULL DEFAULT ''
);
CREATE INDEX devices_user ON devices (user_id, created_at);
-- What a sweep deletes is found without reading the table, since others wait meanwhile.
CREATE INDEX devices_created ON devices (created_at);
CREATE INDEX devices_proved ON devices (second_at) WHERE second_at <> 0;

-- Counters of attempts. A bucket is named by what it counts for.
CREATE TABLE throttles (
    bucket     TEXT PRIMARY KEY,
    hits       BIGINT NOT NULL,
    since      BIGINT NOT NULL,
    until      BIGINT NOT NULL, -- no attempt is evaluated before
    -- From when on the counter decides nothing.
    expires_at BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX throttles_until ON throttles (until);
CREATE INDEX throttles_expires ON throttles (expires_at);

CREATE TABLE events (
    id          TEXT PRIMARY KEY,
    at          BIGINT NOT NULL,
    action      TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    actor_type  TEXT NOT NULL,
    actor_id    TEXT NOT NULL,
    actor_email TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id   TEXT NOT NULL,
    tenant_id   TEXT NOT NULL,
    ip          TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    changes     TEXT NOT NULL, -- JSON array
    -- The events of a tenant, and those of the installation, are chains: each
    -- event has the number after the last one's, and its hash covers the last one's
    -- hash. What is personal is covered by way of a salted digest, so that it can be
    -- blanked later without breaking the chain. See chain.go.
    seq         BIGINT NOT NULL DEFAULT 0,
    salt        BYTEA, -- NULL: blanked
    digest      BYTEA,
    hash        BYTEA,
    -- How many refusals an event stands for: its change "count", to be added up.
    times       BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX events_page ON events (tenant_id, seq);
-- What happened lately, counted without reading the events themselves: sign-ins
-- by day, refusals by kind.
CREATE INDEX events_lately ON events (tenant_id, outcome, at, action);
-- What is held about a person is found by these.
CREATE INDEX events_actor ON events (actor_id, at, id);
CREATE INDEX events_target ON events (target_id, at, id);
-- Searching a trail reads only what is found.
CREATE INDEX events_by_request ON events (tenant_id, request_id, seq);
CREATE INDEX events_by_target ON events (tenant_id, target_id, seq);
CREATE INDEX events_by_actor ON events (tenant_id, actor_id, seq);
CREATE INDEX events_by_address ON events (tenant_id, actor_email, seq);
CREATE INDEX events_by_action ON events (tenant_id, action, seq);
CREATE INDEX events_refused ON events (tenant_id, seq) WHERE outcome = 'refused';
-- Replays to the installation's webhooks read events by their time.
CREATE INDEX events_by_time ON events (at, id, action);

-- Whatever ends or changes what a session may do adds a row here, in the same
-- transaction. seq is drawn from change_position as the last statement before
-- the commit; the lock on its only row makes the order of seq the order of
-- commits, and a rolled-back draw leaves no gap.
CREATE TABLE change_position (
    id   BIGINT PRIMARY KEY,
    last BIGINT NOT NULL
);
INSERT INTO change_position (id, last) VALUES (1, 0);

CREATE TABLE changes (
    seq     BIGINT PRIMARY KEY,
    kind    TEXT NOT NULL,
    subject TEXT NOT NULL,
    at      BIGINT NOT NULL
);
CREATE INDEX changes_at ON changes (at);

-- The processes that answer from memory. A revoking call waits until all of
-- them have applied its change, or for the longest of their leases.
CREATE TABLE nodes (
    id       TEXT PRIMARY KEY,
    lease    BIGINT NOT NULL, -- microseconds
    applied  BIGINT NOT NULL, -- highest seq that is applied
    beat     BIGINT NOT NULL, -- counts up while the node lives
    -- The settings of a node that have to be the same on all, as "name=value" lines.
    settings TEXT NOT NULL DEFAULT ''
);

-- Secrets that all nodes share, such as the one that signs cursors; each is
-- made by whoever needs it first.
CREATE TABLE shared_secrets (
    name  TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);

-- The ends of the chains; the row is the lock under which one grows.
CREATE TABLE audit_chains (
    tenant_id   TEXT PRIMARY KEY, -- empty: the installation
    origin      BIGINT NOT NULL,  -- 0; not read any more
    last        BIGINT NOT NULL,  -- seq of the last event
    head        BYTEA,            -- its hash; NULL while there is none
    -- The last event of each trail that was deleted because it was too old. The chain is
    -- verified from there on.
    anchor      BIGINT NOT NULL DEFAULT 0, -- its number; 0: none was deleted
    anchor_hash BYTEA,                     -- its hash; NULL: it has none
    -- How many such events a trail got in one day, in days since 1970. It is in the row that
    -- each event writes anyway.
    counted_day BIGINT NOT NULL DEFAULT 0,
    counted     BIGINT NOT NULL DEFAULT 0,
    -- How far the numbers of a trail's events are from the order of their times, so that a search
    -- by time finds where to read: see disorder.go.
    timed       BIGINT NOT NULL DEFAULT 0, -- the last event that the others include
    latest_at   BIGINT NOT NULL DEFAULT 0, -- the latest time of an event
    disorder    BIGINT NOT NULL DEFAULT 0  -- by how much one is before an earlier one, at most
);

-- A table of its own, so that no row which a check or a login reads has an image
-- in it. The image comes last: what is asked about a logo is read without it.
CREATE TABLE logos (
    tenant_id TEXT PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    hash      TEXT NOT NULL, -- of the image; two tenants may have the same one
    width     BIGINT NOT NULL,
    height    BIGINT NOT NULL,
    ground    TEXT NOT NULL, -- '', or that on which alone it can be seen: light, dark
    image     BYTEA NOT NULL -- a PNG
);
CREATE INDEX logos_hash ON logos (hash);

-- The oldest binaries that can go on with this schema, by the newest migration
-- that they know. A migration that takes something away from them raises it:
-- UPDATE oldest_binary SET knows = 41; see docs/upgrades.md. Databases whose schema was
-- made in forty steps have 8, so a new one has it, too.
CREATE TABLE oldest_binary (
    id    BIGINT PRIMARY KEY,
    knows BIGINT NOT NULL
);
INSERT INTO oldest_binary (id, knows) VALUES (1, 8);

-- What refused and anonymous callers leave, until the worker has recorded it. A
-- row counts what is alike within a minute. Writing one takes no lock that
-- anybody else waits for. See docs/decisions/0011-inbox.md.
CREATE TABLE inbox (
    source    TEXT NOT NULL, -- a client network, a user, a key, or a counter of attempts
    action    TEXT NOT NULL,
    reason    TEXT NOT NULL,             -- why it was refused: a problem's code; '' for what was asked for
    subject   TEXT NOT NULL,             -- tells rows of one source apart
    minute    BIGINT NOT NULL,           -- its beginning
    email     TEXT NOT NULL,             -- canonical address that the worker looks up; '' for none
    return_to TEXT NOT NULL,             -- for the mail of a reset
    event     TEXT NOT NULL,             -- JSON: the first one's
    hits      BIGINT NOT NULL,           -- how many there were
    recorded  BIGINT NOT NULL,           -- how many of them the trail has
    due_at    BIGINT NOT NULL,           -- when the worker takes the row
    aside     BIGINT NOT NULL DEFAULT 0, -- since when it is set aside because it could not be recorded; 0: it isn't
    PRIMARY KEY (source, action, reason, subject, minute)
);
CREATE INDEX inbox_due ON inbox (due_at);
CREATE INDEX inbox_action ON inbox (action, minute);
CREATE INDEX inbox_aside ON inbox (aside) WHERE aside > 0;

-- Attempts at a password whose outcome isn't known yet, by the names of their
-- counters in throttles. What a node that was killed has left runs out.
CREATE TABLE attempts (
    id      TEXT PRIMARY KEY,
    own     TEXT NOT NULL, -- of the account, or of the known browser
    wider   TEXT NOT NULL, -- of the client's network, or of all browsers of the account
    ends_at BIGINT NOT NULL
);
CREATE INDEX attempts_own ON attempts (own);
CREATE INDEX attempts_wider ON attempts (wider);

-- The clock that everything is judged by is the database's, moved by this. It is
-- 0 but in tests of expiry, where the first node to start decides (--clock-offset).
-- The row is also the lock under which nodes register one after the other.
CREATE TABLE shared_clock (
    id    BIGINT PRIMARY KEY,
    moved BIGINT NOT NULL -- microseconds
);
INSERT INTO shared_clock (id, moved) VALUES (1, 0);

-- The newest backup that was completed: one row with the id 1, none before the first.
CREATE TABLE backups (
    id           BIGINT PRIMARY KEY,
    completed_at BIGINT NOT NULL,
    destination  TEXT NOT NULL DEFAULT '' -- a file; empty: unknown
);

-- The master keys that values here are sealed with. The keys themselves lie in files;
-- here is what shows which key is the right one.
CREATE TABLE master_keys (
    id          TEXT PRIMARY KEY, -- 16 hexadecimal digits, of a hash of the key
    check_value BYTEA NOT NULL,   -- a known text, sealed with the key
    wrapped     BYTEA,            -- the key, sealed with the one before it; NULL: every node has it in its file
    current     BOOLEAN NOT NULL, -- new values are sealed with this one
    created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX master_keys_current ON master_keys (current) WHERE current;

-- The keys that assertions of who is calling are signed with. One signs from starts_at
-- until the next one does.
CREATE TABLE signing_keys (
    id             TEXT PRIMARY KEY, -- the kid of RFC 7517
    public_key     BYTEA NOT NULL,   -- SubjectPublicKeyInfo (RFC 5280)
    private_sealed BYTEA NOT NULL,   -- PKCS #8 (RFC 5958), sealed with a master key
    starts_at      BIGINT NOT NULL,
    created_at     BIGINT NOT NULL
);

-- Credentials of servers that belong to a tenant.
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    tenant_id    TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    search       TEXT NOT NULL, -- the name, letter case folded
    role         TEXT NOT NULL,
    permissions  TEXT NOT NULL, -- sorted actions, separated by spaces
    status       TEXT NOT NULL, -- active, disabled, revoked; expired once that is in the trail
    owner_id     TEXT NOT NULL, -- a user, who may have left since
    created_by   TEXT NOT NULL, -- a user or a key
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    rotate_by    BIGINT,          -- ends then unless it is rotated; NULL: no need
    ends_at      BIGINT NOT NULL, -- the earlier of both
    allowed_ips  TEXT NOT NULL,   -- addresses and CIDRs, separated by spaces; '' for all
    per_second   BIGINT NOT NULL, -- 0: no limit
    noticed_at   BIGINT NOT NULL, -- notices of its end that were due until then are sent
    last_used_at BIGINT,
    last_used_ip TEXT NOT NULL DEFAULT '',
    name_key     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX api_keys_tenant ON api_keys (tenant_id, created_at, id);
CREATE INDEX api_keys_owner ON api_keys (owner_id);
CREATE INDEX api_keys_end ON api_keys (ends_at, id) WHERE status IN ('active', 'disabled');
CREATE INDEX api_keys_unfolded ON api_keys (id) WHERE substr(search, 1, 1) <> ' ';

-- The secrets of keys: the current one, one that a rotation has replaced, and ended ones.
CREATE TABLE api_key_secrets (
    hash         BYTEA PRIMARY KEY,
    key_id       TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    hint         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    ends_at      BIGINT, -- NULL: the current one
    last_used_at BIGINT
);
CREATE INDEX api_key_secrets_key ON api_key_secrets (key_id);
CREATE INDEX api_key_secrets_end ON api_key_secrets (ends_at) WHERE ends_at IS NOT NULL;

-- Calls with an Idempotency-Key: while an attempt is under way its mark, then the
-- answer. Neither the credential nor the key is stored: id is derived from both and
-- from the path, and so is the key that the answer is sealed with.
CREATE TABLE idempotency (
    id         BYTEA PRIMARY KEY,
    tenant_id  TEXT NOT NULL,   -- of the caller; '' for one without a tenant
    body       BYTEA NOT NULL,  -- HMAC of the request's body, under a derived key
    attempt    TEXT NOT NULL,   -- which of several attempts the mark belongs to
    answer     BYTEA,           -- sealed body of the answer; NULL while under way
    expires_at BIGINT NOT NULL, -- until when the mark or the answer counts
    -- The caller, if it is a user: with the account go its marks and answers.
    user_id    TEXT NOT NULL DEFAULT ''
);
CREATE INDEX idempotency_expires ON idempotency (expires_at);
CREATE INDEX idempotency_tenant ON idempotency (tenant_id);
CREATE INDEX idempotency_user ON idempotency (user_id) WHERE user_id <> '';

-- Credentials of the platform's own services, across tenants.
CREATE TABLE service_keys (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    hash        BYTEA NOT NULL UNIQUE,
    may         TEXT NOT NULL, -- sorted permissions, separated by spaces
    tenants     TEXT NOT NULL, -- ids, separated by spaces; '' for all
    created_at  BIGINT NOT NULL,
    disabled_at BIGINT -- by a restore; NULL: the key works
);

-- The platform's own actions. The row with the highest version holds; without one the
-- built-in model does.
CREATE TABLE models (
    version    BIGINT PRIMARY KEY,
    revision   BIGINT NOT NULL UNIQUE, -- random, never 0; names the content in memory
    text       TEXT NOT NULL,          -- YAML
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL -- an operator key; '' at the command line
);

-- Roles that tenants have made, beside the four.
CREATE TABLE roles (
    id          TEXT PRIMARY KEY,
    tenant_id   TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    about       TEXT NOT NULL,
    permissions TEXT NOT NULL, -- sorted actions, separated by spaces
    created_at  BIGINT NOT NULL,
    UNIQUE (tenant_id, name)
);

-- The policies of tenants, all versions. The highest version holds, unless its time to be
-- confirmed has passed: then the highest that needs no confirmation does.
CREATE TABLE policies (
    tenant_id     TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    version       BIGINT NOT NULL, -- from 1
    text          TEXT NOT NULL,   -- Cedar
    mode          TEXT NOT NULL,   -- enforce
    confirm_until BIGINT,          -- NULL: it needs no confirmation, or has it
    created_at    BIGINT NOT NULL,
    created_by    TEXT NOT NULL, -- a user
    -- Of a version in mode "observe": the version that refuses while this one holds; 0: none.
    enforced      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, version)
);

-- How often each policy of a version in mode "observe" would have refused.
CREATE TABLE policy_observations (
    tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    version   BIGINT NOT NULL,
    policy_id TEXT NOT NULL,
    refused   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, version, policy_id)
);

-- Refusals and some of the permits of the last days, with all that policies read, so that
-- a new text can be tried on them.
CREATE TABLE decisions (
    id        TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    at        BIGINT NOT NULL,
    actor_id  TEXT NOT NULL, -- a user or an API key
    decided   TEXT NOT NULL  -- JSON
);
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, at, id);
CREATE INDEX decisions_by_actor ON decisions (actor_id);
CREATE INDEX decisions_by_time ON decisions (at);

CREATE TABLE factors (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    kind          TEXT NOT NULL, -- totp or passkey
    name          TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    confirmed_at  BIGINT, -- NULL: being enrolled
    last_used_at  BIGINT,
    disabled_at   BIGINT,                    -- NULL: in use
    seed_sealed   BYTEA,                     -- of a totp, with the master key
    last_step     BIGINT NOT NULL DEFAULT 0, -- of the last code that was accepted
    credential_id BYTEA UNIQUE,              -- of a passkey
    credential    BYTEA,                     -- of a passkey: its public key and what its verification needs
    synced        BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX factors_user ON factors (user_id, created_at);
CREATE INDEX factors_unconfirmed ON factors (created_at) WHERE confirmed_at IS NULL;

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
    tenant_id  TEXT NOT NULL,                                -- to sign in to; may be empty
    session_id TEXT NOT NULL,                                -- of who began it; empty without a session
    generation BIGINT NOT NULL,                              -- of the account's credentials
    methods    TEXT NOT NULL,                                -- separated by spaces
    state      BYTEA,                                        -- of the verifier of passkeys
    tries      BIGINT NOT NULL,
    ends_at    BIGINT NOT NULL
);
CREATE INDEX challenges_user ON challenges (user_id);
CREATE INDEX challenges_ends ON challenges (ends_at);

-- Changes of the address of an account. The new address confirms one, the old one can
-- undo it.
CREATE TABLE email_changes (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    old_email     TEXT NOT NULL,
    new_email     TEXT NOT NULL,
    generation    BIGINT NOT NULL, -- of the account's credentials, when it was asked for
    created_at    BIGINT NOT NULL,
    confirm_until BIGINT NOT NULL DEFAULT 0, -- 0: the mail to the new address is not made yet
    confirmed_at  BIGINT,                    -- NULL: the account has the old address
    replaced_at   BIGINT,                    -- NULL: it can be confirmed
    undo_until    BIGINT NOT NULL,
    undone_at     BIGINT -- NULL: it can be undone
);
CREATE INDEX email_changes_user ON email_changes (user_id, created_at);
CREATE INDEX email_changes_new ON email_changes (new_email);
CREATE INDEX email_changes_end ON email_changes (undo_until);

-- One row while changes are paused.
CREATE TABLE maintenance (
    id     BIGINT PRIMARY KEY CHECK (id = 1),
    since  BIGINT NOT NULL,
    reason TEXT NOT NULL -- shown to those whose change is refused
);

-- One order over the events of all tenants, made after they are committed: see feed.go.
CREATE TABLE feed_state (
    id    BIGINT PRIMARY KEY, -- 1
    epoch TEXT NOT NULL,      -- random, another one after a restore; empty: nobody has read the feed yet
    last  BIGINT NOT NULL,    -- the last position
    trims BIGINT NOT NULL     -- how often events were deleted from the feed
);
INSERT INTO feed_state (id, epoch, last, trims) VALUES (1, '', 0, 0);

CREATE TABLE feed (
    pos       BIGINT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    after     BIGINT NOT NULL, -- events with a greater number,
    last      BIGINT NOT NULL  -- up to this one
);
CREATE INDEX feed_tenant ON feed (tenant_id, last);

-- How far each trail is in the feed.
CREATE TABLE feed_chains (
    tenant_id TEXT PRIMARY KEY,
    last      BIGINT NOT NULL
);

-- What a reader who is not beyond pos has missed since then.
CREATE TABLE feed_trims (
    trim BIGINT PRIMARY KEY,
    pos  BIGINT NOT NULL
);

-- Accounts that were erased a short time ago. What is left of the personal data in their
-- audit events, more than one transaction blanks or recorded late, is blanked by a sweep.
CREATE TABLE erasures (
    user_id TEXT PRIMARY KEY,
    at      BIGINT NOT NULL
);

-- Endpoints of others that get events.
CREATE TABLE webhooks (
    id               TEXT PRIMARY KEY,
    tenant_id        TEXT NOT NULL, -- '': the installation, events of all tenants
    url              TEXT NOT NULL,
    events           TEXT NOT NULL, -- patterns, separated by spaces
    about            TEXT NOT NULL,
    include          TEXT NOT NULL, -- separated by spaces
    enabled          BOOLEAN NOT NULL,
    disabled_reason  TEXT NOT NULL DEFAULT '',
    public_key       TEXT NOT NULL,
    secret_sealed    BYTEA NOT NULL, -- with the master key
    previous_sealed  BYTEA,          -- the secret before a rotation, until previous_ends_at
    previous_ends_at BIGINT,
    private_sealed   BYTEA NOT NULL, -- seed of the Ed25519 key
    created_at       BIGINT NOT NULL,
    last_success_at  BIGINT,
    failing_since    BIGINT,                     -- the first failure since the last success
    notices          BIGINT NOT NULL DEFAULT 0,  -- mails sent about that
    health           TEXT NOT NULL DEFAULT 'new' -- good: the last attempt succeeded within a second; bad: it did not
);
CREATE INDEX webhooks_tenant ON webhooks (tenant_id, created_at, id);
CREATE INDEX webhooks_failing ON webhooks (failing_since) WHERE failing_since IS NOT NULL;

-- One for each event and endpoint, or more after a replay. It holds no text of the event.
CREATE TABLE webhook_deliveries (
    id         TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event_id   TEXT NOT NULL,
    type       TEXT NOT NULL,
    state      TEXT NOT NULL,    -- pending, delivered, failed, dropped
    urgent     BOOLEAN NOT NULL, -- not yet tried, and the endpoint was not failing when it was queued
    tries      BIGINT NOT NULL,
    step       BIGINT NOT NULL, -- of the schedule of retries
    next_at    BIGINT NOT NULL, -- of a pending one
    created_at BIGINT NOT NULL,
    attempts   TEXT NOT NULL -- JSON, the last ones
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_urgent ON webhook_deliveries (next_at, id) WHERE state = 'pending' AND urgent;
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (created_at) WHERE state <> 'pending';
-- Lists of deliveries in a state read only those. It finds pending ones of a webhook, too.
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, created_at, id);
