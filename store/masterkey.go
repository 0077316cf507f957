package store

import (
	"context"
	"fmt"
	"time"
)

// MasterKey is what the database knows of a master key, which lies in a file.
type MasterKey struct {
	ID        string // as seal.ID prints it
	Check     []byte // a known text sealed with it
	Wrapped   []byte // the key, sealed with the one before; nil when no node needs that
	Current   bool   // new values are sealed with it
	CreatedAt time.Time
}

func masterKeyColumns(k *MasterKey) []any {
	return []any{&k.ID, &k.Check, &k.Wrapped, &k.Current, (*storedTime)(&k.CreatedAt)}
}

const (
	sqlMasterKeys      = `SELECT id, check_value, wrapped, current, created_at FROM master_keys ORDER BY created_at, id`
	sqlAdoptMasterKey  = `INSERT INTO master_keys (id, check_value, current, created_at) VALUES ($1, $2, TRUE, $3) ON CONFLICT DO NOTHING`
	sqlInsertMasterKey = `INSERT INTO master_keys (id, check_value, wrapped, current, created_at) VALUES ($1, $2, $3, TRUE, $4)
ON CONFLICT (id) DO UPDATE SET wrapped = excluded.wrapped, current = TRUE`
	sqlReplaceMasterKey = `UPDATE master_keys SET current = FALSE WHERE current AND id = $1`
	sqlHoldMasterKey    = `UPDATE master_keys SET current = TRUE WHERE current AND id = $1`
	sqlUnwrapMasterKey  = `UPDATE master_keys SET wrapped = NULL WHERE current AND id = $1`
	sqlForgetMasterKeys = `DELETE FROM master_keys WHERE NOT current`
)

// MasterKeys returns the keys that values may be sealed with, the oldest first: none
// before the first is used, one, or two while a key is replaced.
func (r Reader) MasterKeys(ctx context.Context) ([]MasterKey, error) {
	return list(ctx, r, masterKeyColumns, sqlMasterKeys)
}

// AdoptMasterKey makes the key the current one, where there is none, and reports
// whether it is now.
func (tx *Tx) AdoptMasterKey(ctx context.Context, id string, check []byte) (bool, error) {
	if err := tx.run(ctx, sqlAdoptMasterKey, id, check, micros(tx.Now)); err != nil {
		return false, err
	}
	return tx.HoldMasterKey(ctx, id)
}

// HoldMasterKey reports whether the key is the current one, and keeps it so until the
// transaction ends: what it seals meanwhile is found by whoever replaces the key.
func (tx *Tx) HoldMasterKey(ctx context.Context, id string) (bool, error) {
	return tx.hit(ctx, sqlHoldMasterKey, id)
}

// ReplaceMasterKey makes next the current key in place of the one with the id, and
// reports whether that was it.
func (tx *Tx) ReplaceMasterKey(ctx context.Context, id string, next MasterKey) (bool, error) {
	replaced, err := tx.hit(ctx, sqlReplaceMasterKey, id)
	if err != nil || !replaced {
		return false, err
	}
	return true, tx.run(ctx, sqlInsertMasterKey, next.ID, next.Check, next.Wrapped, micros(tx.Now))
}

// ForgetMasterKeys removes what only nodes need that have an older key than the one
// with the id, and reports whether that is the current one.
func (tx *Tx) ForgetMasterKeys(ctx context.Context, current string) (bool, error) {
	is, err := tx.hit(ctx, sqlUnwrapMasterKey, current)
	if err != nil || !is {
		return false, err
	}
	return true, tx.run(ctx, sqlForgetMasterKeys)
}

// Sealed is a value that is sealed with a master key, and its place.
type Sealed struct {
	Table, ID, Column string
	Value             []byte
}

func sealedColumns(s *Sealed) []any { return []any{&s.Table, &s.ID, &s.Column, &s.Value} }

// A column whose values are sealed is called …_sealed, and stands in each of these
// statements; TestSealedColumns looks. What comes before the nonce names the key.
const (
	sqlSealedOtherwise = `SELECT 'signing_keys' AS place, id, 'private_sealed' AS field, private_sealed FROM signing_keys
WHERE substr(private_sealed, 1, 9) <> $1 ORDER BY place, field, id LIMIT $2`
	sqlSealedAny        = `SELECT count(*) FROM (SELECT 1 AS n FROM signing_keys LIMIT 1) AS used`
	sqlResealSigningKey = `UPDATE signing_keys SET private_sealed = $1 WHERE id = $2 AND private_sealed = $3`
)

var resealed = map[string]string{"signing_keys.private_sealed": sqlResealSigningKey}

// SealedOtherwise returns up to limit values whose first 9 bytes are not these: those
// that are sealed with another key.
func (r Reader) SealedOtherwise(ctx context.Context, header []byte, limit int) ([]Sealed, error) {
	return list(ctx, r, sealedColumns, sqlSealedOtherwise, header, limit)
}

// AnySealed reports whether there is a value that needs a master key.
func (r Reader) AnySealed(ctx context.Context) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlSealedAny)
	return n > 0, err
}

// Reseal exchanges the value, unless it has changed since it was read.
func (tx *Tx) Reseal(ctx context.Context, s Sealed, value []byte) error {
	query, ok := resealed[s.Table+"."+s.Column]
	if !ok {
		return fmt.Errorf("store: %s.%s has no statement that seals it again", s.Table, s.Column)
	}
	return tx.run(ctx, query, value, s.ID, s.Value)
}
