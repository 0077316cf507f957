// Package password lets people replace a forgotten password by mail and change
// a known one.
package password

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/refusal"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// Passwords is the feature. Make it with New.
type Passwords struct {
	writer   *access.Writer
	db       *store.DB
	verifier *proof.Verifier
	rules    *atomic.Pointer[proof.Rules]
	lifetime store.SessionLifetime
}

// New returns the feature. Events count the sessions that a change ends; lifetime decides
// which of them have expired and are not counted.
func New(writer *access.Writer, db *store.DB, verifier *proof.Verifier, rules *atomic.Pointer[proof.Rules], lifetime store.SessionLifetime) *Passwords {
	return &Passwords{writer, db, verifier, rules, lifetime}
}

// maxReturn bounds the return parameter of the link in a mail, in bytes, escaped. A line of a
// mail has at most 998 bytes (RFC 5322, section 2.1.1), which must also hold the base URL and the
// token, and some programs break links that are wrapped.
const maxReturn = 700

// Forgot asks for a mail with a reset link for the address. The inbox's worker looks the
// account up later, so neither the answer nor its time reveals whether there is one. The
// link's page redirects to returnTo, which the caller has checked; it is left out if it is
// too long. Errors: validation_failed, too_many_attempts, unavailable.
func (p *Passwords) Forgot(ctx context.Context, by doorward.Caller, address, returnTo string) error {
	if address == "" {
		return doorward.Invalid("/email", "required", "Say which address the account has.")
	}
	email, err := mailaddr.Parse(address)
	if err != nil {
		return doorward.Invalid("/email", "invalid", "This is "+err.Error()+".")
	}
	if err := p.writer.RefuseIfPaused(ctx, by, doorward.PasswordForgot); err != nil {
		return err
	}
	if p.writer.Inbox.IsFull() {
		return doorward.Unavailable(refusal.ErrInboxFull)
	}
	if err := p.verifier.CheckForgotLimits(ctx, by, email); err != nil {
		return err
	}
	err = p.writer.Upkeep(ctx, func(tx *store.Tx) error {
		nth, err := p.verifier.CountForgot(ctx, tx, by, email)
		if err != nil {
			return err
		}
		return tx.FileInbox(ctx, newRequest(tx, by, email, nth, returnForLink(returnTo)))
	})
	if err == nil {
		p.writer.Inbox.CountFiled()
	}
	return err
}

// newRequest returns the inbox row of a request for a reset, the nth of the hour for the
// address. Each request has a row of its own, since each may lead to a mail.
func newRequest(tx *store.Tx, by doorward.Caller, email string, nth int, returnTo string) store.InboxRow {
	return store.InboxRow{
		Source: doorward.Site(by.IP), Action: doorward.PasswordForgot, Subject: strconv.Itoa(nth) + " " + email,
		Minute: tx.Now.Truncate(store.InboxMinute), Email: email, ReturnTo: returnTo, Hits: 1,
		Event: doorward.Event{
			ID: doorward.NewID(doorward.PrefixEvent), At: tx.Now, Action: doorward.PasswordForgot, Outcome: doorward.Done,
			ActorType: by.Kind, ActorID: by.ID, ActorEmail: by.Email, Target: doorward.Object{Type: "user"},
			IP: by.IP, RequestID: by.RequestID, Changes: []doorward.Change{},
		},
	}
}

// returnForLink returns returnTo if it can be stored and put into a link, else nothing.
func returnForLink(returnTo string) string {
	if len(url.QueryEscape(returnTo)) > maxReturn || !utf8.ValidString(returnTo) {
		return ""
	}
	return returnTo
}

// Changed says how the change was confirmed on all nodes, and how many attempts the known
// browser has left; see proof.Proof.Allowance.
type Changed struct {
	Revocation doorward.Revocation
	Allowance  *doorward.Allowance
}

// Change replaces the caller's password, ends all other sessions, in every tenant,
// and the trust in all other browsers. Errors: step_up_required first, so that
// a stolen session of a person with a second factor can't be used to guess the password;
// validation_failed, too_many_attempts.
func (p *Passwords) Change(ctx context.Context, by doorward.Caller, current, password, confirm string) (Changed, error) {
	if err := p.RequireChange(ctx, by); err != nil {
		return Changed{}, err
	}
	words, err := p.identityWords(ctx, by.ID)
	if err != nil {
		return Changed{}, err
	}
	faults := p.rules.Load().CheckNew(password, confirm, by.Email, words...)
	if current == "" {
		faults = append(faults, doorward.FieldError{Pointer: "/currentPassword", Code: "required", Message: "Type the password you have now."})
	}
	if len(faults) > 0 {
		return Changed{}, doorward.InvalidFields(faults...)
	}
	proved, err := p.verifier.CheckForAccount(ctx, by, by.ID, by.Email, current)
	if doorward.HasCode(err, doorward.CodeInvalidCredentials) {
		return Changed{}, wrongCurrent(err)
	}
	if err != nil {
		return Changed{}, err
	}
	if proof.SamePassword(current, password) {
		proved.Release(ctx) // no failure: the answer says that the password is correct
		return Changed{}, doorward.Invalid("/password", "unchanged", "This is the password you have now. Choose another one.")
	}
	revocation, err := p.set(ctx, by, doorward.PasswordChange, proved.Account, password, func(*access.Tx) error { return nil }, proved)
	if errors.Is(err, errChanged) {
		err = wrongCurrent(err)
	}
	return Changed{revocation, proved.Allowance()}, proved.FailIfRefused(ctx, err)
}

