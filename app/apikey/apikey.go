// Package apikey creates, changes, ends and checks API keys: the credentials of servers
// that belong to a tenant.
//
// A key acts under the authority of its owner, a member: it may do what its permissions,
// its role and the owner's role all allow. It has one secret, or two while a rotation
// is under way; only their hashes are stored.
//
//	apikey.go   reading
//	draft.go    creating, and checking the input
//	edit.go     changing
//	check.go    checks, from memory or the database
//	limit.go    requests a second
//	end.go      rotating and ending
//	report.go   ending a leaked key
//	sweep.go    notices before keys expire, and their expiry
package apikey

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/registry"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// Prefix begins the secret of every API key.
const Prefix = "dwk_"

// Keys is the feature. Make it with New.
type Keys struct {
	writer   *access.Writer
	db       *store.DB
	lease    *lease.Lease
	maxDays  int
	registry *registry.Registry    // by the hash of a secret
	queries  registry.QueryLimiter // bounds the checks that wait for the database
	states   keyStates             // last addresses, and limiters of requests, by key
}

// maxInMemory is how many secrets are kept in memory; others are read from the database.
const maxInMemory = 100_000

// New returns the feature. Keys are valid for maxDays at most. The memory follows the
// changes that the lease delivers.
func New(writer *access.Writer, db *store.DB, l *lease.Lease, maxDays int) *Keys {
	k := &Keys{writer: writer, db: db, lease: l, maxDays: maxDays, registry: registry.New(maxInMemory)}
	l.Follow(k.apply, k.registry.Reset)
	return k
}

// MaxDays returns the longest validity of a key in days, which is also the default.
func (k *Keys) MaxDays() int { return k.maxDays }

// Filter selects keys. It has not been checked yet; empty fields select all.
type Filter struct {
	Owner  string // a user's id
	Role   doorward.Role
	Status string
	Text   string // part of the name
}

var statuses = []doorward.APIKeyStatus{doorward.APIKeyActive, doorward.APIKeyDisabled, doorward.APIKeyExpired, doorward.APIKeyRevoked}

// List returns keys of the caller's tenant, the newest first. Errors:
// validation_failed.
func (k *Keys) List(ctx context.Context, by doorward.Caller, f Filter, w doorward.Window) (doorward.Page[doorward.APIKey], error) {
	status := doorward.APIKeyStatus(f.Status)
	if f.Status != "" && !slices.Contains(statuses, status) {
		return doorward.Page[doorward.APIKey]{}, doorward.InvalidFields(doorward.FieldError{
			Parameter: "status", Code: "invalid", Message: "The status is active, disabled, expired or revoked.",
		})
	}
	chosen := store.APIKeyFilter{Owner: f.Owner, Role: f.Role, Status: status, Text: f.Text}
	return k.db.Read().APIKeyPage(ctx, by.TenantID, chosen, k.db.Now(), w)
}

// Get returns a key of the caller's tenant. Errors: not_found.
func (k *Keys) Get(ctx context.Context, by doorward.Caller, id string) (doorward.APIKey, error) {
	key, err := k.db.Read().APIKey(ctx, id, k.db.Now())
	return requireInTenant(by, key, err)
}

// Self returns the key with which the caller authenticated. Errors: not_found for callers without
// a key.
func (k *Keys) Self(ctx context.Context, by doorward.Caller) (doorward.APIKey, error) {
	if by.Kind != doorward.ByKey {
		return doorward.APIKey{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return k.Get(ctx, by, by.ID)
}

func requireInTenant(by doorward.Caller, key doorward.APIKey, err error) (doorward.APIKey, error) {
	if errors.Is(err, store.ErrNone) || err == nil && key.TenantID != by.TenantID {
		return doorward.APIKey{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return key, err
}

func object(k doorward.APIKey) doorward.Object {
	return doorward.Object{Type: "key", ID: k.ID, TenantID: k.TenantID, Held: k.Role}
}

// change calls write with a key of the caller's tenant, which it reads again under the lock on the
// tenant. It decides again about that key: a change of its role may have given it a higher rank.
// Errors: not_found, forbidden if the key's role outranks the caller's, and the errors of write.
func (k *Keys) change(ctx context.Context, by doorward.Caller, action doorward.Action, id string, write func(*access.Tx, doorward.APIKey) error) (doorward.Revocation, error) {
	key, err := k.Get(ctx, by, id)
	if err != nil {
		return doorward.Revocation{}, err
	}
	reread := func(tx *store.Tx) (doorward.APIKey, error) {
		key, err := tx.APIKey(ctx, id, tx.Now)
		return requireInTenant(by, key, err)
	}
	return k.writer.DoAll(ctx, by, access.Operation{
		Action: action, On: object(key),
		ReadObject: func(tx *store.Tx) (doorward.Object, error) {
			current, err := reread(tx)
			return object(current), err
		},
		Write: func(tx *access.Tx) error {
			current, err := reread(tx.Tx)
			if err != nil {
				return err
			}
			return write(tx, current)
		},
	})
}
