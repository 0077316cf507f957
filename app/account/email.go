// Package account is what people do with their own account: give it another address,
// take what is held about them, and erase it.
//
//	email.go   the change of the address, confirmed by mail and undone by mail
//	held.go    what is held about a person
package account

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Accounts is the feature. Make it with New.
type Accounts struct {
	writer   *access.Writer
	db       *store.DB
	verifier *credential.Verifier
	sessions store.SessionLifetime
}

// New returns the feature. sessions decides which sessions have expired and are
// not counted.
func New(writer *access.Writer, db *store.DB, verifier *credential.Verifier, sessions store.SessionLifetime) *Accounts {
	return &Accounts{writer, db, verifier, sessions}
}

// undoFor is how long a change can be undone: after it was asked for, and again after it
// was made.
const undoFor = 7 * 24 * time.Hour

// ChangeEmail asks for another address of the caller's account. The new address gets a
// mail with a code for Confirm, the present one a mail with a code for Undo. Answer and
// work are the same whether the new address has an account or not, and for the caller's
// own: who proves to read its mail learns it from Confirm. Earlier requests can't be
// confirmed any more. Errors: validation_failed, too_many_attempts, unauthenticated.
func (a *Accounts) ChangeEmail(ctx context.Context, by doorward.Caller, address string) error {
	if address == "" {
		return doorward.Invalid("/email", "required", "Say which address the account is to have.")
	}
	to, err := mailaddr.Parse(address)
	if err != nil {
		return doorward.Invalid("/email", "invalid", "This is "+err.Error()+".")
	}
	if err := a.verifier.CheckChangeLimits(ctx, by, to); err != nil {
		return err
	}
	on := doorward.Object{Type: "user", ID: by.ID, TenantID: by.TenantID}
	_, err = a.writer.Do(ctx, by, doorward.AccountEmail, on, func(tx *access.Tx) error {
		account, err := ownAccount(ctx, tx)
		if err != nil {
			return err
		}
		if err := a.verifier.CountChange(ctx, tx.Tx, by, to); err != nil {
			return err
		}
		return request(ctx, tx, account, to)
	})
	return err
}

// ownAccount returns the caller's account, locked. A session that has ended while the
// request waited for the lock changes nothing.
func ownAccount(ctx context.Context, tx *access.Tx) (doorward.Account, error) {
	if _, err := tx.LockAccount(ctx, tx.By.ID); err != nil {
		return doorward.Account{}, err
	}
	_, err := tx.Session(ctx, tx.By.SessionID)
	if errors.Is(err, store.ErrNone) {
		return doorward.Account{}, doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	if err != nil {
		return doorward.Account{}, err
	}
	return tx.Account(ctx, tx.By.ID)
}

func request(ctx context.Context, tx *access.Tx, account doorward.Account, to string) error {
	if err := tx.ExpireEmailChanges(ctx, account.ID); err != nil {
		return err
	}
	change := store.EmailChange{
		ID: doorward.NewID(doorward.PrefixEmailChange), UndoID: doorward.NewID(doorward.PrefixEmailUndo), UserID: account.ID,
		From: account.Email, To: to, Generation: account.Generation, CreatedAt: tx.Now, UndoUntil: tx.Now.Add(undoFor),
	}
	if err := tx.InsertEmailChange(ctx, change); err != nil {
		return err
	}
	record(tx, change, "requested")
	if err := tx.QueueMail(ctx, store.MailEmailConfirm, to, change.ID); err != nil {
		return err
	}
	return tx.Notify(ctx, store.MailEmailChanging, account.Email)
}

// record adds to the event what has become of the change. The mails about it find the
// change by its id.
func record(tx *access.Tx, c store.EmailChange, state string) {
	tx.Changed("email", c.From, c.To)
	tx.Changed("state", "", state)
	tx.Changed(access.FieldEmailChange, "", c.ID)
	tx.RecordUserAgent()
}

// ShowChange returns the addresses before and after the change that the token confirms.
// It changes nothing. Errors: email_change_not_found, email_change_over.
func (a *Accounts) ShowChange(ctx context.Context, token string) (from, to string, err error) {
	change, err := a.find(ctx, token, a.db.Read().EmailChangeByToken)
	if err == nil && !confirmable(change, a.db.Now()) {
		err = over()
	}
	return change.From, change.To, err
}

// ShowUndo is ShowChange for a token that undoes.
func (a *Accounts) ShowUndo(ctx context.Context, token string) (from, to string, err error) {
	change, err := a.find(ctx, token, a.db.Read().EmailChangeByUndo)
	if err == nil && !undoable(change, a.db.Now()) {
		err = over()
	}
	return change.From, change.To, err
}

func (a *Accounts) find(ctx context.Context, token string, byHash func(context.Context, []byte) (store.EmailChange, error)) (store.EmailChange, error) {
	if token == "" {
		return store.EmailChange{}, doorward.Invalid("/token", "required", "Send the code of the mail.")
	}
	parsed, err := secret.Parse(token)
	if err != nil {
		return store.EmailChange{}, doorward.Fail(doorward.CodeEmailChangeNotFound, "")
	}
	hash := parsed.Hash()
	change, err := byHash(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeEmailChangeNotFound, "")
	}
	return change, err
}

