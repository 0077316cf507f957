package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// undoPeriod is how long the old address can undo a change.
const undoPeriod = 7 * 24 * time.Hour

// ChangeEmail requests a change of the address. It mails a code that confirms the change to the
// new address, and a code that undoes it to the present one. Work and answer don't depend on
// whether the new address is free: only ConfirmEmail shows that, to somebody who reads mail
// there. Tenants that don't allow the new domain never prevent the change: with suspend, confirming it
// suspends these memberships. Errors: validation_failed, step_up_required, too_many_attempts,
// memberships_affected without suspend, unauthenticated, unavailable.
func (a *Accounts) ChangeEmail(ctx context.Context, by doorward.Caller, address string, suspend bool) error {
	email, fault := newAddress(address)
	if fault != nil {
		if err := a.writer.Require(ctx, by, doorward.AccountEmail, userObject(by.ID, by.TenantID)); err != nil {
			return err // report a missing proof of identity before a fault of the address
		}
		return fault
	}
	if err := a.verifier.CheckEmailChangeLimits(ctx, by, email); err != nil {
		return err
	}
	_, err := a.writer.Do(ctx, by, doorward.AccountEmail, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		account, err := lockOwnAccount(ctx, tx, by)
		if err != nil {
			return err
		}
		if err := tx.CountChange(ctx); err != nil {
			return err
		}
		memberships, err := tx.Memberships(ctx, account.ID)
		if err != nil {
			return err
		}
		if _, err := affected(ctx, tx, memberships, email, suspend); err != nil {
			return err
		}
		if err := a.verifier.CountEmailChange(ctx, tx.Tx, by, email); err != nil {
			return err
		}
		change := store.EmailChange{
			ID: doorward.NewID(doorward.PrefixChange), UserID: account.ID, Old: account.Email, New: email,
			Generation: account.Generation, CreatedAt: tx.Now, UndoUntil: tx.Now.Add(undoPeriod), Suspend: suspend,
		}
		if err := tx.InsertEmailChange(ctx, change); err != nil {
			return err
		}
		tx.Changed("requestedEmail", "", email)
		tx.RecordUserAgent()
		if err := tx.QueueMail(ctx, store.MailEmailConfirm, email, change.ID); err != nil {
			return err
		}
		return tx.QueueMail(ctx, store.MailEmailRequested, account.Email, change.ID)
	})
	return err
}

func newAddress(typed string) (string, error) {
	if typed == "" {
		return "", doorward.Invalid("/email", "required", "Enter the new address of the account.")
	}
	email, err := mailaddr.Parse(typed)
	if err != nil {
		return "", doorward.Invalid("/email", "invalid", "This is "+err.Error()+".")
	}
	return email, nil
}

func userObject(id, tenantID string) doorward.Object {
	return doorward.Object{Type: "user", ID: id, TenantID: tenantID}
}

// lockOwnAccount locks the caller's account and returns it, if the session has not ended since
// the request began. Errors: unauthenticated.
func lockOwnAccount(ctx context.Context, tx *access.Tx, by doorward.Caller) (doorward.Account, error) {
	locked, err := tx.LockAccount(ctx, by.ID)
	if err == nil && !locked {
		err = endedError()
	}
	if err == nil {
		err = checkSession(ctx, tx, by)
	}
	if err != nil {
		return doorward.Account{}, err
	}
	return tx.Account(ctx, by.ID)
}

func endedError() error {
	return doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
}

// checkSession returns unauthenticated if the caller's session has ended. If a connection vouches for it, what
// belongs to the account needs more; see decide.ProvedOwn.
func checkSession(ctx context.Context, tx *access.Tx, by doorward.Caller) error {
	if by.Issuer != doorward.OwnIssuer {
		_, err := tx.DecideNow(ctx, by, doorward.AccountEmail, userObject(by.ID, ""))
		return err
	}
	_, err := tx.Session(ctx, by.SessionID)
	if errors.Is(err, store.ErrNone) {
		err = endedError()
	}
	return err
}

