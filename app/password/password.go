// Package password lets people replace a forgotten password by mail and change
// a known one.
package password

import (
	"context"
	"errors"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// Passwords is the feature. Make it with New.
type Passwords struct {
	door     *access.Door
	db       *store.DB
	desk     *credential.Desk
	rules    credential.Rules
	sessions store.Life
}

// New returns the feature. By the life of sessions it counts those that it ends.
func New(door *access.Door, db *store.DB, desk *credential.Desk, rules credential.Rules, sessions store.Life) *Passwords {
	return &Passwords{door, db, desk, rules, sessions}
}

// A person gets three mails an hour, whoever asks for them.
const (
	forgotHits   = 3
	forgotWindow = time.Hour
)

// maxReturn bounds what the link of a mail leads on to, as it stands there: in
// bytes, escaped. A line of a mail has 998 (RFC 5322, section 2.1.1), for the base
// URL and the token as well, and some programs make no link of what is wrapped.
const maxReturn = 700

// Forgot queues a mail with a reset link for the address. Whether it has an
// account is looked up when the mail leaves, not here, so neither the answer
// nor its time can tell. Errors: validation_failed, too_many_attempts.
//
// The link leads on to returnTo, a path or an address that the caller has found to
// be allowed: what stands here is mailed to whomever a stranger names. Empty, or
// too long for a link, it leads nowhere.
func (p *Passwords) Forgot(ctx context.Context, by doorward.Caller, address, returnTo string) error {
	if address == "" {
		return doorward.Invalid("/email", "required", "Say which address the account has.")
	}
	email, err := mailaddr.Parse(address)
	if err != nil {
		return doorward.Invalid("/email", "invalid", "This is "+err.Error()+".")
	}
	return p.door.Do(ctx, by, doorward.PasswordForgot, doorward.Object{Type: "user"}, func(tx *access.Tx) error {
		t, err := tx.HitThrottle(ctx, "forgot:"+email, forgotWindow)
		if err != nil {
			return err
		}
		if t.Hits > forgotHits {
			return &doorward.Error{Code: doorward.CodeTooManyAttempts, RetryAfter: t.Since.Add(forgotWindow).Sub(tx.Now)}
		}
		tx.MailShare = credential.Network(by.IP)
		return tx.QueueReset(ctx, email, linkable(returnTo))
	})
}

// linkable returns what can stand in a link and be stored, or nothing.
func linkable(returnTo string) string {
	if len(url.QueryEscape(returnTo)) > maxReturn || !utf8.ValidString(returnTo) {
		return ""
	}
	return returnTo
}

// Change replaces the caller's password and ends all other sessions, in every
// tenant. Errors: validation_failed, too_many_attempts.
func (p *Passwords) Change(ctx context.Context, by doorward.Caller, current, password, confirm string) error {
	words, err := p.words(ctx, by.User.ID)
	if err != nil {
		return err
	}
	faults := p.rules.CheckNew(password, confirm, by.User.Email, words...)
	if current == "" {
		faults = append(faults, doorward.FieldError{Pointer: "/currentPassword", Code: "required", Message: "Type the password you have now."})
	}
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	account, err := p.desk.Check(ctx, by, by.User.Email, current)
	if doorward.HasCode(err, doorward.CodeInvalidCredentials) {
		return wrongCurrent()
	}
	if err != nil {
		return err
	}
	err = p.set(ctx, by, doorward.PasswordChange, account, password, func(*access.Tx) error { return nil })
	if errors.Is(err, errRaced) {
		return wrongCurrent()
	}
	return err
}

func wrongCurrent() error {
	return doorward.Invalid("/currentPassword", "wrong", "This is not the password you have now.")
}

// words are the names that the person's password may not contain.
func (p *Passwords) words(ctx context.Context, userID string) ([]string, error) {
	memberships, err := p.db.Read().Memberships(ctx, userID)
	var words []string
	for _, m := range memberships {
		words = append(words, m.Name, m.TenantName)
	}
	return words, err
}

// errRaced says that the password was replaced by someone else meanwhile.
var errRaced = errors.New("password: changed meanwhile")

// set replaces the password that account has, ends every session but the
// caller's own and tells the person by mail, with what guard adds, as one act.
func (p *Passwords) set(ctx context.Context, by doorward.Caller, act doorward.Action, account doorward.Account, password string, guard func(*access.Tx) error) error {
	hash, err := p.desk.Hash(ctx, password)
	if err != nil {
		return err
	}
	on := doorward.Object{Type: "user", ID: account.ID, TenantID: by.User.TenantID}
	return p.door.Do(ctx, by, act, on, func(tx *access.Tx) error {
		if err := guard(tx); err != nil {
			return err
		}
		replaced, err := tx.SetPassword(ctx, account.ID, account.PasswordHash, hash)
		if err != nil {
			return err
		}
		if !replaced {
			return errRaced
		}
		if err := p.endOthers(ctx, tx, account, by.Session.ID); err != nil {
			return err
		}
		tx.ByBrowser()
		return tx.Notify(ctx, store.MailPasswordChanged, account.Email)
	})
}

func (p *Passwords) endOthers(ctx context.Context, tx *access.Tx, account doorward.Account, but string) error {
	n, err := tx.DeleteUserSessions(ctx, p.sessions, account.ID, but)
	if err != nil {
		return err
	}
	if err := tx.EndedIn(ctx, account.ID, n); err != nil {
		return err
	}
	if err := tx.ExpireResets(ctx, account.ID); err != nil {
		return err
	}
	return credential.Forgive(ctx, tx.Tx, account.Email)
}