// RequireChange returns nil if the caller may change the password now. Errors:
// step_up_required if a second factor has to be proved first.
func (p *Passwords) RequireChange(ctx context.Context, by doorward.Caller) error {
	return p.writer.Require(ctx, by, doorward.PasswordChange, accountObject(by.ID, by.TenantID))
}

func accountObject(userID, tenantID string) doorward.Object {
	return doorward.Object{Type: "user", ID: userID, TenantID: tenantID}
}

// wrongCurrent turns the error of a wrong password into one of the field currentPassword, with
// the same allowance.
func wrongCurrent(err error) error {
	wrong := doorward.Invalid("/currentPassword", "wrong", "This is not the password you have now.")
	wrong.Allowance = doorward.AllowanceOf(err)
	return wrong
}

// identityWords returns the names that the person's password may not contain.
func (p *Passwords) identityWords(ctx context.Context, userID string) ([]string, error) {
	memberships, err := p.db.Read().Memberships(ctx, userID)
	var words []string
	for _, m := range memberships {
		words = append(words, m.Name, m.TenantName)
	}
	return words, err
}

// errChanged means that another request has changed the password since it was read.
var errChanged = errors.New("password: it has since been changed")

// set replaces the password of the account, ends every session except the caller's
// and the trust in every other browser, and queues a notice. guard runs first, under the lock
// on the account, and the attempt of the proof succeeds, in the same transaction.
func (p *Passwords) set(ctx context.Context, by doorward.Caller, action doorward.Action, account doorward.Account, password string, guard func(*access.Tx) error, proved proof.Proof) (doorward.Revocation, error) {
	hash, err := p.verifier.Hash(ctx, password)
	if err != nil {
		return doorward.Revocation{}, err
	}
	return p.writer.Do(ctx, by, action, accountObject(account.ID, by.TenantID), func(tx *access.Tx) error {
		current, err := replace(ctx, tx, account, hash, guard)
		if err != nil {
			return err
		}
		if err := proved.Succeed(ctx, tx.Tx); err != nil {
			return err
		}
		if err := p.endAccess(ctx, tx, current, by); err != nil {
			return err
		}
		if current.ManagedBy != "" {
			if err := endManagement(ctx, tx, current); err != nil {
				return err
			}
		}
		tx.RecordUserAgent()
		return tx.Notify(ctx, store.MailPasswordChanged, current.Email)
	})
}

// replace replaces the password hash of the account, and returns the account as it was before: it
// may have got another address since it was read. Errors: those of guard; errChanged.
func replace(ctx context.Context, tx *access.Tx, account doorward.Account, hash string, guard func(*access.Tx) error) (current doorward.Account, err error) {
	// Lock order: the account before its resets, as everywhere.
	if _, err := tx.LockAccount(ctx, account.ID); err != nil {
		return current, err
	}
	if err := guard(tx); err != nil {
		return current, err
	}
	if err := (proof.Proof{Account: account}).Lock(ctx, tx, errChanged); err != nil {
		return current, err
	}
	if current, err = tx.Account(ctx, account.ID); err != nil {
		return current, err
	}
	_, err = tx.SetPassword(ctx, current.ID, current.PasswordHash, hash)
	return current, err
}

// endAccess ends all access to the account but the session and the trust in the browser of a signed-in
// user who has just changed the password; not even that browser stands in for the second factor any
// more. It ends pending resets, clears the failed attempts, and lets later logins send notices again.
func (p *Passwords) endAccess(ctx context.Context, tx *access.Tx, account doorward.Account, by doorward.Caller) error {
	by.Email = account.Email // by which CurrentDevice finds the browser
	keep, err := proof.Keep{SessionID: by.SessionID}, error(nil)
	if by.SessionID != "" {
		if keep.Browser, err = proof.CurrentDevice(ctx, tx.Reader, by, tx.Now); err != nil {
			return err
		}
	}
	n, err := proof.EndAccess(ctx, tx, p.lifetime, account.ID, keep)
	if err != nil {
		return err
	}
	return errors.Join(
		tx.RecordEndedByTenant(ctx, account.ID, n),
		tx.ForgetBrowsers(ctx, account.ID),
		tx.ExpireResets(ctx, account.ID),
		proof.ClearDelays(ctx, tx.Tx, account.Email),
		proof.ClearLoginNotices(ctx, tx.Tx, account.ID, account.Email),
	)
}

// endManagement removes what the account has from the time in which a tenant managed it, which its first
// password has ended: somebody at the tenant's provider may have enrolled the factors.
func endManagement(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	tx.Changed("managed", "true", "false")
	if account.Factors == 0 {
		return nil
	}
	return errors.Join(
		tx.DeleteFactors(ctx, account.ID),
		tx.VoidFactorWords(ctx, account.ID),
		tx.EndChallenges(ctx, account.ID),
		tx.ExpireFactorCodes(ctx, account.ID),
		tx.Notify(ctx, store.MailFactorsRemoved, account.Email),
	)
}
