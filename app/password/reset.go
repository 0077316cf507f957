package password

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Reset sets a new password with the token of a reset mail and ends all sessions of the person
// and the trust in all their browsers. Errors: validation_failed without a token; else, in
// this order, reset_not_found, reset_used, reset_expired, validation_failed (the token stays
// usable).
func (p *Passwords) Reset(ctx context.Context, by doorward.Caller, token, password, confirm string) (doorward.Revocation, error) {
	if token == "" {
		faults := p.rules.Load().CheckNew(password, confirm, "") // without a token the address is unknown
		return doorward.Revocation{}, doorward.InvalidFields(append([]doorward.FieldError{{Pointer: "/token", Code: "required", Message: "Send the code of the mail."}}, faults...)...)
	}
	_, account, err := open(ctx, p.db.Read(), token, p.db.Now())
	if err != nil {
		return doorward.Revocation{}, err
	}
	words, err := p.identityWords(ctx, account.ID)
	if err != nil {
		return doorward.Revocation{}, err
	}
	if faults := p.rules.Load().CheckNew(password, confirm, account.Email, words...); len(faults) > 0 {
		return doorward.Revocation{}, doorward.InvalidFields(faults...)
	}
	by = by.As(doorward.User{ID: account.ID, Email: account.Email})
	revocation, err := p.set(ctx, by, doorward.PasswordReset, account, password, func(tx *access.Tx) error { return use(ctx, tx, token) }, proof.Proof{})
	if errors.Is(err, errChanged) {
		return doorward.Revocation{}, doorward.Fail(doorward.CodeResetExpired, "The password has since been changed. Ask for a new mail.")
	}
	return revocation, err
}

// open returns the reset of a token and its account, if it can be used at the instant. Errors:
// reset_not_found, reset_used, reset_expired.
func open(ctx context.Context, read store.Reader, token string, at time.Time) (store.Reset, doorward.Account, error) {
	parsed, err := secret.Parse(token)
	if err != nil {
		return store.Reset{}, doorward.Account{}, doorward.Fail(doorward.CodeResetNotFound, "")
	}
	hash := parsed.Hash()
	reset, err := read.ResetByToken(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeResetNotFound, "")
	}
	if err != nil {
		return reset, doorward.Account{}, err
	}
	if err := checkUsable(reset, at); err != nil {
		return reset, doorward.Account{}, err
	}
	account, err := read.Account(ctx, reset.UserID)
	if errors.Is(err, store.ErrNone) { // erased since
		err = doorward.Fail(doorward.CodeResetNotFound, "")
	}
	return reset, account, err
}

func checkUsable(r store.Reset, now time.Time) error {
	switch {
	case r.UsedAt != nil:
		return doorward.Fail(doorward.CodeResetUsed, "")
	case !now.Before(r.ExpiresAt):
		return doorward.Fail(doorward.CodeResetExpired, "")
	}
	return nil
}

// use marks the reset as used, under the lock on the account; of concurrent calls one
// succeeds. The event goes to the trail that the user's administrators see. Errors: reset_not_found,
// reset_used, reset_expired.
func use(ctx context.Context, tx *access.Tx, token string) error {
	reset, _, err := open(ctx, tx.Reader, token, tx.Now)
	if err != nil {
		return err
	}
	used, err := tx.UseReset(ctx, reset.ID)
	if err == nil && !used { // a safeguard: under the lock the reset can't have been used since
		err = doorward.Fail(doorward.CodeResetUsed, "")
	}
	if err != nil {
		return err
	}
	home, err := proof.HomeTenant(ctx, tx.Reader, reset.UserID, "") // no tenant is preferred
	tx.SetTenant(home)
	return err
}
