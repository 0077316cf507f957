package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

func identityFields(i *doorward.Identity) []any {
	return []any{&i.ID, &i.ConnectionID, &i.TenantID, &i.Issuer, &i.Subject, &i.UserID, (*storedTime)(&i.CreatedAt), (*storedTime)(&i.LastUsedAt)}
}

const (
	identityColumns = `i.id, i.connection_id, i.tenant_id, i.issuer, i.subject, i.user_id, i.created_at, i.last_used_at`
	selectIdentity  = `SELECT ` + identityColumns + ` FROM identities i `

	selectLinkedIdentity = `SELECT ` + identityColumns + `, u.email FROM identities i JOIN users u ON u.id = i.user_id `

	sqlIdentity     = selectIdentity + `WHERE i.connection_id = $1 AND i.issuer = $2 AND i.subject = $3`
	sqlIdentityByID = selectIdentity + `WHERE i.id = $1`
	sqlIdentitiesOf = selectIdentity + `WHERE i.user_id = $1 ORDER BY i.created_at, i.id`

	sqlInsertIdentity = `INSERT INTO identities (id, connection_id, tenant_id, issuer, subject, user_id, created_at, last_used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (connection_id, issuer, subject) DO NOTHING`
	sqlTouchIdentity         = `UPDATE identities SET last_used_at = $2 WHERE id = $1`
	sqlDeleteIdentitiesSince = `DELETE FROM identities WHERE user_id = $1 AND created_at >= $2`
	sqlDeleteIdentity        = `DELETE FROM identities WHERE id = $1`
)

// Identity returns who the subject of the issuer is at the connection, or ErrNone.
func (r Reader) Identity(ctx context.Context, connectionID, issuer, subject string) (doorward.Identity, error) {
	return one(ctx, r, identityFields, sqlIdentity, connectionID, issuer, subject)
}

// IdentityByID returns the identity, or ErrNone.
func (r Reader) IdentityByID(ctx context.Context, id string) (doorward.Identity, error) {
	return one(ctx, r, identityFields, sqlIdentityByID, id)
}

// IdentitiesOf returns the identities of the account in all tenants, the oldest first.
func (r Reader) IdentitiesOf(ctx context.Context, userID string) ([]doorward.Identity, error) {
	return list(ctx, r, identityFields, sqlIdentitiesOf, userID)
}

// LinkedIdentity is an identity with the address that its account has now.
type LinkedIdentity struct {
	doorward.Identity
	Email string
}

func linkedIdentityFields(i *LinkedIdentity) []any {
	return append(identityFields(&i.Identity), &i.Email)
}

var identityPages = newPages(listing[LinkedIdentity]{
	head:   selectLinkedIdentity,
	count:  "FROM identities i ",
	where:  "WHERE i.connection_id = $1\n",
	args:   1,
	fields: linkedIdentityFields,
	id:     "i.id",
	idOf:   func(i LinkedIdentity) string { return i.ID },
	orders: []order[LinkedIdentity]{
		{name: "createdAt", column: "i.created_at", number: func(i LinkedIdentity) int64 { return micros(i.CreatedAt) }},
	},
	defaultOrder: "-createdAt",
})

// IdentityPage returns the identities of the connection, the newest first unless the window says
// otherwise. Errors: validation_failed, for an unknown order.
func (r Reader) IdentityPage(ctx context.Context, connectionID string, w doorward.Window) (doorward.Page[LinkedIdentity], error) {
	return identityPages.read(ctx, r, w, connectionID)
}

// InsertIdentity adds the identity, and reports whether nobody had it: of two sign-ins at once one adds it.
func (tx *Tx) InsertIdentity(ctx context.Context, i doorward.Identity) (bool, error) {
	return tx.affected(ctx, sqlInsertIdentity, i.ID, i.ConnectionID, i.TenantID, i.Issuer, i.Subject, i.UserID, micros(i.CreatedAt), micros(i.LastUsedAt))
}

// TouchIdentity records a sign-in now, and reports whether the identity exists.
func (tx *Tx) TouchIdentity(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlTouchIdentity, id, micros(tx.Now))
}

// DeleteIdentitiesSince deletes the identities of the account that were joined at an instant or after, and
// returns how many.
func (tx *Tx) DeleteIdentitiesSince(ctx context.Context, userID string, since time.Time) (int64, error) {
	return tx.exec(ctx, sqlDeleteIdentitiesSince, userID, micros(since))
}

// DeleteIdentity deletes the identity, and reports whether it existed. DeleteIssuerSessionsOf ends its
// sessions.
func (tx *Tx) DeleteIdentity(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDeleteIdentity, id)
}
