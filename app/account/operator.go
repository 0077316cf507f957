package account

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// What the operator does at the terminal for one person. Each is in the trail of every tenant in which the person
// is a member, suspended or not; for a person in no tenant, in that of the installation.

// forPerson does the operator's action to the account of the address, with the account and its tenants locked. It
// passes the account as it is then. Errors: not_found.
func (a *Accounts) forPerson(ctx context.Context, by doorward.Caller, action doorward.Action, address string, write func(*access.Tx, doorward.Account, []doorward.User) error) (doorward.Revocation, error) {
	found, err := proof.FindAccount(ctx, a.db.Read(), address)
	if err != nil {
		return doorward.Revocation{}, err
	}
	return a.withLocks(ctx, by, action, found.ID, func(tx *access.Tx, memberships []doorward.User) error {
		account, err := tx.Account(ctx, found.ID)
		if err != nil {
			return err
		}
		return write(tx, account, memberships)
	})
}

// record records the transaction's action in the trail of each of the tenants, with changes that they all see and
// the sessions that it has ended there.
func record(ctx context.Context, tx *access.Tx, action doorward.Action, memberships []doorward.User, ended map[string]int64, changes ...doorward.Change) error {
	for i, m := range memberships {
		own := append(append([]doorward.Change{}, changes...), access.EndedChanges(doorward.Ended{Sessions: ended[m.TenantID]})...)
		if i > 0 {
			if err := tx.RecordAlso(ctx, action, userObject(m.ID, m.TenantID), own...); err != nil {
				return err
			}
			continue
		}
		tx.SetTenant(m.TenantID)
		for _, c := range own {
			tx.Changed(c.Field, c.From, c.To)
		}
	}
	if len(memberships) == 0 {
		for _, c := range changes {
			tx.Changed(c.Field, c.From, c.To)
		}
	}
	return nil
}

// Show returns what is held about the person, without events. It isn't recorded. Errors: not_found.
func (a *Accounts) Show(ctx context.Context, address string) (held Held, err error) {
	account, err := proof.FindAccount(ctx, a.db.Read(), address)
	if err != nil {
		return held, err
	}
	err = a.db.Snapshot(ctx, func(read store.Reader) error {
		held, err = a.readAll(ctx, read, doorward.Caller{Principal: doorward.Principal{ID: account.ID}})
		return err
	})
	return held, err
}

// ExportFor is Export for the operator. Errors: not_found, those of w.
func (a *Accounts) ExportFor(ctx context.Context, by doorward.Caller, address string, w io.Writer) error {
	userID := ""
	_, err := a.forPerson(ctx, by, doorward.AccountExport, address, func(tx *access.Tx, account doorward.Account, memberships []doorward.User) error {
		userID = account.ID
		return record(ctx, tx, doorward.AccountExport, memberships, nil)
	})
	if err != nil {
		return err
	}
	return a.write(ctx, doorward.Caller{Principal: doorward.Principal{ID: userID}}, func() {}, w)
}

// SignOut ends all sessions of the person, in all tenants, and forgets the known browsers. Errors: not_found.
func (a *Accounts) SignOut(ctx context.Context, by doorward.Caller, address string) (ended doorward.Ended, err error) {
	ended.Revocation, err = a.forPerson(ctx, by, doorward.UserSignOut, address, func(tx *access.Tx, account doorward.Account, memberships []doorward.User) error {
		sessions, err := proof.EndAccess(ctx, tx, a.lifetime, account.ID, proof.Keep{})
		if err != nil {
			return err
		}
		ended.Sessions = 0
		for _, n := range sessions {
			ended.Sessions += n
		}
		if err := tx.ForgetBrowsers(ctx, account.ID); err != nil {
			return err
		}
		return record(ctx, tx, doorward.UserSignOut, memberships, sessions)
	})
	return ended, err
}

// Unlock ends the delays after wrong passwords and codes. Errors: not_found.
func (a *Accounts) Unlock(ctx context.Context, by doorward.Caller, address string) error {
	_, err := a.forPerson(ctx, by, doorward.AccountUnlock, address, func(tx *access.Tx, account doorward.Account, memberships []doorward.User) error {
		return errors.Join(proof.Unlock(ctx, tx.Tx, account), record(ctx, tx, doorward.AccountUnlock, memberships, nil))
	})
	return err
}

// resetLinkLife is how long a link of ResetLink works, as long as a mailed one.
const resetLinkLife = 30 * time.Minute

// ResetLink returns the token of a link by which the person sets another password. It ends earlier resets, and
// nothing else until it is used. Errors: not_found.
func (a *Accounts) ResetLink(ctx context.Context, by doorward.Caller, address string) (token secret.Token, ends time.Time, err error) {
	_, err = a.forPerson(ctx, by, doorward.PasswordLink, address, func(tx *access.Tx, account doorward.Account, memberships []doorward.User) error {
		token, ends = secret.New(), tx.Now.Add(resetLinkLife)
		hash := token.Hash()
		reset := store.Reset{ID: doorward.NewID(doorward.PrefixReset), UserID: account.ID, CreatedAt: tx.Now, ExpiresAt: ends}
		if err := tx.ExpireResets(ctx, account.ID); err != nil {
			return err
		}
		return errors.Join(tx.InsertReset(ctx, reset), tx.InsertLinkToken(ctx, hash[:], reset.ID), record(ctx, tx, doorward.PasswordLink, memberships, nil))
	})
	return token, ends, err
}

