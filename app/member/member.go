// Package member creates accounts and memberships. It is the only place that does:
// invitations and imports use it, and so must every other way to join a tenant. It also ends
// what depends on a membership (end.go).
//
// An account is one canonical address of the installation. A membership is an
// account in one tenant, with a role. Whether the caller may add somebody, and with
// which role, is decided by package access before any of this runs.
//
// Every function runs in the caller's transaction:
//
//	account, err := member.Ensure(ctx, tx, member.NewAccount(email, "", locale))
//	…
//	err = member.Add(ctx, tx, doorward.User{ID: account.ID, TenantID: tenantID, …})
//
// Locks are taken in the order of a login: tenant, account, membership. A transaction
// that adds several people must order them by address, or two of them would deadlock.
package member

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// NewAccount returns an account for Create or Ensure, with an id of its own. The
// address is canonical; the password hash and the locale may be empty.
func NewAccount(email, passwordHash, locale string) doorward.Account {
	return doorward.Account{ID: doorward.NewID(doorward.PrefixUser), Email: email, PasswordHash: passwordHash, Locale: locale}
}

// Create adds the account. Errors: account_exists when the address has one.
func Create(ctx context.Context, tx *access.Tx, a doorward.Account) error {
	created, err := insert(ctx, tx, a)
	if err == nil && !created {
		err = doorward.Fail(doorward.CodeAccountExists, "")
	}
	return err
}

var errNotCanonical = errors.New("member: the address of a new account is not in canonical form")

// insert reports whether the address was free. Two forms of one address would be two
// accounts of one person, so an address that isn't canonical is a mistake of the caller.
func insert(ctx context.Context, tx *access.Tx, a doorward.Account) (bool, error) {
	if email, err := mailaddr.Parse(a.Email); err != nil || email != a.Email {
		return false, errNotCanonical
	}
	a.CreatedAt = tx.Now
	return tx.InsertAccount(ctx, a)
}

// Account is the account of an address, locked until the transaction ends.
type Account struct {
	doorward.Account
	// Created reports whether this call created it.
	Created bool
	// Unused reports whether the account existed without a password and in no tenant, so that
	// no sign-in was possible.
	Unused bool
}

// maxInserts bounds the tries of Ensure: an account that already has the address may be deleted
// before Ensure locks it.
const maxInserts = 3

var errDeleted = errors.New("member: the account was deleted by others at each try")

// Ensure returns the account that has the address of a, or else creates a. An account in use
// keeps its password. An unused one gets the password of a, if there is one. The account is
// locked, so that its last membership, and with it the password, can't be removed
// at the same time. Errors: unavailable.
func Ensure(ctx context.Context, tx *access.Tx, a doorward.Account) (Account, error) {
	for range maxInserts {
		created, err := insert(ctx, tx, a)
		if err != nil || created {
			return Account{Account: a, Created: created}, err
		}
		existing, err := lock(ctx, tx, a.Email)
		if errors.Is(err, store.ErrNone) { // deleted since the insertion
			continue
		}
		if err == nil && existing.Unused && a.PasswordHash != "" {
			_, err = tx.SetPassword(ctx, existing.ID, "", a.PasswordHash)
		}
		return existing, err
	}
	return Account{}, doorward.Unavailable(errDeleted)
}

// lock locks the account of the address and returns it. Errors: store.ErrNone if it is deleted
// or has another address by then.
func lock(ctx context.Context, tx *access.Tx, email string) (a Account, err error) {
	if a.Account, err = tx.AccountByEmail(ctx, email); err != nil {
		return a, err
	}
	if _, err = tx.LockAccount(ctx, a.ID); err != nil {
		return a, err
	}
	if a.Account, err = tx.Account(ctx, a.ID); err == nil && a.Email != email { // it has got another address since
		err = store.ErrNone
	}
	if err != nil || a.PasswordHash != "" {
		return a, err
	}
	memberships, err := tx.CountMemberships(ctx, a.ID)
	a.Unused = memberships == 0
	return a, err
}

