package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// EmailChange is a change of an account's address: asked for, made, or undone.
type EmailChange struct {
	ID         string // subject of the tokens that confirm it
	UndoID     string // subject of the tokens that undo it
	UserID     string
	From, To   string // canonical addresses
	Generation int64  // of the account's credentials when it was asked for
	CreatedAt  time.Time
	ExpiresAt  *time.Time // for confirming; nil until the mail is made
	UndoUntil  time.Time
	Confirmed  *time.Time
	Undone     *time.Time
}

func emailChangeColumns(c *EmailChange) []any {
	return []any{
		&c.ID, &c.UndoID, &c.UserID, &c.From, &c.To, &c.Generation, (*storedTime)(&c.CreatedAt),
		nullableTime{&c.ExpiresAt},
		(*storedTime)(&c.UndoUntil),
		nullableTime{&c.Confirmed},
		nullableTime{&c.Undone},
	}
}

const (
	selectEmailChange = `SELECT c.id, c.undo_id, c.user_id, c.old_email, c.new_email, c.generation, c.created_at,
  c.expires_at, c.undo_until, c.confirmed_at, c.undone_at FROM email_changes c `

	sqlEmailChange           = selectEmailChange + `WHERE c.id = $1`
	sqlEmailChangeByToken    = selectEmailChange + `JOIN link_tokens l ON l.subject_id = c.id WHERE l.hash = $1 AND l.retired_at IS NULL`
	sqlEmailChangeByUndo     = selectEmailChange + `JOIN link_tokens l ON l.subject_id = c.undo_id WHERE l.hash = $1 AND l.retired_at IS NULL`
	sqlEmailChangesOf        = selectEmailChange + `WHERE c.user_id = $1 ORDER BY c.created_at, c.id`
	sqlInsertEmailChange     = `INSERT INTO email_changes (id, undo_id, user_id, old_email, new_email, generation, created_at, undo_until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlStartEmailChange      = `UPDATE email_changes SET expires_at = $1 WHERE id = $2 AND expires_at IS NULL`
	sqlExpireEmailChanges    = `UPDATE email_changes SET expires_at = $1 WHERE user_id = $2 AND confirmed_at IS NULL AND (expires_at IS NULL OR expires_at > $1)`
	sqlConfirmEmailChange    = `UPDATE email_changes SET confirmed_at = $1, undo_until = $2 WHERE id = $3 AND confirmed_at IS NULL AND undone_at IS NULL AND expires_at > $1`
	sqlUndoEmailChange       = `UPDATE email_changes SET undone_at = $1 WHERE id = $2 AND undone_at IS NULL AND undo_until > $1`
	sqlUndoLaterEmailChanges = `UPDATE email_changes SET undone_at = $1 WHERE user_id = $2 AND created_at >= $3 AND undone_at IS NULL`
)

// EmailChange returns the change, or ErrNone.
func (r Reader) EmailChange(ctx context.Context, id string) (EmailChange, error) {
	return one(ctx, r, emailChangeColumns, sqlEmailChange, id)
}

// EmailChangeByToken returns the change that a token of the hash confirms, or ErrNone.
func (r Reader) EmailChangeByToken(ctx context.Context, hash []byte) (EmailChange, error) {
	return one(ctx, r, emailChangeColumns, sqlEmailChangeByToken, hash)
}

// EmailChangeByUndo returns the change that a token of the hash undoes, or ErrNone.
func (r Reader) EmailChangeByUndo(ctx context.Context, hash []byte) (EmailChange, error) {
	return one(ctx, r, emailChangeColumns, sqlEmailChangeByUndo, hash)
}

// EmailChanges returns the changes of an account that are kept, the oldest first.
func (r Reader) EmailChanges(ctx context.Context, userID string) ([]EmailChange, error) {
	return list(ctx, r, emailChangeColumns, sqlEmailChangesOf, userID)
}

// InsertEmailChange adds a change that was asked for.
func (tx *Tx) InsertEmailChange(ctx context.Context, c EmailChange) error {
	return tx.run(ctx, sqlInsertEmailChange, c.ID, c.UndoID, c.UserID, c.From, c.To, c.Generation, micros(c.CreatedAt), micros(c.UndoUntil))
}

// StartEmailChange sets until when the change can be confirmed, unless that is set.
func (tx *Tx) StartEmailChange(ctx context.Context, id string, until time.Time) error {
	return tx.run(ctx, sqlStartEmailChange, micros(until), id)
}

// ExpireEmailChanges ends the account's changes that are not confirmed yet. They can
// still be undone.
func (tx *Tx) ExpireEmailChanges(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlExpireEmailChanges, micros(tx.Now), userID)
}

// ConfirmEmailChange marks the change as made, to be undone until an instant, and
// reports whether it was open.
func (tx *Tx) ConfirmEmailChange(ctx context.Context, id string, undoUntil time.Time) (bool, error) {
	return tx.affected(ctx, sqlConfirmEmailChange, micros(tx.Now), micros(undoUntil), id)
}

// UndoEmailChange marks the change, and all later ones of the account, as undone, and
// reports whether it could be undone.
func (tx *Tx) UndoEmailChange(ctx context.Context, c EmailChange) (bool, error) {
	undone, err := tx.affected(ctx, sqlUndoEmailChange, micros(tx.Now), c.ID)
	if err != nil || !undone {
		return false, err
	}
	return true, tx.run(ctx, sqlUndoLaterEmailChanges, micros(tx.Now), c.UserID, micros(c.CreatedAt))
}

const sqlSetEmail = `UPDATE users SET email = $1, revision = revision + 1 WHERE id = $2`

// SetEmail gives the account another canonical address, and reports whether that was
// free. The caller has locked the account, and the tenants of its memberships.
//
// A row that is inserted and deleted again holds the address: whoever inserts or takes it
// at the same time waits for this transaction.
func (tx *Tx) SetEmail(ctx context.Context, memberships []doorward.User, id, email string) (bool, error) {
	holder := doorward.NewID(doorward.PrefixUser)
	free, err := tx.affected(ctx, sqlInsertAccount, holder, email, "", micros(tx.Now), "")
	if err != nil || !free {
		return false, err
	}
	if err := tx.run(ctx, sqlDeleteAccount, holder); err != nil {
		return false, err
	}
	for _, m := range memberships {
		m.Email = email
		if err := tx.RenameUser(ctx, m, m.Name); err != nil {
			return false, err
		}
	}
	tx.announce(ChangeUser, id)
	return true, tx.run(ctx, sqlSetEmail, email, id)
}

const (
	sqlEndedEmailChanges  = selectEmailChange + `WHERE c.undo_until <= $1 LIMIT $2`
	sqlDeleteChangeTokens = `DELETE FROM link_tokens WHERE subject_id IN ($1, $2)`
	sqlDeleteEmailChange  = `DELETE FROM email_changes WHERE id = $1`
)

// DeleteEndedEmailChanges deletes changes that can no longer be undone, with their tokens.
// It returns how many, at most limit.
func (tx *Tx) DeleteEndedEmailChanges(ctx context.Context, limit int) (int, error) {
	ended, err := list(ctx, tx.Reader, emailChangeColumns, sqlEndedEmailChanges, micros(tx.Now), limit)
	if err != nil {
		return 0, err
	}
	return len(ended), tx.deleteEmailChanges(ctx, ended)
}

func (tx *Tx) deleteEmailChanges(ctx context.Context, all []EmailChange) error {
	for _, c := range all {
		if err := tx.run(ctx, sqlDeleteChangeTokens, c.ID, c.UndoID); err != nil {
			return err
		}
		if err := tx.run(ctx, sqlDeleteEmailChange, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// Browser is a known browser of an account.
type Browser struct {
	CreatedAt time.Time
	UsedAt    time.Time // the last sign-in, to a day; the zero Time: none after the first
}

func browserColumns(b *Browser) []any {
	return []any{(*storedTime)(&b.CreatedAt), optionalTime{&b.UsedAt}}
}

const (
	sqlBrowsersOf    = `SELECT created_at, used_at FROM devices WHERE user_id = $1 ORDER BY created_at`
	sqlInvitationsTo = selectInvitation + `WHERE i.email = $1 ORDER BY i.created_at, i.id`
	sqlAPIKeysOf     = selectAPIKey + `WHERE k.owner_id = $2 ORDER BY k.created_at, k.id`
	sqlMailsTo       = `SELECT id, kind, recipient, subject_id, state, tries, next_at, created_at, last_error, return_to, share
FROM mails WHERE recipient = $1 AND recipient <> '' ORDER BY created_at, id`
)

// Browsers returns the known browsers of an account, the oldest first.
func (r Reader) Browsers(ctx context.Context, userID string) ([]Browser, error) {
	return list(ctx, r, browserColumns, sqlBrowsersOf, userID)
}

// InvitationsTo returns the invitations of a canonical address in all tenants, the oldest
// first.
func (r Reader) InvitationsTo(ctx context.Context, email string) ([]doorward.Invitation, error) {
	return list(ctx, r, invitationColumns, sqlInvitationsTo, email)
}

// APIKeysOf returns the API keys that a user owns in all tenants, the oldest first.
func (r Reader) APIKeysOf(ctx context.Context, userID string, now time.Time) ([]doorward.APIKey, error) {
	return list(ctx, r, apiKeyColumns, sqlAPIKeysOf, micros(now), userID)
}

// MailsTo returns the mails to a canonical address that are kept, the oldest first.
func (r Reader) MailsTo(ctx context.Context, email string) ([]Mail, error) {
	return list(ctx, r, mailColumns, sqlMailsTo, email)
}
