package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

func directoryUserFields(u *doorward.DirectoryUser) []any {
	return []any{
		&u.ID, &u.ConnectionID, &u.TenantID,
		nullableText{&u.UserID},
		nullableText{&u.InvitationID},
		&u.UserName, &u.Address,
		nullableText{&u.ExternalID},
		&u.Active, &u.Made, &u.Attributes, (*words)(&u.EmailKeys), (*storedTime)(&u.CreatedAt), (*storedTime)(&u.ChangedAt),
	}
}

const directoryUserColumns = `d.id, d.connection_id, d.tenant_id, d.user_id, d.invitation_id, d.user_name, d.address, d.external_id,
  d.active, d.made, d.attributes, d.email_keys, d.created_at, d.changed_at`

const (
	selectDirectoryUser = `SELECT ` + directoryUserColumns + ` FROM directory_users d `

	sqlDirectoryUser       = selectDirectoryUser + `WHERE d.connection_id = $1 AND d.id = $2`
	sqlDirectoryUserOf     = selectDirectoryUser + `WHERE d.connection_id = $1 AND d.tenant_id = $2 AND d.user_id = $3`
	sqlDirectoryExternal   = selectDirectoryUser + `WHERE d.connection_id = $1 AND d.external_id = $2`
	sqlDirectoryNamed      = selectDirectoryUser + `WHERE d.tenant_id = $1 AND d.name_key = $2 ORDER BY d.created_at, d.connection_id, d.id`
	sqlDirectoryAliased    = selectDirectoryUser + `WHERE d.tenant_id = $1 AND d.id = $2 ORDER BY d.created_at, d.connection_id`
	sqlDirectoryAliasesOf  = selectDirectoryUser + `WHERE d.tenant_id = $1 AND d.user_id = $2 ORDER BY d.created_at, d.connection_id, d.id`
	sqlDirectoryAddressed  = selectDirectoryUser + `WHERE d.tenant_id = $1 AND d.address = $2 AND d.user_id IS NULL ORDER BY d.created_at, d.connection_id, d.id`
	sqlDirectoryMade       = selectDirectoryUser + `WHERE d.tenant_id = $1 AND d.address = $2 AND d.connection_id = $3 AND d.made AND d.user_id IS NOT NULL ORDER BY d.created_at, d.id LIMIT 1`
	sqlDirectoryCalled     = selectDirectoryUser + `WHERE d.tenant_id = $1 AND d.address = $2 AND d.connection_id = $3 AND d.user_id IS NOT NULL ORDER BY d.created_at, d.id LIMIT 1`
	sqlDirectoryHeld       = selectDirectoryUser + `WHERE d.user_id = $1 ORDER BY d.created_at, d.connection_id, d.id`
	sqlInsertDirectoryUser = `INSERT INTO directory_users (connection_id, id, tenant_id, user_id, invitation_id, user_name, name_key, address, external_id,
  email_keys, active, made, attributes, created_at, changed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`
	sqlUpdateDirectoryUser = `UPDATE directory_users SET user_id = $3, invitation_id = $4, user_name = $5, name_key = $6, address = $7, external_id = $8,
  email_keys = $9, active = $10, made = $11, attributes = $12, changed_at = $13 WHERE connection_id = $1 AND id = $2`
	sqlDeleteDirectoryUser = `DELETE FROM directory_users WHERE connection_id = $1 AND id = $2`
	sqlJoinDirectoryUsers  = `UPDATE directory_users SET user_id = $3, invitation_id = NULL WHERE tenant_id = $1 AND address = $2 AND user_id IS NULL`
)

// DirectoryUser returns what the connection's directory says of the person with the id, or ErrNone.
func (r Reader) DirectoryUser(ctx context.Context, connectionID, id string) (doorward.DirectoryUser, error) {
	return one(ctx, r, directoryUserFields, sqlDirectoryUser, connectionID, id)
}

// DirectoryUserOf is DirectoryUser by the account of a member.
func (r Reader) DirectoryUserOf(ctx context.Context, connectionID, tenantID, userID string) (doorward.DirectoryUser, error) {
	return one(ctx, r, directoryUserFields, sqlDirectoryUserOf, connectionID, tenantID, userID)
}

// DirectoryUserByExternalID is DirectoryUser by the directory's own name of the person, exactly as written.
func (r Reader) DirectoryUserByExternalID(ctx context.Context, connectionID, externalID string) (doorward.DirectoryUser, error) {
	return one(ctx, r, directoryUserFields, sqlDirectoryExternal, connectionID, externalID)
}

