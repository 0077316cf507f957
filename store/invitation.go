package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
)

func invitationFields(i *doorward.Invitation) []any {
	return []any{
		&i.ID, &i.TenantID, &i.Email, &i.Role, &i.Name, &i.Locale, &i.State,
		nullableText{&i.InvitedBy},
		(*storedTime)(&i.CreatedAt), (*storedTime)(&i.ExpiresAt),
		nullableTime{&i.AcceptedAt},
		nullableTime{&i.RevokedAt},
		(*deliveryOrQueued)(&i.Delivery), &i.Days, &i.ServiceKeyID,
	}
}

// deliveryOrQueued scans the state of an invitation's newest mail; no mail yet counts as
// queued.
type deliveryOrQueued doorward.Delivery

// Scan implements sql.Scanner.
func (d *deliveryOrQueued) Scan(v any) error {
	s := string(doorward.DeliveryQueued)
	if v == nil {
		*d = deliveryOrQueued(s)
		return nil
	}
	err := nullableText{&s}.Scan(v)
	*d = deliveryOrQueued(s)
	return err
}

const selectInvitation = `SELECT i.id, i.tenant_id, i.email, i.role, i.name, i.locale, i.state, i.invited_by,
  i.created_at, i.expires_at, i.accepted_at, i.revoked_at,
  (SELECT x.state FROM mails x WHERE x.subject_id = i.id ORDER BY x.created_at DESC, x.id DESC LIMIT 1), i.days, i.service_key_id
FROM invitations i `

const sqlInvitation = selectInvitation + `WHERE i.id = $1`

// Invitation returns the invitation, or ErrNone.
func (r Reader) Invitation(ctx context.Context, id string) (doorward.Invitation, error) {
	return one(ctx, r, invitationFields, sqlInvitation, id)
}

const sqlInvitationByToken = selectInvitation + `JOIN link_tokens l ON l.subject_id = i.id WHERE l.hash = $1`

// InvitationByToken returns the invitation of a token hash, or ErrNone; also for a
// token that a newer one has replaced (see TokenRetired).
func (r Reader) InvitationByToken(ctx context.Context, hash []byte) (doorward.Invitation, error) {
	return one(ctx, r, invitationFields, sqlInvitationByToken, hash)
}

const sqlTokenRetired = `SELECT count(*) FROM link_tokens WHERE hash = $1 AND retired_at IS NOT NULL`

// TokenRetired reports whether a newer token has replaced the one with the
// hash.
func (r Reader) TokenRetired(ctx context.Context, hash []byte) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlTokenRetired, hash)
	return n > 0, err
}

const sqlRetireTokens = `UPDATE link_tokens SET retired_at = $1 WHERE subject_id = $2 AND retired_at IS NULL`

// RetireTokens invalidates the tokens of the subject.
func (tx *Tx) RetireTokens(ctx context.Context, subjectID string) error {
	return tx.run(ctx, sqlRetireTokens, micros(tx.Now), subjectID)
}

// InvitationFilter selects invitations; empty fields select all.
type InvitationFilter struct {
	State    doorward.InvitationState // at the time of the query
	Delivery doorward.Delivery        // of the newest mail
	Role     doorward.Role
	Text     string // words of the address or the name, without regard to case and accents
}

// Few mails fail: for the filter "failed" the index mails_failed gives their invitations
// first, so that the newest mail is looked up for these alone.
var invitationPages = newPages(listing[doorward.Invitation]{
	head:  selectInvitation,
	count: `FROM invitations i `,
	where: `WHERE i.tenant_id = $1
  AND ($2 = '' OR $2 = CASE WHEN i.state = 'PENDING' AND i.expires_at <= $3 THEN 'EXPIRED' ELSE i.state END)
  AND ($4 <> 'failed' OR i.id IN (SELECT f.subject_id FROM mails f WHERE f.state = 'failed'))
  AND ($4 = '' OR $4 = coalesce((SELECT y.state FROM mails y WHERE y.subject_id = i.id ORDER BY y.created_at DESC, y.id DESC LIMIT 1), 'queued'))
  AND ($5 = '' OR i.role = $5)
` + contains("i.search", 6),
	args:   5 + maxWords,
	fields: invitationFields,
	id:     "i.id",
	idOf:   func(i doorward.Invitation) string { return i.ID },
	orders: []order[doorward.Invitation]{
		{name: "createdAt", column: "i.created_at", number: func(i doorward.Invitation) int64 { return micros(i.CreatedAt) }},
		{name: "expiresAt", column: "i.expires_at", number: func(i doorward.Invitation) int64 { return micros(i.ExpiresAt) }},
		{name: "name", column: "i.name_key", key: func(i doorward.Invitation) string { return fold.Key(i.Name) }},
		{name: "email", column: "i.email_key", key: func(i doorward.Invitation) string { return fold.Key(i.Email) }},
		{name: "role", column: rankOf("i.role"), number: func(i doorward.Invitation) int64 { return rank(i.Role) }},
	},
	defaultOrder: "-createdAt",
})

