package store

import (
	"context"

	"github.com/doorward/doorward"
)

func invitationColumns(i *doorward.Invitation) []any {
	return []any{
		&i.ID, &i.TenantID, &i.Email, &i.Role, &i.Name, &i.Locale, &i.State,
		textOrNone{&i.InvitedBy},
		(*instant)(&i.CreatedAt), (*instant)(&i.ExpiresAt),
		maybe{&i.AcceptedAt},
		maybe{&i.RevokedAt},
		(*textOrQueued)(&i.Delivery),
	}
}

// textOrQueued scans the state of an invitation's newest mail.
type textOrQueued doorward.Delivery

// Scan is for database/sql.
func (d *textOrQueued) Scan(v any) error {
	s := string(doorward.DeliveryQueued)
	if v == nil {
		*d = textOrQueued(s)
		return nil
	}
	err := textOrNone{&s}.Scan(v)
	*d = textOrQueued(s)
	return err
}

const selectInvitation = `SELECT i.id, i.tenant_id, i.email, i.role, i.name, i.locale, i.state, i.invited_by,
  i.created_at, i.expires_at, i.accepted_at, i.revoked_at,
  (SELECT x.state FROM mails x WHERE x.subject_id = i.id ORDER BY x.created_at DESC, x.id DESC LIMIT 1)
FROM invitations i `

const sqlInvitation = selectInvitation + `WHERE i.id = $1`

// Invitation returns the invitation, or ErrNone.
func (r Reader) Invitation(ctx context.Context, id string) (doorward.Invitation, error) {
	return one(ctx, r, invitationColumns, sqlInvitation, id)
}

const sqlInvitationByToken = selectInvitation + `JOIN link_tokens l ON l.subject_id = i.id WHERE l.hash = $1`

// InvitationByToken returns the invitation of a token hash, or ErrNone.
func (r Reader) InvitationByToken(ctx context.Context, hash []byte) (doorward.Invitation, error) {
	return one(ctx, r, invitationColumns, sqlInvitationByToken, hash)
}

const sqlPendingInvitation = selectInvitation + `WHERE i.tenant_id = $1 AND i.email = $2 AND i.state = 'PENDING'`

// PendingInvitation returns the tenant's pending invitation to the address, or
// ErrNone.
func (r Reader) PendingInvitation(ctx context.Context, tenantID, email string) (doorward.Invitation, error) {
	return one(ctx, r, invitationColumns, sqlPendingInvitation, tenantID, email)
}

const sqlInsertInvitation = `INSERT INTO invitations (id, tenant_id, email, role, name, locale, state, invited_by, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (tenant_id, email) WHERE state = 'PENDING' DO NOTHING`

// InsertInvitation adds the invitation and reports whether there was no
// pending one for the address.
func (tx *Tx) InsertInvitation(ctx context.Context, i doorward.Invitation) (bool, error) {
	return tx.hit(ctx, sqlInsertInvitation, i.ID, i.TenantID, i.Email, i.Role, i.Name, i.Locale, i.State,
		nullable(i.InvitedBy), micros(i.CreatedAt), micros(i.ExpiresAt))
}

const sqlRetireExpiredInvitation = `UPDATE invitations SET state = 'EXPIRED'
WHERE tenant_id = $1 AND email = $2 AND state = 'PENDING' AND expires_at <= $3`

// RetireExpiredInvitation makes room for a new invitation to an address whose
// pending one has expired.
func (tx *Tx) RetireExpiredInvitation(ctx context.Context, tenantID, email string) error {
	return tx.must(ctx, sqlRetireExpiredInvitation, tenantID, email, micros(tx.Now))
}

const sqlAcceptInvitation = `UPDATE invitations SET state = 'ACCEPTED', accepted_at = $1
WHERE id = $2 AND state = 'PENDING' AND expires_at > $1`

// AcceptInvitation uses the invitation up and reports whether it still could
// be: of many callers at once, one.
func (tx *Tx) AcceptInvitation(ctx context.Context, id string) (bool, error) {
	return tx.hit(ctx, sqlAcceptInvitation, micros(tx.Now), id)
}

const sqlRevokeInvitationsBy = `UPDATE invitations SET state = 'REVOKED', revoked_at = $1
WHERE tenant_id = $2 AND invited_by = $3 AND state = 'PENDING' AND expires_at > $1`

// RevokeInvitationsBy revokes the pending invitations that the user sent in
// the tenant, and returns how many.
func (tx *Tx) RevokeInvitationsBy(ctx context.Context, tenantID, userID string) (int64, error) {
	return tx.exec(ctx, sqlRevokeInvitationsBy, micros(tx.Now), tenantID, userID)
}

const sqlInsertLinkToken = `INSERT INTO link_tokens (hash, subject_id, created_at) VALUES ($1, $2, $3)`

// InsertLinkToken makes the token behind hash one of the subject, an
// invitation or a reset.
func (tx *Tx) InsertLinkToken(ctx context.Context, hash []byte, subjectID string) error {
	return tx.must(ctx, sqlInsertLinkToken, hash, subjectID, micros(tx.Now))
}