// ConfirmEmail gives the caller's account the new address, by the code that was mailed there. A session
// of the account is needed, but no recent proof, unless a connection vouches for it: a person who reads
// mail at the new address might otherwise take over an account whose factors belong to somebody else. Sessions stay
// valid; resets of the password or of factors that were mailed to the old address become invalid. Errors:
// validation_failed, unauthenticated, sign_in_required, step_up_required, managed_account, wrong_account,
// email_change_not_found, email_change_over, account_exists, memberships_affected, last_owner, unavailable.
func (a *Accounts) ConfirmEmail(ctx context.Context, by doorward.Caller, token string) (doorward.Revocation, error) {
	change, err := a.findChange(ctx, token, a.db.Read().EmailChangeByCode)
	if err == nil {
		err = checkOwner(by, change)
	}
	if err == nil {
		err = checkConfirmable(change, a.db.Now())
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	if by.Issuer != doorward.OwnIssuer {
		err = a.writer.Require(ctx, by, doorward.AccountEmail, userObject(by.ID, ""))
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	revocation, err := a.withLocks(ctx, asOwner(by, change), doorward.AccountEmail, change.UserID, func(tx *access.Tx, memberships []doorward.User) error {
		if err := checkSession(ctx, tx, by); err != nil {
			return err
		}
		if err := markConfirmed(ctx, tx, change); err != nil {
			return err
		}
		refusing, err := affected(ctx, tx, memberships, change.New, change.Suspend)
		if err != nil {
			return err
		}
		if err := recordChange(ctx, tx, change.UserID, change.Old, change.New); err != nil {
			return err
		}
		for _, m := range refusing {
			if err := a.suspend(ctx, tx, m, change.New); err != nil {
				return err
			}
		}
		if err := endMailed(ctx, tx, change.UserID); err != nil {
			return err
		}
		if err := tx.QueueMail(ctx, store.MailEmailChanged, change.Old, change.ID); err != nil {
			return err
		}
		return tx.SetEmail(ctx, change.UserID, change.New)
	})
	return revocation, asAccountExists(err, "Another account has this address.")
}

// checkOwner refuses unless the caller has a session of the account that the change belongs to.
func checkOwner(by doorward.Caller, change store.EmailChange) error {
	switch {
	case by.SessionID == "":
		return doorward.Fail(doorward.CodeUnauthenticated, "Sign in to the account whose address is to change.")
	case by.ID != change.UserID:
		return doorward.Fail(doorward.CodeWrongAccount, "The change is of another account. Sign in to that one.")
	}
	return nil
}

var errJoined = errors.New("account: it has joined a tenant since its tenants were locked")

// lockTries bounds the transactions of withLocks: each try locks the tenants that the account has
// joined during the last one, too.
const lockTries = 3

// asOwner returns the caller as the account of the change: the code is all the proof that is needed.
func asOwner(by doorward.Caller, change store.EmailChange) doorward.Caller {
	return by.As(doorward.User{ID: change.UserID, Email: change.Old})
}

// withLocks calls write in a transaction that has locked the account and the tenants of its memberships. The
// action has no session. Errors: email_change_over if the account is gone.
func (a *Accounts) withLocks(ctx context.Context, by doorward.Caller, action doorward.Action, userID string, write func(*access.Tx, []doorward.User) error) (doorward.Revocation, error) {
	for try := 1; ; try++ {
		revocation, err := a.writer.Do(ctx, by, action, userObject(userID, ""), func(tx *access.Tx) error {
			memberships, err := lockTenants(ctx, tx, userID)
			if err != nil {
				return err
			}
			return write(tx, memberships)
		})
		if try == lockTries || !errors.Is(err, errJoined) {
			return revocation, err
		}
	}
}

// findChange returns the change that a mailed code belongs to. Errors: validation_failed without
// a code, email_change_not_found.
func (a *Accounts) findChange(ctx context.Context, token string, find func(context.Context, []byte) (store.EmailChange, error)) (store.EmailChange, error) {
	if token == "" {
		return store.EmailChange{}, doorward.Invalid("/token", "required", "Send the code of the mail.")
	}
	parsed, err := secret.Parse(token)
	if err != nil {
		return store.EmailChange{}, doorward.Fail(doorward.CodeEmailChangeNotFound, "")
	}
	hash := parsed.Hash()
	change, err := find(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeEmailChangeNotFound, "")
	}
	return change, err
}

func changeOverError() error { return doorward.Fail(doorward.CodeEmailChangeOver, "") }

func checkConfirmable(c store.EmailChange, now time.Time) error {
	if c.ConfirmedAt != nil || c.ReplacedAt != nil || c.UndoneAt != nil || !now.Before(c.ConfirmUntil) {
		return changeOverError()
	}
	return nil
}

// lockTenants locks the tenants of the user in the order of their ids, and then the account. All
// changes of people use this order, so that they can't deadlock. Errors: unavailable, for errJoined.
func lockTenants(ctx context.Context, tx *access.Tx, userID string) ([]doorward.User, error) {
	memberships, err := tx.Memberships(ctx, userID)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range memberships {
		ids = append(ids, m.TenantID)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := tx.LockTenant(ctx, id); err != nil {
			return nil, err
		}
	}
	locked, err := tx.LockAccount(ctx, userID)
	if err == nil && !locked {
		err = changeOverError()
	}
	if err != nil {
		return nil, err
	}
	memberships, err = tx.Memberships(ctx, userID)
	for _, m := range memberships {
		if !slices.Contains(ids, m.TenantID) {
			return nil, doorward.Unavailable(errJoined)
		}
	}
	return memberships, err
}

// markConfirmed marks the change as confirmed, unless the account has changed since the request:
// a new password, or the end of all other sessions, makes the request invalid.
func markConfirmed(ctx context.Context, tx *access.Tx, change store.EmailChange) error {
	account, err := tx.Account(ctx, change.UserID)
	if errors.Is(err, store.ErrNone) { // erased since
		err = changeOverError()
	}
	if err != nil {
		return err
	}
	if account.Generation != change.Generation || account.Email != change.Old {
		return changeOverError()
	}
	confirmed, err := tx.ConfirmEmailChange(ctx, change.ID, tx.Now.Add(undoPeriod))
	if err == nil && !confirmed {
		err = changeOverError()
	}
	return err
}

// affected returns the active memberships whose tenants don't allow the address. Errors:
// memberships_affected if there are some that must not be suspended.
func affected(ctx context.Context, tx *access.Tx, memberships []doorward.User, email string, suspend bool) ([]doorward.User, error) {
	refused := doorward.Fail(doorward.CodeMembershipsAffected, "")
	var all []doorward.User
	for _, m := range memberships {
		if m.Status != doorward.UserActive {
			continue
		}
		tenant, err := tx.Tenant(ctx, m.TenantID)
		if err != nil {
			return nil, err
		}
		if !allowsDomain(tenant, email) {
			all = append(all, m)
			refused.Tenants = append(refused.Tenants, doorward.TenantName{ID: m.TenantID, Name: m.TenantName})
		}
	}
	if len(all) > 0 && !suspend {
		return nil, refused
	}
	return all, nil
}

// suspend suspends the membership because of the new address. Errors: last_owner, since the only OWNER of
// an active tenant can change its settings.
func (a *Accounts) suspend(ctx context.Context, tx *access.Tx, m doorward.User, address string) error {
	if err := member.Suspend(ctx, tx, a.lifetime, m, address); err != nil {
		return err
	}
	return a.owners.Keep(ctx, tx, m.TenantID, m.Role)
}

// recordChange records the change of the address in the trail of each tenant in which the account is
// active. It comes before the suspensions by the change.
func recordChange(ctx context.Context, tx *access.Tx, userID, from, to string, more ...doorward.Change) error {
	changes := append([]doorward.Change{{Field: doorward.FieldEmail, From: from, To: to}}, more...)
	for _, c := range changes {
		tx.Changed(c.Field, c.From, c.To)
	}
	tx.RecordUserAgent()
	home, err := proof.HomeTenant(ctx, tx.Reader, userID, "")
	if err != nil {
		return err
	}
	tx.SetTenant(home)
	return tx.RecordElsewhere(ctx, doorward.AccountEmail, userObject(userID, home), changes...)
}

// asAccountExists replaces store.ErrTaken by account_exists with the detail.
func asAccountExists(err error, detail string) error {
	if errors.Is(err, store.ErrTaken) {
		return doorward.Fail(doorward.CodeAccountExists, "%s", detail)
	}
	return err
}

// endMailed ends the open resets of the account's password and of its factors: their codes were
// mailed to an address that the account no longer has. It also ends other challenges of the account.
func endMailed(ctx context.Context, tx *access.Tx, userID string) error {
	if err := tx.ExpireResets(ctx, userID); err != nil {
		return err
	}
	if err := tx.ExpireFactorCodes(ctx, userID); err != nil {
		return err
	}
	return tx.EndChallenges(ctx, userID)
}

// Shown is a change that a code confirms.
type Shown struct {
	Old, New string // addresses
	IsOwn    bool   // the account is the caller's
}

// ShowConfirm returns the change that the token confirms. It changes nothing. Errors:
// validation_failed, email_change_not_found, email_change_over, unavailable.
func (a *Accounts) ShowConfirm(ctx context.Context, by doorward.Caller, token string) (Shown, error) {
	change, err := a.findChange(ctx, token, a.db.Read().EmailChangeByCode)
	if err == nil {
		err = checkConfirmable(change, a.db.Now())
	}
	return Shown{change.Old, change.New, checkOwner(by, change) == nil}, err
}