// InvitationPage returns invitations of the tenant as they are at now, usually the newest
// first. Errors: validation_failed, for an unknown order.
func (r Reader) InvitationPage(ctx context.Context, tenantID string, f InvitationFilter, now time.Time, w doorward.Window) (doorward.Page[doorward.Invitation], error) {
	args := []any{tenantID, string(f.State), micros(now), string(f.Delivery), string(f.Role)}
	return invitationPages.read(ctx, r, w, append(args, searchArgs(f.Text)...)...)
}

const sqlRevokeInvitation = `UPDATE invitations SET state = 'REVOKED', revoked_at = $1
WHERE id = $2 AND state = 'PENDING' AND expires_at > $1`

// RevokeInvitation revokes the invitation and reports whether it was pending.
func (tx *Tx) RevokeInvitation(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlRevokeInvitation, micros(tx.Now), id)
}

const sqlRenewInvitation = `UPDATE invitations SET expires_at = $1, invited_by = $2, service_key_id = $3
WHERE id = $4 AND state = 'PENDING' AND expires_at > $5`

// RenewInvitation writes inviter (a user or a service key) and expiry of the invitation, and
// reports whether it was pending.
func (tx *Tx) RenewInvitation(ctx context.Context, i doorward.Invitation) (bool, error) {
	tx.Effects.Roles = append(tx.Effects.Roles, doorward.RoleEffect{After: i.Role}) // an offer that could have lapsed
	return tx.affected(ctx, sqlRenewInvitation, micros(i.ExpiresAt), nullable(i.InvitedBy), i.ServiceKeyID, i.ID, micros(tx.Now))
}

const sqlLastMail = `SELECT created_at FROM mails WHERE subject_id = $1 ORDER BY created_at DESC LIMIT 1`

// LastMail is when the newest mail about the subject was queued, or ErrNone.
func (r Reader) LastMail(ctx context.Context, subjectID string) (time.Time, error) {
	at, err := one(ctx, r, instantColumn, sqlLastMail, subjectID)
	return time.Time(at), err
}

func instantColumn(i *storedTime) []any { return []any{i} }

const sqlPendingInvitation = selectInvitation + `WHERE i.tenant_id = $1 AND i.email = $2 AND i.state = 'PENDING'`

// PendingInvitation returns the tenant's pending invitation to the address, or ErrNone. It
// may have expired, see RetireExpiredInvitation.
func (r Reader) PendingInvitation(ctx context.Context, tenantID, email string) (doorward.Invitation, error) {
	return one(ctx, r, invitationFields, sqlPendingInvitation, tenantID, email)
}

const sqlAcceptedInvitations = `SELECT id FROM invitations WHERE tenant_id = $1 AND email = $2 AND state = 'ACCEPTED' ORDER BY created_at DESC, id DESC LIMIT $3`

// AcceptedInvitations returns the ids of the tenant's last invitations to the canonical address that were accepted, the
// newest first, at most limit.
func (r Reader) AcceptedInvitations(ctx context.Context, tenantID, email string, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlAcceptedInvitations, tenantID, email, limit)
}

const sqlInsertInvitation = `INSERT INTO invitations (id, tenant_id, email, role, name, locale, state, invited_by, created_at, expires_at, days, service_key_id, search, name_key, email_key)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (tenant_id, email) WHERE state = 'PENDING' DO NOTHING`

// What directories say of the address is about the newest invitation.
const sqlLinkInvitation = `UPDATE directory_users SET invitation_id = $1 WHERE tenant_id = $2 AND address = $3 AND user_id IS NULL`