// DirectoryUsersNamed returns what directories of the tenant say of people with the userName, without letter case.
func (r Reader) DirectoryUsersNamed(ctx context.Context, tenantID, userName string) ([]doorward.DirectoryUser, error) {
	return list(ctx, r, directoryUserFields, sqlDirectoryNamed, tenantID, strings.ToLower(userName))
}

// DirectoryAliased returns what directories of the tenant say of the person with the id, the oldest first.
func (r Reader) DirectoryAliased(ctx context.Context, tenantID, id string) ([]doorward.DirectoryUser, error) {
	return list(ctx, r, directoryUserFields, sqlDirectoryAliased, tenantID, id)
}

// DirectoryAliasesOf returns what directories of the tenant say of the member, the oldest first.
func (r Reader) DirectoryAliasesOf(ctx context.Context, tenantID, userID string) ([]doorward.DirectoryUser, error) {
	return list(ctx, r, directoryUserFields, sqlDirectoryAliasesOf, tenantID, userID)
}

// MadeByDirectory returns what the connection's directory says of the member whose membership it has made, and whose
// userName has the canonical address, or ErrNone.
func (r Reader) MadeByDirectory(ctx context.Context, connectionID, tenantID, address string) (doorward.DirectoryUser, error) {
	return one(ctx, r, directoryUserFields, sqlDirectoryMade, tenantID, address, connectionID)
}

// DirectoryMemberAddressed is MadeByDirectory for a member whose membership the directory need not have made.
func (r Reader) DirectoryMemberAddressed(ctx context.Context, connectionID, tenantID, address string) (doorward.DirectoryUser, error) {
	return one(ctx, r, directoryUserFields, sqlDirectoryCalled, tenantID, address, connectionID)
}

// DirectoryUsersOf returns what directories of all tenants say of the account, the oldest first.
func (r Reader) DirectoryUsersOf(ctx context.Context, userID string) ([]doorward.DirectoryUser, error) {
	return list(ctx, r, directoryUserFields, sqlDirectoryHeld, userID)
}

func (u directoryUserArgs) values() (userID, invitationID, externalID any) {
	return nullable(u.UserID), nullable(u.InvitationID), nullable(u.ExternalID)
}

type directoryUserArgs doorward.DirectoryUser

// emailKeys returns the e-mails in lower case, each between two blanks, so that one is found by its text with both.
func emailKeys(emails []string) string {
	if len(emails) == 0 {
		return ""
	}
	text := " "
	for _, e := range emails {
		text += emailKey(e) + " "
	}
	return text
}

// emailKey returns an e-mail in lower case, without blanks.
func emailKey(email string) string { return strings.ReplaceAll(strings.ToLower(email), " ", "_") }

// InsertDirectoryUser adds what a directory says of a person.
func (tx *Tx) InsertDirectoryUser(ctx context.Context, u doorward.DirectoryUser) error {
	userID, invitationID, externalID := directoryUserArgs(u).values()
	return tx.run(ctx, sqlInsertDirectoryUser, u.ConnectionID, u.ID, u.TenantID, userID, invitationID, u.UserName, strings.ToLower(u.UserName), u.Address, externalID,
		emailKeys(u.EmailKeys), u.Active, u.Made, u.Attributes, micros(u.CreatedAt), micros(tx.Now))
}

// UpdateDirectoryUser writes all of it but the ids and the time it was made at.
func (tx *Tx) UpdateDirectoryUser(ctx context.Context, u doorward.DirectoryUser) error {
	userID, invitationID, externalID := directoryUserArgs(u).values()
	return tx.run(ctx, sqlUpdateDirectoryUser, u.ConnectionID, u.ID, userID, invitationID, u.UserName, strings.ToLower(u.UserName), u.Address, externalID,
		emailKeys(u.EmailKeys), u.Active, u.Made, u.Attributes, micros(tx.Now))
}

// DeleteDirectoryUser deletes what the directory says of a person, and reports whether it was there.
func (tx *Tx) DeleteDirectoryUser(ctx context.Context, connectionID, id string) (bool, error) {
	return tx.affected(ctx, sqlDeleteDirectoryUser, connectionID, id)
}