func confirmable(c store.EmailChange, now time.Time) bool {
	return c.Confirmed == nil && c.Undone == nil && c.ExpiresAt != nil && now.Before(*c.ExpiresAt)
}

func undoable(c store.EmailChange, now time.Time) bool {
	return c.Undone == nil && now.Before(c.UndoUntil)
}

func over() error { return doorward.Fail(doorward.CodeEmailChangeOver, "") }

// Confirm makes the change that the token of a mail to the new address stands for. The
// sessions go on; resets that were sent to the old address end. Errors:
// validation_failed, email_change_not_found, email_change_over, account_exists.
func (a *Accounts) Confirm(ctx context.Context, by doorward.Caller, token string) (doorward.Revocation, error) {
	change, err := a.find(ctx, token, a.db.Read().EmailChangeByToken)
	if err == nil && !confirmable(change, a.db.Now()) {
		err = over()
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	return a.settle(ctx, by, change, func(tx *access.Tx, account doorward.Account, memberships []doorward.User) error {
		open, err := tx.ConfirmEmailChange(ctx, change.ID, tx.Now.Add(undoFor))
		if err == nil && (!open || account.Email != change.From || account.Generation != change.Generation) {
			err = over()
		}
		if err != nil {
			return err
		}
		record(tx, change, "confirmed")
		if err := move(ctx, tx, memberships, account, change.To); err != nil {
			return err
		}
		if err := tx.ExpireResets(ctx, account.ID); err != nil {
			return err
		}
		return tx.Notify(ctx, store.MailEmailChanged, change.From)
	})
}

// Undo gives the account the address back that it had before the change of the token,
// whatever has become of the change since. It ends all sessions of the person, the trust
// in all browsers and later changes, and sends a reset to that address. Errors:
// validation_failed, email_change_not_found, email_change_over, account_exists.
func (a *Accounts) Undo(ctx context.Context, by doorward.Caller, token string) (doorward.Revocation, error) {
	change, err := a.find(ctx, token, a.db.Read().EmailChangeByUndo)
	if err == nil && !undoable(change, a.db.Now()) {
		err = over()
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	return a.settle(ctx, by, change, func(tx *access.Tx, account doorward.Account, memberships []doorward.User) error {
		open, err := tx.UndoEmailChange(ctx, change)
		if err == nil && !open {
			err = over()
		}
		if err != nil {
			return err
		}
		record(tx, store.EmailChange{ID: change.ID, From: account.Email, To: change.From}, "undone")
		if err := a.endAll(ctx, tx, account); err != nil {
			return err
		}
		if account.Email != change.From {
			if err := move(ctx, tx, memberships, account, change.From); err != nil {
				return err
			}
			if err := tx.Notify(ctx, store.MailEmailUndone, account.Email); err != nil {
				return err
			}
		}
		return tx.QueueReset(ctx, change.From, "")
	})
}

// settle runs act for somebody who has proved to read the mail of an address of the
// account. It locks the tenants of the account, then the account, as a login does.
func (a *Accounts) settle(ctx context.Context, by doorward.Caller, change store.EmailChange, act func(*access.Tx, doorward.Account, []doorward.User) error) (doorward.Revocation, error) {
	account, err := a.db.Read().Account(ctx, change.UserID)
	if errors.Is(err, store.ErrNone) {
		return doorward.Revocation{}, doorward.Fail(doorward.CodeEmailChangeNotFound, "")
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	by = by.As(doorward.User{ID: account.ID, Email: account.Email})
	on := doorward.Object{Type: "user", ID: account.ID}
	return a.writer.Do(ctx, by, doorward.AccountEmail, on, func(tx *access.Tx) error {
		account, memberships, err := lock(ctx, tx, change.UserID)
		if err != nil {
			return err
		}
		home, err := credential.Home(ctx, tx.Reader, account.ID, "")
		if err != nil {
			return err
		}
		tx.SetTenant(home)
		return act(tx, account, memberships)
	})
}

var errJoined = errors.New("account: it has joined another tenant meanwhile")

// lock returns the account and its memberships, with locks on the tenants and the account.
func lock(ctx context.Context, tx *access.Tx, id string) (doorward.Account, []doorward.User, error) {
	before, err := tx.Memberships(ctx, id)
	if err != nil {
		return doorward.Account{}, nil, err
	}
	slices.SortFunc(before, func(a, b doorward.User) int { return strings.Compare(a.TenantID, b.TenantID) })
	for _, m := range before {
		if err := tx.LockTenant(ctx, m.TenantID); err != nil {
			return doorward.Account{}, nil, err
		}
	}
	found, err := tx.LockAccount(ctx, id)
	if err != nil {
		return doorward.Account{}, nil, err
	}
	if !found {
		return doorward.Account{}, nil, doorward.Fail(doorward.CodeEmailChangeNotFound, "")
	}
	memberships, err := tx.Memberships(ctx, id)
	if err != nil {
		return doorward.Account{}, nil, err
	}
	for _, m := range memberships {
		if !slices.ContainsFunc(before, func(b doorward.User) bool { return b.TenantID == m.TenantID }) {
			return doorward.Account{}, nil, doorward.Unavailable(errJoined)
		}
	}
	account, err := tx.Account(ctx, id)
	return account, memberships, err
}

// move gives the account another address, and records that in each of its tenants.
func move(ctx context.Context, tx *access.Tx, memberships []doorward.User, account doorward.Account, to string) error {
	free, err := tx.SetEmail(ctx, memberships, account.ID, to)
	if err == nil && !free {
		err = doorward.Fail(doorward.CodeAccountExists, "")
	}
	if err != nil {
		return err
	}
	home, err := credential.Home(ctx, tx.Reader, account.ID, "")
	if err != nil {
		return err
	}
	for _, m := range memberships {
		if m.TenantID == home {
			continue
		}
		on := doorward.Object{Type: "user", ID: account.ID, TenantID: m.TenantID}
		if err := tx.RecordAlso(ctx, doorward.AccountEmail, on, doorward.Change{Field: "email", From: account.Email, To: to}); err != nil {
			return err
		}
	}
	return nil
}

// endAll ends what somebody who has got into the account may have left there.
func (a *Accounts) endAll(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	n, err := tx.DeleteUserSessions(ctx, a.sessions, account.ID, "")
	if err != nil {
		return err
	}
	if err := tx.RecordEndedByTenant(ctx, account.ID, n); err != nil {
		return err
	}
	if err := tx.RaiseGeneration(ctx, account.ID, nil); err != nil {
		return err
	}
	for _, end := range []func(context.Context, string) error{tx.ExpireResets, tx.EndChallenges} {
		if err := end(ctx, account.ID); err != nil {
			return err
		}
	}
	return tx.ClearThrottle(ctx, "newcomers:"+account.ID)
}

// sweepAtOnce bounds what one transaction deletes.
const sweepAtOnce = 200

// Sweep deletes changes that can no longer be undone.
func (a *Accounts) Sweep(ctx context.Context) error {
	for n := sweepAtOnce; n == sweepAtOnce; {
		err := a.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.DeleteEndedEmailChanges(ctx, sweepAtOnce)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
