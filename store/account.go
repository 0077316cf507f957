package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
)

// EmailChange is a requested or confirmed change of the address of an account.
type EmailChange struct {
	ID         string
	UserID     string
	Old, New   string // canonical addresses
	Generation int64  // of the account when it was requested
	CreatedAt  time.Time
	// ConfirmUntil is the Unix epoch until the mail to the new address is made.
	ConfirmUntil time.Time
	ConfirmedAt  *time.Time
	ReplacedAt   *time.Time // it can't be confirmed any more
	UndoUntil    time.Time
	UndoneAt     *time.Time // it can't be undone any more
	Suspend      bool       // memberships whose tenants don't allow New are to be suspended
}

func emailChangeFields(c *EmailChange) []any {
	return []any{
		&c.ID, &c.UserID, &c.Old, &c.New, &c.Generation, (*storedTime)(&c.CreatedAt), (*storedTime)(&c.ConfirmUntil),
		nullableTime{&c.ConfirmedAt},
		nullableTime{&c.ReplacedAt},
		(*storedTime)(&c.UndoUntil),
		nullableTime{&c.UndoneAt},
		&c.Suspend,
	}
}

const selectEmailChange = `SELECT e.id, e.user_id, e.old_email, e.new_email, e.generation, e.created_at, e.confirm_until,
  e.confirmed_at, e.replaced_at, e.undo_until, e.undone_at, e.suspend FROM email_changes e `

const (
	sqlEmailChange       = selectEmailChange + `WHERE e.id = $1`
	sqlEmailChangeByCode = selectEmailChange + `JOIN link_tokens l ON l.subject_id = e.id WHERE l.hash = $1 AND l.retired_at IS NULL`
	sqlEmailChangeByUndo = selectEmailChange + `JOIN link_tokens l ON e.id = substr(l.subject_id, 6)
WHERE l.hash = $1 AND l.retired_at IS NULL AND substr(l.subject_id, 1, 5) = 'undo_'`
)

// UndoSubject is the subject of the tokens that undo the change. The subject of the tokens
// that confirm it is its id.
func (c EmailChange) UndoSubject() string { return "undo_" + c.ID }

// EmailChange returns the change, or ErrNone.
func (r Reader) EmailChange(ctx context.Context, id string) (EmailChange, error) {
	return one(ctx, r, emailChangeFields, sqlEmailChange, id)
}

// EmailChangeByCode returns the change that a token hash confirms, or ErrNone.
func (r Reader) EmailChangeByCode(ctx context.Context, hash []byte) (EmailChange, error) {
	return one(ctx, r, emailChangeFields, sqlEmailChangeByCode, hash)
}

// EmailChangeByUndo returns the change that a token hash undoes, or ErrNone.
func (r Reader) EmailChangeByUndo(ctx context.Context, hash []byte) (EmailChange, error) {
	return one(ctx, r, emailChangeFields, sqlEmailChangeByUndo, hash)
}

