// Package key creates, checks and revokes the keys of operators and of services, and
// keeps the secret that signs cursors.
package key

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// OperatorPrefix begins every operator key, so that scanners recognise a leaked one.
const OperatorPrefix = "dwo_"

// Keys is the feature. Make it with New.
type Keys struct {
	writer       *access.Writer
	db           *store.DB
	cursorSecret atomic.Pointer[[]byte] // nil until it was read
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB) *Keys { return &Keys{writer: writer, db: db} }

// OperatorDraft is an operator key as an operator has typed it.
type OperatorDraft struct {
	Name    string
	Expires time.Duration // after its creation; 0: never
	May     []string      // permissions of doorward.OperatorPermissions; none: it may do everything
}

// CheckOperator cleans the name of the draft, and returns validation_failed unless the draft is valid.
func CheckOperator(d *OperatorDraft) error {
	if err := CheckName(&d.Name); err != nil {
		return err
	}
	if d.Expires < 0 {
		return doorward.Invalid("/expires", "out_of_range", "Say in how many days the key expires, such as 90d.")
	}
	all := actionNames(doorward.OperatorPermissions())
	for _, permission := range d.May {
		if !slices.Contains(all, permission) {
			return doorward.Invalid("/may", "invalid", fmt.Sprintf("An operator key can't be limited to %q. It can be limited to %s.", permission, strings.Join(all, ", ")))
		}
	}
	return nil
}

// CreateOperator creates an operator key that may do everything and never expires.
func (k *Keys) CreateOperator(ctx context.Context, by doorward.Caller, name string) (string, error) {
	return k.CreateLimitedOperator(ctx, by, OperatorDraft{Name: name})
}

// CreateLimitedOperator creates an operator key and returns it. Only its hash is stored,
// so it can't be shown again. Errors: validation_failed.
func (k *Keys) CreateLimitedOperator(ctx context.Context, by doorward.Caller, d OperatorDraft) (string, error) {
	if err := CheckOperator(&d); err != nil {
		return "", err
	}
	key := secret.NewKey(OperatorPrefix)
	hash := key.Hash()
	id := doorward.NewID(doorward.PrefixKey)
	_, err := k.writer.Do(ctx, by, doorward.KeyCreate, object(id), func(tx *access.Tx) error {
		row := store.OperatorKey{ID: id, Name: d.Name, CreatedAt: tx.Now}
		tx.Changed(doorward.FieldName, "", d.Name)
		for _, permission := range sorted(d.May) {
			row.May = append(row.May, doorward.Action(permission))
		}
		if len(d.May) > 0 {
			tx.Changed("may", "", strings.Join(sorted(d.May), " "))
		}
		if d.Expires > 0 {
			end := tx.Now.Add(d.Expires)
			row.ExpiresAt = &end
			tx.Changed("expiresAt", "", end.Format(time.RFC3339))
		}
		return tx.InsertOperatorKey(ctx, row, hash[:])
	})
	if err != nil {
		return "", err
	}
	return key.Reveal(), nil
}