// InsertInvitation adds the invitation, and reports false if the address has a pending one
// of the tenant.
func (tx *Tx) InsertInvitation(ctx context.Context, i doorward.Invitation) (bool, error) {
	tx.Effects.Roles = append(tx.Effects.Roles, doorward.RoleEffect{After: i.Role})
	added, err := tx.affected(ctx, sqlInsertInvitation, i.ID, i.TenantID, i.Email, i.Role, i.Name, i.Locale, i.State,
		nullable(i.InvitedBy), micros(i.CreatedAt), micros(i.ExpiresAt), i.Days, i.ServiceKeyID,
		searchable(i.Email, i.Name), fold.Key(i.Name), fold.Key(i.Email))
	if err != nil || !added {
		return false, err
	}
	return true, tx.run(ctx, sqlLinkInvitation, i.ID, i.TenantID, i.Email)
}

const sqlRetireExpiredInvitation = `UPDATE invitations SET state = 'EXPIRED'
WHERE tenant_id = $1 AND email = $2 AND state = 'PENDING' AND expires_at <= $3`

// RetireExpiredInvitation marks an expired invitation to the address, so that a
// new one can be inserted.
func (tx *Tx) RetireExpiredInvitation(ctx context.Context, tenantID, email string) error {
	return tx.run(ctx, sqlRetireExpiredInvitation, tenantID, email, micros(tx.Now))
}

const sqlAcceptInvitation = `UPDATE invitations SET state = 'ACCEPTED', accepted_at = $1
WHERE id = $2 AND state = 'PENDING' AND expires_at > $1`

// AcceptInvitation marks the invitation as accepted and reports whether it was
// pending: of concurrent callers, one succeeds.
func (tx *Tx) AcceptInvitation(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlAcceptInvitation, micros(tx.Now), id)
}

// What directories say of people is about these invitations no more: nobody has decided about the people.
const sqlUnlinkInvitationsBy = `UPDATE directory_users SET invitation_id = NULL WHERE invitation_id IN (SELECT i.id FROM invitations i
WHERE i.tenant_id = $2 AND i.invited_by = $3 AND i.state = 'PENDING' AND i.expires_at > $1)`

const sqlRevokeInvitationsBy = `UPDATE invitations SET state = 'REVOKED', revoked_at = $1
WHERE tenant_id = $2 AND invited_by = $3 AND state = 'PENDING' AND expires_at > $1`

// RevokeInvitationsBy revokes the pending invitations that the user sent in
// the tenant, and returns how many.
func (tx *Tx) RevokeInvitationsBy(ctx context.Context, tenantID, userID string) (int64, error) {
	if err := tx.run(ctx, sqlUnlinkInvitationsBy, micros(tx.Now), tenantID, userID); err != nil {
		return 0, err
	}
	return tx.exec(ctx, sqlRevokeInvitationsBy, micros(tx.Now), tenantID, userID)
}

const sqlRevokeRedundantInvitations = `UPDATE invitations SET state = 'REVOKED', revoked_at = $1
WHERE tenant_id = $2 AND state = 'PENDING' AND expires_at > $1
AND email IN (SELECT u.email FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.tenant_id = $2)`

// RevokeRedundantInvitations revokes the tenant's pending invitations to its
// members, and returns how many.
func (tx *Tx) RevokeRedundantInvitations(ctx context.Context, tenantID string) (int64, error) {
	return tx.exec(ctx, sqlRevokeRedundantInvitations, micros(tx.Now), tenantID)
}

const sqlInsertLinkToken = `INSERT INTO link_tokens (hash, subject_id, created_at) VALUES ($1, $2, $3)`

// InsertLinkToken stores the hash of a token for the subject: an invitation, a reset, or an
// EmailChange, see UndoSubject.
func (tx *Tx) InsertLinkToken(ctx context.Context, hash []byte, subjectID string) error {
	return tx.run(ctx, sqlInsertLinkToken, hash, subjectID, micros(tx.Now))
}

const sqlInvitedSince = `SELECT count(*) FROM invitations i WHERE i.tenant_id = $1 AND i.email = $2 AND i.created_at > $3
  AND NOT EXISTS (SELECT 1 FROM connections c WHERE c.id = i.service_key_id)`

// InvitedSince reports whether somebody has invited the canonical address to the tenant after an instant, other than by a
// directory.
func (r Reader) InvitedSince(ctx context.Context, tenantID, email string, since time.Time) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlInvitedSince, tenantID, email, micros(since))
	return n > 0, err
}
