package store

import (
	"context"

	"github.com/doorward/doorward"
)

// The queries here pass rows to fn one at a time, for lists of any length. Inside a
// Snapshot fn must not run other queries on that Snapshot: its connection is busy. The rules
// of a row are not read.

// Member is a member of a tenant, with the password hash of the account.
type Member struct {
	doorward.User
	PasswordHash string // empty: there is no password yet
}

func memberFields(m *Member) []any { return append(userFields(&m.User), &m.PasswordHash) }

const sqlEachMember = `SELECT ` + userColumns + `, u.password_hash
FROM memberships m JOIN users u ON u.id = m.user_id JOIN tenants t ON t.id = m.tenant_id
WHERE m.tenant_id = $1 ORDER BY m.created_at, u.id`

// EachMember calls fn with the members of the tenant, the oldest membership
// first, until fn fails, and returns fn's error.
func (r Reader) EachMember(ctx context.Context, tenantID string, fn func(Member) error) error {
	return each(ctx, r, memberFields, fn, sqlEachMember, tenantID)
}

const sqlEachInvitation = selectInvitation + `WHERE i.tenant_id = $1 ORDER BY i.created_at, i.id`

// EachInvitation is EachMember for invitations of any state, the oldest first.
func (r Reader) EachInvitation(ctx context.Context, tenantID string, fn func(doorward.Invitation) error) error {
	return each(ctx, r, invitationFields, fn, sqlEachInvitation, tenantID)
}

const sqlExportDirectoryUsers = selectDirectoryUser + `WHERE d.tenant_id = $1 ORDER BY d.created_at, d.connection_id, d.id`

// EachDirectoryUser is EachMember for what directories of the tenant say of people, the oldest first.
func (r Reader) EachDirectoryUser(ctx context.Context, tenantID string, fn func(doorward.DirectoryUser) error) error {
	return each(ctx, r, directoryUserFields, fn, sqlExportDirectoryUsers, tenantID)
}

const sqlEachEvent = selectEvent + `WHERE tenant_id = $1 ORDER BY seq, id`

// EachEvent is EachMember for the tenant's audit trail, the oldest first; for an empty
// id that of the installation.
func (r Reader) EachEvent(ctx context.Context, tenantID string, fn func(doorward.Event) error) error {
	return each(ctx, r, eventFields, fn, sqlEachEvent, tenantID)
}