const (
	sqlReplaceEmailChanges = `UPDATE email_changes SET replaced_at = $1 WHERE user_id = $2 AND confirmed_at IS NULL AND replaced_at IS NULL`
	sqlInsertEmailChange   = `INSERT INTO email_changes (id, user_id, old_email, new_email, generation, created_at, undo_until, suspend)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
)

// InsertEmailChange adds a change that is to be confirmed. Earlier changes of the user that
// aren't confirmed can't be confirmed any more, only undone.
func (tx *Tx) InsertEmailChange(ctx context.Context, c EmailChange) error {
	if err := tx.ReplaceEmailChanges(ctx, c.UserID); err != nil {
		return err
	}
	return tx.run(ctx, sqlInsertEmailChange, c.ID, c.UserID, c.Old, c.New, c.Generation, micros(c.CreatedAt), micros(c.UndoUntil), c.Suspend)
}

// ReplaceEmailChanges marks the user's unconfirmed changes as replaced: they can't be confirmed
// any more.
func (tx *Tx) ReplaceEmailChanges(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlReplaceEmailChanges, micros(tx.Now), userID)
}

const sqlEndEmailChanges = `UPDATE email_changes SET replaced_at = coalesce(replaced_at, $1), undone_at = coalesce(undone_at, $1) WHERE user_id = $2`

// EndEmailChanges marks all changes of the user's address: they can be neither confirmed nor undone.
func (tx *Tx) EndEmailChanges(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlEndEmailChanges, micros(tx.Now), userID)
}

const sqlStartEmailChange = `UPDATE email_changes SET confirm_until = $1 WHERE id = $2 AND confirm_until = 0`

// StartEmailChange sets ConfirmUntil, unless it is already set.
func (tx *Tx) StartEmailChange(ctx context.Context, id string, until time.Time) error {
	return tx.run(ctx, sqlStartEmailChange, micros(until), id)
}

const sqlConfirmEmailChange = `UPDATE email_changes SET confirmed_at = $1, undo_until = $2
WHERE id = $3 AND confirmed_at IS NULL AND replaced_at IS NULL AND undone_at IS NULL AND confirm_until > $1`

// ConfirmEmailChange marks the change as confirmed, and reports whether it could be: of
// concurrent callers, one succeeds.
func (tx *Tx) ConfirmEmailChange(ctx context.Context, id string, undoUntil time.Time) (bool, error) {
	return tx.affected(ctx, sqlConfirmEmailChange, micros(tx.Now), micros(undoUntil), id)
}

const (
	sqlUndoEmailChange = `UPDATE email_changes SET undone_at = $1 WHERE id = $2 AND undone_at IS NULL AND undo_until > $1`
	// The link in the mail of a later change must not reverse this.
	sqlUndoLaterChanges = `UPDATE email_changes SET undone_at = $1, replaced_at = coalesce(replaced_at, $1)
WHERE user_id = $2 AND created_at >= $3 AND undone_at IS NULL`
)

// UndoEmailChange marks the change and all later ones of the account as undone, and
// reports whether it could be undone: of concurrent callers, one succeeds. It also marks all
// later and all unconfirmed ones as replaced.
func (tx *Tx) UndoEmailChange(ctx context.Context, c EmailChange) (bool, error) {
	undone, err := tx.affected(ctx, sqlUndoEmailChange, micros(tx.Now), c.ID)
	if err != nil || !undone {
		return false, err
	}
	if err := tx.ReplaceEmailChanges(ctx, c.UserID); err != nil {
		return false, err
	}
	return true, tx.run(ctx, sqlUndoLaterChanges, micros(tx.Now), c.UserID, micros(c.CreatedAt))
}

const (
	sqlSetEmail = `UPDATE users SET email = $1, revision = revision + 1 WHERE id = $2 AND NOT EXISTS (SELECT 1 FROM users u WHERE u.email = $1)`
	// Before the address changes.
	sqlLeaveDomains = `INSERT INTO former_domains (tenant_id, user_id, domain, address, left_at)
SELECT m.tenant_id, m.user_id, d.domain, u.email, $2 FROM memberships m JOIN users u ON u.id = m.user_id
JOIN domains d ON d.tenant_id = m.tenant_id AND d.status <> 'pending' AND ` + isAddressIn + ` WHERE m.user_id = $1
ON CONFLICT (tenant_id, user_id, domain) DO UPDATE SET address = excluded.address`
	sqlReturnToDomains = `DELETE FROM former_domains WHERE user_id = $1 AND left_at > $2`
	sqlSetMemberEmail  = `UPDATE memberships SET search = $1, email_key = $2 WHERE tenant_id = $3 AND user_id = $4`
)

// ErrTaken is returned by SetEmail.
var ErrTaken = errors.New("store: another account has the address")

// SetEmail changes the address of an account, also in the lists of its tenants. Tenants that have the domain of
// the old address go on covering the member by it. Errors: ErrTaken, after which the transaction must be rolled
// back.
func (tx *Tx) SetEmail(ctx context.Context, userID, email string) error {
	tx.announce(ChangeUser, userID)
	if err := tx.run(ctx, sqlLeaveDomains, userID, micros(tx.Now)); err != nil {
		return err
	}
	set, err := tx.affected(ctx, sqlSetEmail, email, userID)
	if postgresDuplicate(err) || err == nil && !set {
		return ErrTaken
	}
	if err != nil {
		return err
	}
	memberships, err := tx.Memberships(ctx, userID)
	for _, m := range memberships {
		if err == nil {
			err = tx.run(ctx, sqlSetMemberEmail, searchable(email, m.Name), fold.Key(email), m.TenantID, userID)
		}
	}
	return err
}

const sqlFormerDomains = `SELECT domain FROM former_domains WHERE tenant_id = $1 AND user_id = $2 ORDER BY left_at`

// FormerDomains returns the domains of the tenant that the member's address has left, in the order of that.
func (r Reader) FormerDomains(ctx context.Context, tenantID, userID string) ([]string, error) {
	return list(ctx, r, textField, sqlFormerDomains, tenantID, userID)
}

const sqlFormerHolder = `SELECT user_id FROM former_domains WHERE tenant_id = $1 AND address = $2 AND address <> '' ORDER BY left_at DESC, user_id LIMIT 1`

// FormerHolder returns the member of the tenant who had the address, in a domain of the tenant, before it was changed:
// of several the last one. ErrNone: nobody had.
func (r Reader) FormerHolder(ctx context.Context, tenantID, address string) (userID string, err error) {
	return one(ctx, r, textField, sqlFormerHolder, tenantID, address)
}

const sqlAddressLeftAt = `SELECT left_at FROM former_domains WHERE tenant_id = $1 AND user_id = $2 AND address = $3`

// AddressLeftAt returns when the member's address left the domain of a former address of FormerHolder: of several times the
// first one. ErrNone: it never has.
func (r Reader) AddressLeftAt(ctx context.Context, tenantID, userID, address string) (time.Time, error) {
	at, err := one(ctx, r, instantColumn, sqlAddressLeftAt, tenantID, userID, address)
	return time.Time(at), err
}

// ReturnToDomains forgets the domains that the account has left since an instant, by changes of its address that
// are undone.
func (tx *Tx) ReturnToDomains(ctx context.Context, userID string, since time.Time) error {
	return tx.run(ctx, sqlReturnToDomains, userID, micros(since))
}

const (
	oldEmailChanges            = `(SELECT id FROM email_changes WHERE undo_until <= $1 ORDER BY undo_until, id LIMIT $2)`
	sqlDeleteOldEmailTokens    = `DELETE FROM link_tokens WHERE subject_id IN ` + oldEmailChanges
	sqlDeleteOldEmailUndos     = `DELETE FROM link_tokens WHERE subject_id IN (SELECT 'undo_' || o.id FROM ` + oldEmailChanges + ` o)`
	sqlDeleteOldEmailChanges   = `DELETE FROM email_changes WHERE id IN ` + oldEmailChanges
	sqlDeleteEmailChangeTokens = `DELETE FROM link_tokens WHERE subject_id IN (SELECT id FROM email_changes WHERE user_id = $1
  UNION SELECT 'undo_' || id FROM email_changes WHERE user_id = $1)`
	// The mails of a change go to other addresses than the account's, too.
	sqlDeleteEmailChangeMails = `DELETE FROM mails WHERE subject_id IN (SELECT id FROM email_changes WHERE user_id = $1)`
)

// DeleteOldEmailChanges deletes changes that can no longer be undone, with their tokens,
// and returns how many, at most limit.
func (tx *Tx) DeleteOldEmailChanges(ctx context.Context, limit int) (int64, error) {
	for _, query := range []string{sqlDeleteOldEmailTokens, sqlDeleteOldEmailUndos} {
		if err := tx.run(ctx, query, micros(tx.Now), limit); err != nil {
			return 0, err
		}
	}
	return tx.exec(ctx, sqlDeleteOldEmailChanges, micros(tx.Now), limit)
}

// FormerEmails returns the old and new addresses of the account's changes, confirmed or not,
// except its current address. A change is deleted when it can no longer be undone.
func (r Reader) FormerEmails(ctx context.Context, a doorward.Account) ([]string, error) {
	return list(ctx, r, textField, sqlFormerEmails, a.ID, a.Email)
}

const sqlFormerEmails = `SELECT old_email AS email FROM email_changes WHERE user_id = $1 AND old_email <> $2
UNION SELECT new_email FROM email_changes WHERE user_id = $1 AND new_email <> $2`