// CheckName cleans the name, see doorward.CleanName, and returns validation_failed unless it is valid for a
// key.
func CheckName(name *string) error {
	faults := doorward.RequireName("/name", name, "Name the key after what will use it.")
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

func object(id string) doorward.Object { return doorward.Object{Type: "key", ID: id} }

// Operators returns the operator keys, expired ones too, the oldest first.
func (k *Keys) Operators(ctx context.Context) ([]store.OperatorKey, error) {
	return k.db.Read().OperatorKeys(ctx)
}

// FindOperators returns the key with the id, or all keys with the name. Errors:
// not_found.
func (k *Keys) FindOperators(ctx context.Context, idOrName string) ([]store.OperatorKey, error) {
	all, err := k.Operators(ctx)
	if err != nil {
		return nil, err
	}
	var named []store.OperatorKey
	for _, o := range all {
		if o.ID == idOrName {
			return []store.OperatorKey{o}, nil
		}
		if o.Name == idOrName {
			named = append(named, o)
		}
	}
	if len(named) == 0 {
		return nil, doorward.Fail(doorward.CodeNotFound, "No operator key has the name or id %s. \"doorward key list-operators\" shows all.", idOrName)
	}
	return named, nil
}

// RevokeOperator ends a key: the next request with it is unauthenticated, on every
// node, since each asks the database. Errors: not_found.
func (k *Keys) RevokeOperator(ctx context.Context, by doorward.Caller, o store.OperatorKey) error {
	_, err := k.writer.Do(ctx, by, doorward.KeyRevoke, object(o.ID), func(tx *access.Tx) error {
		deleted, err := tx.DeleteOperatorKey(ctx, o.ID)
		if err == nil && !deleted {
			err = doorward.Fail(doorward.CodeNotFound, "The operator key %s has already been revoked.", o.Name)
		}
		tx.Changed(doorward.FieldName, o.Name, "")
		return err
	})
	return err
}

// EndLeaked ends the leaked key with the hash. It notifies the operator by mail to
// mailTo, unless that is empty. It returns the key, and whether there was one.
func (k *Keys) EndLeaked(ctx context.Context, by doorward.Caller, hash secret.Hash, mailTo string) (leaked store.OperatorKey, found bool, err error) {
	leaked, err = k.db.Read().OperatorKey(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return leaked, false, nil
	}
	if err != nil {
		return leaked, false, err
	}
	_, err = k.writer.Do(ctx, by, doorward.APIKeyLeak, object(leaked.ID), func(tx *access.Tx) (err error) {
		if found, err = tx.DeleteOperatorKey(ctx, leaked.ID); err != nil {
			return err
		}
		if !found {
			tx.SkipEvent()
			return nil
		}
		tx.Changed(doorward.FieldName, leaked.Name, "")
		if mailTo == "" {
			return nil
		}
		return tx.Notify(ctx, store.MailOperatorKeyLeaked, mailTo)
	})
	return leaked, found && err == nil, err
}

// HashOf returns the hash under which an operator key is stored. It accepts keys of
// secret.NewKey, and the older form: the prefix and a token. The error never quotes the text.
func HashOf(text string) (secret.Hash, error) {
	rest, isOperator := strings.CutPrefix(text, OperatorPrefix)
	if !isOperator {
		return secret.Hash{}, secret.ErrMalformedKey
	}
	if token, err := secret.Parse(rest); err == nil {
		return token.Hash(), nil
	}
	key, err := secret.ParseKey(text)
	if err != nil {
		return secret.Hash{}, err
	}
	return key.Hash(), nil
}

// Check returns the caller as the operator or the service that a bearer key belongs to.
// Errors: unauthenticated; too_many_attempts after many unknown keys from the client's
// network; unavailable.
func (k *Keys) Check(ctx context.Context, by doorward.Caller, bearer string) (doorward.Caller, error) {
	if strings.HasPrefix(bearer, ServicePrefix) {
		return k.checkService(ctx, by, bearer)
	}
	hash, err := HashOf(bearer)
	if err != nil {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	key, err := k.db.Read().OperatorKey(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return by, k.refuseUnknown(ctx, by)
	}
	if err != nil {
		return by, err
	}
	if key.ExpiresAt != nil && !k.db.Now().Before(*key.ExpiresAt) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	by.Principal = doorward.Principal{Kind: doorward.Operator, ID: key.ID, Limits: key.May}
	return by, nil
}

// refuseUnknown counts an unknown key, and returns why it is refused.
func (k *Keys) refuseUnknown(ctx context.Context, by doorward.Caller) error {
	if err := k.writer.CountUnknownKey(ctx, by); err != nil {
		return err
	}
	return doorward.Fail(doorward.CodeUnauthenticated, "")
}