// NewEmail is the address that SetEmail gives to an account.
type NewEmail struct {
	From, To string
	Suspend  bool // suspend memberships whose tenants don't allow the new address
	ResetMFA bool // remove second factors
	NoUndo   bool // somebody else reads the old mailbox: it can't undo the change
}

// SetEmail gives an account another address, for a person who can't read mail at the old one. It ends sessions,
// known browsers, mailed links and challenges. Both mailboxes get a mail; by that to the old one the change can
// be undone for undoPeriod, as a change by the person. Errors: not_found, validation_failed, account_exists,
// memberships_affected, last_owner.
func (a *Accounts) SetEmail(ctx context.Context, by doorward.Caller, n NewEmail) (ended doorward.Ended, err error) {
	email, err := newAddress(n.To)
	if err != nil {
		return ended, err
	}
	n.To = email
	ended.Revocation, err = a.forPerson(ctx, by, doorward.AccountEmail, n.From, func(tx *access.Tx, account doorward.Account, memberships []doorward.User) (err error) {
		ended.Sessions, err = a.setEmail(ctx, tx, account, memberships, n)
		return err
	})
	return ended, asAccountExists(err, "Another account has this address.")
}

func (a *Accounts) setEmail(ctx context.Context, tx *access.Tx, account doorward.Account, memberships []doorward.User, n NewEmail) (sessions int64, err error) {
	if account.Email == n.To {
		return 0, doorward.Invalid("/email", "unchanged", "The account has this address already.")
	}
	refusing, err := affected(ctx, tx, memberships, n.To, n.Suspend)
	if err != nil {
		return 0, err
	}
	ended, err := proof.EndAccess(ctx, tx, a.lifetime, account.ID, proof.Keep{})
	if err != nil {
		return 0, err
	}
	for _, n := range ended {
		sessions += n
	}
	change := doorward.Change{Field: doorward.FieldEmail, From: account.Email, To: n.To}
	if err := record(ctx, tx, doorward.AccountEmail, memberships, ended, change); err != nil {
		return 0, err
	}
	for _, m := range refusing {
		if err := a.suspend(ctx, tx, m, n.To); err != nil {
			return 0, err
		}
	}
	if n.ResetMFA {
		if err := removeFactors(ctx, tx, account, memberships); err != nil {
			return 0, err
		}
	}
	return sessions, errors.Join(
		tx.ForgetBrowsers(ctx, account.ID),
		endMailed(ctx, tx, account.ID),
		tellBoth(ctx, tx, account, n),
		tx.SetEmail(ctx, account.ID, n.To),
	)
}

// removeFactors removes the account's second factors and recovery codes, and records that in the trails of the
// tenants.
func removeFactors(ctx context.Context, tx *access.Tx, account doorward.Account, memberships []doorward.User) error {
	err := errors.Join(
		tx.DeleteFactors(ctx, account.ID),
		tx.VoidFactorWords(ctx, account.ID),
		tx.UpdateFactorCounts(ctx, account.ID),
		proof.ClearCodes(ctx, tx.Tx, account.ID),
	)
	for _, m := range memberships {
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.MFAReset, userObject(m.ID, m.TenantID)))
	}
	return err
}

// tellBoth queues the mails to both mailboxes: to the old one with a link that undoes the change, unless
// somebody else reads it. Changes that were under way can't be confirmed any more, nor, with NoUndo, undone.
func tellBoth(ctx context.Context, tx *access.Tx, account doorward.Account, n NewEmail) error {
	if err := tx.Notify(ctx, store.MailEmailSet, n.To); err != nil {
		return err
	}
	if n.NoUndo {
		return errors.Join(tx.EndEmailChanges(ctx, account.ID), tx.Notify(ctx, store.MailEmailSet, account.Email))
	}
	change := store.EmailChange{
		ID: doorward.NewID(doorward.PrefixChange), UserID: account.ID, Old: account.Email, New: n.To,
		Generation: account.Generation, CreatedAt: tx.Now, UndoUntil: tx.Now.Add(undoPeriod), Suspend: n.Suspend,
	}
	if err := tx.InsertEmailChange(ctx, change); err != nil {
		return err
	}
	if err := tx.StartEmailChange(ctx, change.ID, tx.Now.Add(undoPeriod)); err != nil {
		return err
	}
	if _, err := tx.ConfirmEmailChange(ctx, change.ID, change.UndoUntil); err != nil {
		return err
	}
	return tx.QueueMail(ctx, store.MailEmailChanged, account.Email, change.ID)
}
