// Package credential is where passwords are tried and made.
//
// Every way to try a password (login, accepting an invitation, changing the
// password) comes through Check, so that they share one counter of attempts
// and one order of work: count the attempt, look the account up, hash exactly
// once, record. Whether the address has an account changes none of it, and so
// neither the answer nor its time tells.
//
// Every password that is set comes through Rules and Hash.
package credential

import (
	"context"
	"errors"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// MaxPasswordBytes is the longest password that is hashed, in bytes; anything
// longer is wrong without being looked at.
const MaxPasswordBytes = 1024

// Desk tries passwords and hashes new ones.
type Desk struct {
	door   *access.Door
	db     *store.DB
	pool   *argon.Pool
	limits Limits
}

// New returns a desk.
func New(door *access.Door, db *store.DB, pool *argon.Pool, limits Limits) *Desk {
	return &Desk{door, db, pool, limits}
}

// Check returns the account of the address if the password is its own. Errors
// are invalid_credentials for every cause that lies with the caller,
// too_many_attempts, and unavailable. The address is as typed. A hash that was
// made elsewhere or with other parameters is replaced on success.
func (d *Desk) Check(ctx context.Context, by doorward.Caller, address, password string) (doorward.Account, error) {
	email := canonical(address)
	attempt, err := d.reserve(ctx, by, email)
	if err != nil {
		return doorward.Account{}, d.limited(ctx, by, email, attempt, err)
	}
	account, err := d.db.Read().AccountByEmail(ctx, email)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return doorward.Account{}, err
	}
	result, err := d.verify(ctx, account.PasswordHash, password)
	if err != nil {
		return doorward.Account{}, err
	}
	if !result.OK {
		return doorward.Account{}, d.refuse(ctx, by, email, doorward.Fail(doorward.CodeInvalidCredentials, ""))
	}
	if err := d.settle(ctx, by, attempt); err != nil {
		return doorward.Account{}, err
	}
	return d.modernise(ctx, account, password, result)
}

// canonical is the address to look up: one that can't be an address becomes
// the empty one, which no account has, and takes the same way.
func canonical(address string) string {
	email, err := mailaddr.Parse(address)
	if err != nil {
		return ""
	}
	return email
}

// verify does exactly one hash, also without an account and for a password
// that is too long to be one.
func (d *Desk) verify(ctx context.Context, hash, password string) (argon.Result, error) {
	password = norm.NFC.String(password)
	if len(password) > MaxPasswordBytes {
		hash, password = "", ""
	}
	result, err := d.pool.Verify(ctx, hash, password)
	if err != nil {
		return argon.Result{}, doorward.Unavailable(err)
	}
	return result, nil
}

// modernise replaces a hash of other parameters now that the password is
// known. Losing the race against a change of the password is no failure here:
// whoever relies on the hash checks it again in the transaction.
func (d *Desk) modernise(ctx context.Context, account doorward.Account, password string, result argon.Result) (doorward.Account, error) {
	if !result.Outdated {
		return account, nil
	}
	hash, err := d.Hash(ctx, password)
	if err != nil {
		return account, err
	}
	replaced := false
	err = d.door.Upkeep(ctx, func(tx *store.Tx) (err error) {
		replaced, err = tx.SetPassword(ctx, account.ID, account.PasswordHash, hash)
		return err
	})
	if replaced {
		account.PasswordHash = hash
	}
	return account, err
}

// Hash returns the PHC string of a new password, which Rules have let pass.
func (d *Desk) Hash(ctx context.Context, password string) (string, error) {
	hash, err := d.pool.Hash(ctx, norm.NFC.String(password))
	if err != nil {
		return "", doorward.Unavailable(err)
	}
	return hash, nil
}
