// Package key makes and checks the keys of the operator, and keeps the secret
// that signs cursors.
package key

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// OperatorPrefix is what every operator key begins with, so that a leaked one
// is recognised by whoever finds it.
const OperatorPrefix = "dwo_"

// Keys is the feature. Make it with New.
type Keys struct {
	door    *access.Door
	db      *store.DB
	cursors atomic.Pointer[[]byte]
}

// New returns the feature.
func New(door *access.Door, db *store.DB) *Keys { return &Keys{door: door, db: db} }

// CreateOperator makes an operator key and returns it. Only its hash is kept,
// so this is the only time that it can be seen. Errors: validation_failed.
func (k *Keys) CreateOperator(ctx context.Context, by doorward.Caller, name string) (string, error) {
	faults := doorward.NeedName("/name", name, "Name the key after what will use it.")
	if len(faults) > 0 {
		return "", doorward.InvalidFields(faults...)
	}
	token := secret.New()
	hash := token.Hash()
	id := doorward.NewID(doorward.PrefixKey)
	err := k.door.Do(ctx, by, doorward.KeyCreate, doorward.Object{Type: "key", ID: id}, func(tx *access.Tx) error {
		tx.Changed("name", "", name)
		return tx.InsertOperatorKey(ctx, store.OperatorKey{ID: id, Name: name, CreatedAt: tx.Now}, hash[:])
	})
	return OperatorPrefix + token.Reveal(), err
}

// Check returns the caller behind a bearer key, made of by. Errors:
// unauthenticated.
func (k *Keys) Check(ctx context.Context, by doorward.Caller, bearer string) (doorward.Caller, error) {
	text, isOperator := strings.CutPrefix(bearer, OperatorPrefix)
	token, err := secret.Parse(text)
	if !isOperator || err != nil {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	hash := token.Hash()
	key, err := k.db.Read().OperatorKey(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return by, err
	}
	by.Kind, by.KeyID = doorward.Operator, key.ID
	return by, nil
}
