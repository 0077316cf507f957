-- +goose Up

-- What a connection's directory says of a person: a membership, or an invitation on its way to one. The id is made
-- by the first POST, and is another name of the account within the tenant.
CREATE TABLE directory_users (
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    id            TEXT NOT NULL,
    tenant_id     TEXT NOT NULL,
    user_id       TEXT, -- the account, once it is a member; NULL: invited, or not any more
    invitation_id TEXT REFERENCES invitations (id) ON DELETE SET NULL,
    user_name     TEXT NOT NULL, -- as the directory last wrote it
    name_key      TEXT NOT NULL, -- the same, in lower case
    address       TEXT NOT NULL, -- its canonical form
    external_id   TEXT, -- NULL: none
    email_keys    TEXT NOT NULL, -- e-mails in lower case, each between two blanks
    active        BOOLEAN NOT NULL, -- as the directory last wrote it
    made          BOOLEAN NOT NULL, -- whether the directory has made the membership, or its invitation
    attributes    TEXT NOT NULL, -- JSON, as it is answered
    created_at    BIGINT NOT NULL,
    changed_at    BIGINT NOT NULL,
    PRIMARY KEY (connection_id, id),
    UNIQUE (connection_id, external_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES memberships (tenant_id, user_id) ON DELETE CASCADE
);
CREATE INDEX directory_users_name ON directory_users (tenant_id, name_key);
CREATE INDEX directory_users_address ON directory_users (tenant_id, address);
CREATE INDEX directory_users_id ON directory_users (tenant_id, id);
CREATE INDEX directory_users_member ON directory_users (user_id, tenant_id);
CREATE INDEX directory_users_invitation ON directory_users (invitation_id);