// JoinDirectoryUsers makes the account what directories of the tenant have said of somebody with its canonical address
// who wasn't a member, and returns that as it was.
func (tx *Tx) JoinDirectoryUsers(ctx context.Context, tenantID, address, userID string) ([]doorward.DirectoryUser, error) {
	was, err := list(ctx, tx.Reader, directoryUserFields, sqlDirectoryAddressed, tenantID, address)
	if err != nil || len(was) == 0 {
		return nil, err
	}
	return was, tx.run(ctx, sqlJoinDirectoryUsers, tenantID, address, userID)
}

// DirectoryEntry is a person of the tenant as a connection's directory sees them: a member, with what the directory says
// of them, or somebody whom it has invited.
type DirectoryEntry struct {
	ID        string // as directories of the tenant know the person
	Said      doorward.DirectoryUser
	IsSaid    bool          // the directory has described the person
	Member    doorward.User // of members: id, address, name, role, status, reasons and when they joined
	IsMember  bool
	CreatedAt time.Time

	// Of those who aren't members: until when an invitation to the address is pending, by a directory or by hand, nil: none is;
	// and the state of the last one, empty: none, or the directory has revoked it.
	InvitedUntil *time.Time
	Invitation   doorward.InvitationState
}

// InvitationAt returns how far somebody is who isn't a member, see doorward.DirectoryPerson.
func (e DirectoryEntry) InvitationAt(now time.Time) doorward.InvitationState {
	switch {
	case e.IsMember:
		return ""
	case e.InvitedUntil != nil && now.Before(*e.InvitedUntil):
		return doorward.InvitationPending
	case e.Invitation == doorward.InvitationRevoked:
		return doorward.InvitationRevoked
	case e.Said.Active:
		return doorward.InvitationExpired
	}
	return ""
}

// The people of the tenant $2 as the connection $1 sees them: members, and those whom the directory has described who aren't
// members; in the order of an index of each table, so that a page sorts nothing.
const (
	directoryMembers = `SELECT m.created_at AS made_at, m.user_id AS sort_id, m.user_id AS member_id, NULL AS said_id FROM memberships m WHERE m.tenant_id = $2`
	directoryInvited = `SELECT d.created_at, d.id, NULL, d.id FROM directory_users d WHERE d.connection_id = $1 AND d.tenant_id = $2 AND d.user_id IS NULL`
	directoryPeople  = directoryMembers + ` UNION ALL ` + directoryInvited + ` ORDER BY made_at, sort_id`

	selectDirectoryEntry = `SELECT coalesce(d.id, (SELECT min(o.id) FROM directory_users o WHERE o.tenant_id = $2 AND o.user_id = p.member_id), p.member_id), p.made_at,
  u.id, u.email, m.name, m.role, m.status, m.suspended_by, u.managed_by,
  CASE WHEN p.member_id IS NULL THEN (SELECT i.expires_at FROM invitations i WHERE i.tenant_id = $2 AND i.email = d.address AND i.state = 'PENDING') END,
  CASE WHEN p.member_id IS NULL THEN (SELECT o.state FROM invitations o WHERE o.id = d.invitation_id) END, ` + directoryUserColumns + `
FROM (`
	// A member has one row of the connection's, unless two of its rows had one address.
	joinDirectoryEntry = `) p LEFT JOIN memberships m ON m.tenant_id = $2 AND m.user_id = p.member_id LEFT JOIN users u ON u.id = p.member_id
LEFT JOIN directory_users d ON d.connection_id = $1
  AND d.id = coalesce(p.said_id, (SELECT min(s.id) FROM directory_users s WHERE s.user_id = p.member_id AND s.tenant_id = $2 AND s.connection_id = $1))
`
	orderDirectory       = `ORDER BY p.made_at, p.sort_id`
	sqlDirectoryPage     = selectDirectoryEntry + directoryPeople + ` LIMIT $3 OFFSET $4` + joinDirectoryEntry + orderDirectory
	sqlEachDirectoryUser = selectDirectoryEntry + directoryPeople + joinDirectoryEntry + `WHERE $3 = '' OR replace(d.email_keys, $3, '') <> d.email_keys OR d.id IS NULL AND $3 = ' ' || u.email || ' '
` + orderDirectory
	sqlCountDirectory  = `SELECT (SELECT count(*) FROM memberships m WHERE m.tenant_id = $2) + (SELECT count(*) FROM directory_users d WHERE d.connection_id = $1 AND d.tenant_id = $2 AND d.user_id IS NULL)`
	sqlDirectoryMember = selectDirectoryEntry + directoryMembers + ` AND m.user_id = $3` + joinDirectoryEntry
	sqlDirectorySaid   = selectDirectoryEntry + `SELECT coalesce(m.created_at, d.created_at) AS made_at, d.id AS sort_id, d.user_id AS member_id, d.id AS said_id
FROM directory_users d LEFT JOIN memberships m ON m.tenant_id = d.tenant_id AND m.user_id = d.user_id WHERE d.connection_id = $1 AND d.tenant_id = $2 AND d.id = $3` + joinDirectoryEntry
)