// SetFirstPassword gives an existing account without a password its first one, for a
// person who has proved to receive mail at the address. It ends the trust in browsers,
// as a reset does. Errors: account_exists when the account has a password or another address
// by now, or was deleted; those of CheckFirstPassword.
func SetFirstPassword(ctx context.Context, tx *access.Tx, a doorward.Account, hash string) error {
	if _, err := tx.LockAccount(ctx, a.ID); err != nil {
		return err
	}
	if err := CheckFirstPassword(ctx, tx.Reader, a); err != nil {
		return err
	}
	set, err := tx.SetPassword(ctx, a.ID, "", hash)
	if err == nil && set {
		var current doorward.Account
		current, err = tx.Account(ctx, a.ID)
		set = current.Email == a.Email
	}
	if err == nil && !set {
		err = doorward.Fail(doorward.CodeAccountExists, "")
	}
	if err != nil {
		return err
	}
	return tx.RaiseCredentialGeneration(ctx, a.ID, nil) // nil: no browser stays known
}

// CheckFirstPassword refuses the first password to an account that a tenant manages and that is in use: the
// mail of an invitation would end what the tenant's sign-on vouches for. It gets one by a reset, which removes
// the factors, too. Errors: managed_account.
func CheckFirstPassword(ctx context.Context, read store.Reader, a doorward.Account) error {
	current, err := read.Account(ctx, a.ID)
	if errors.Is(err, store.ErrNone) || err == nil && current.ManagedBy == "" {
		return nil
	}
	if err != nil {
		return err
	}
	memberships, err := read.CountMemberships(ctx, a.ID)
	if err == nil && memberships > 0 {
		err = doorward.Fail(doorward.CodeManagedAccount, "")
	}
	return err
}

// Add makes the account u.ID a member of the tenant u.TenantID, with the role, status
// and name of u, since u.CreatedAt or now. The caller has locked the tenant and the
// account, or created it in this transaction. Errors: already_member, also for a suspended
// member; quota_exceeded; validation_failed for a role that has been deleted since.
func Add(ctx context.Context, tx *access.Tx, u doorward.User) error {
	known, err := tx.HasRole(ctx, u.TenantID, u.Role)
	if err != nil {
		return err
	}
	if !known {
		return doorward.Invalid("/role", "invalid", "The tenant has no role "+string(u.Role)+".")
	}
	if err := checkQuota(ctx, tx, u.TenantID); err != nil {
		return err
	}
	if u.CreatedAt.IsZero() {
		u.CreatedAt = tx.Now
	}
	added, err := tx.InsertMembership(ctx, u)
	if err == nil && !added {
		err = doorward.Fail(doorward.CodeAlreadyMember, "")
	}
	if err == nil {
		err = joinDirectories(ctx, tx, u)
	}
	if err != nil {
		return err
	}
	return EachRemovalKey(ctx, tx.Reader, u, tx.ForgetRemoval)
}

// joinDirectories makes the new member what directories of the tenant have said of the address, such as when they invited
// the person. One that has switched the person off since does so to the member.
func joinDirectories(ctx context.Context, tx *access.Tx, u doorward.User) error {
	said, err := tx.JoinDirectoryUsers(ctx, u.TenantID, u.Email, u.ID)
	var off []string
	for _, d := range said {
		if !d.Active {
			off = append(off, d.ConnectionID)
		}
	}
	if err != nil || len(off) == 0 {
		return err
	}
	_, err = tx.SetSuspensions(ctx, u.TenantID, u.ID, off)
	return err
}

// EachRemovalKey calls do for each text by which a removal from the user's tenant is remembered: the address, the
// account, and who the person is at the tenant's providers. With all of them somebody who was removed doesn't come
// back by the tenant's sign-on under another address, nor as another account after the identity was deleted.
func EachRemovalKey(ctx context.Context, read store.Reader, u doorward.User, do func(ctx context.Context, tenantID, key string) error) error {
	keys := []string{u.Email, u.ID}
	identities, err := read.IdentitiesOf(ctx, u.ID)
	for _, i := range identities {
		if i.TenantID == u.TenantID {
			keys = append(keys, i.Key())
		}
	}
	for _, key := range keys {
		if err == nil {
			err = do(ctx, u.TenantID, key)
		}
	}
	return err
}

// checkQuota counts under the lock on the tenant, so that no race exceeds the quota.
func checkQuota(ctx context.Context, tx *access.Tx, tenantID string) error {
	t, err := tx.Tenant(ctx, tenantID)
	if err != nil || t.Quotas.People == nil {
		return err
	}
	members, _, err := tx.CountPeople(ctx, tenantID, tx.Now)
	if err != nil {
		return err
	}
	return t.Quotas.Check(doorward.QuotaPeople, members+1)
}