func directoryEntryFields(e *DirectoryEntry) []any {
	m, d := &e.Member, &e.Said
	return []any{
		&e.ID, (*storedTime)(&e.CreatedAt),
		nullableText{&m.ID},
		nullableText{&m.Email},
		nullableText{&m.Name},
		nullableText{(*string)(&m.Role)},
		nullableText{(*string)(&m.Status)},
		(*words)(&m.SuspendedBy),
		nullableText{&m.ManagedBy},
		nullableTime{&e.InvitedUntil},
		nullableText{(*string)(&e.Invitation)},
		nullableText{&d.ID},
		nullableText{&d.ConnectionID},
		nullableText{&d.TenantID},
		nullableText{&d.UserID},
		nullableText{&d.InvitationID},
		nullableText{&d.UserName},
		nullableText{&d.Address},
		nullableText{&d.ExternalID},
		nullableBool{&d.Active},
		nullableBool{&d.Made},
		nullableText{&d.Attributes},
		(*words)(&d.EmailKeys),
		optionalTime{&d.CreatedAt},
		optionalTime{&d.ChangedAt},
	}
}

// nullableBool scans NULL as false.
type nullableBool struct{ dest *bool }

// Scan implements sql.Scanner.
func (b nullableBool) Scan(v any) error {
	var x sql.NullBool
	err := x.Scan(v)
	*b.dest = x.Bool
	return err
}

func (e DirectoryEntry) complete(connection, tenantID string) DirectoryEntry {
	e.IsSaid, e.IsMember = e.Said.ID != "", e.Member.ID != ""
	e.Member.TenantID, e.Member.CreatedAt = tenantID, e.CreatedAt
	return e
}

func completeEntries(all []DirectoryEntry, connectionID, tenantID string) []DirectoryEntry {
	for i := range all {
		all[i] = all[i].complete(connectionID, tenantID)
	}
	return all
}

// DirectoryPage returns limit people as the directory sees them, after the first offset ones, in the order of their
// joining, and how many there are in all.
func (r Reader) DirectoryPage(ctx context.Context, connectionID, tenantID string, limit, offset int) ([]DirectoryEntry, int, error) {
	total, err := one(ctx, r, countColumn, sqlCountDirectory, connectionID, tenantID)
	if err != nil || limit == 0 {
		return nil, total, err
	}
	all, err := list(ctx, r, directoryEntryFields, sqlDirectoryPage, connectionID, tenantID, limit, offset)
	return completeEntries(all, connectionID, tenantID), total, err
}

// EachDirectoryEntry calls fn with all people as the directory sees them, in the order of their joining; with an e-mail
// only with those who have it.
func (r Reader) EachDirectoryEntry(ctx context.Context, connectionID, tenantID, email string, fn func(DirectoryEntry) error) error {
	needle := ""
	if email != "" {
		needle = " " + emailKey(email) + " "
	}
	return each(ctx, r, directoryEntryFields, func(e DirectoryEntry) error { return fn(e.complete(connectionID, tenantID)) }, sqlEachDirectoryUser, connectionID, tenantID, needle)
}

// DirectoryMember returns a member as the directory sees them, or ErrNone.
func (r Reader) DirectoryMember(ctx context.Context, connectionID, tenantID, userID string) (DirectoryEntry, error) {
	e, err := one(ctx, r, directoryEntryFields, sqlDirectoryMember, connectionID, tenantID, userID)
	return e.complete(connectionID, tenantID), err
}

// DirectorySaid returns the person whom the directory has described under the id, or ErrNone.
func (r Reader) DirectorySaid(ctx context.Context, connectionID, tenantID, id string) (DirectoryEntry, error) {
	e, err := one(ctx, r, directoryEntryFields, sqlDirectorySaid, connectionID, tenantID, id)
	return e.complete(connectionID, tenantID), err
}
