package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// MasterKey is what the database knows of a master key. The key itself is in a file.
type MasterKey struct {
	ID        string // as seal.ID prints it
	Check     []byte // a known text sealed with it
	Wrapped   []byte // the key, sealed with the previous one; nil: every node has it in its file
	Current   bool   // new values are sealed with it
	CreatedAt time.Time
}

func masterKeyFields(k *MasterKey) []any {
	return []any{&k.ID, &k.Check, &k.Wrapped, &k.Current, (*storedTime)(&k.CreatedAt)}
}

const (
	sqlMasterKeys      = `SELECT id, check_value, wrapped, current, created_at FROM master_keys ORDER BY created_at, id`
	sqlAdoptMasterKey  = `INSERT INTO master_keys (id, check_value, current, created_at) VALUES ($1, $2, TRUE, $3) ON CONFLICT DO NOTHING`
	sqlInsertMasterKey = `INSERT INTO master_keys (id, check_value, wrapped, current, created_at) VALUES ($1, $2, $3, TRUE, $4)
ON CONFLICT (id) DO UPDATE SET wrapped = excluded.wrapped, current = TRUE`
	sqlReplaceMasterKey     = `UPDATE master_keys SET current = FALSE WHERE current AND id = $1`
	sqlLockMasterKey        = `UPDATE master_keys SET current = TRUE WHERE current AND id = $1`
	sqlLockAllMasterKeys    = `UPDATE master_keys SET current = current`
	sqlDropWrappedMasterKey = `UPDATE master_keys SET wrapped = NULL WHERE current AND id = $1`
	sqlForgetMasterKeys     = `DELETE FROM master_keys WHERE NOT current`
	sqlDropMasterKeysExcept = `DELETE FROM master_keys WHERE id <> $1`
	sqlMakeMasterKeyCurrent = `UPDATE master_keys SET current = TRUE, wrapped = NULL WHERE id = $1`
)

// MasterKeys returns the keys that values may be sealed with, the oldest first: none
// before the first is used, one, or two while a key is replaced.
func (r Reader) MasterKeys(ctx context.Context) ([]MasterKey, error) {
	return list(ctx, r, masterKeyFields, sqlMasterKeys)
}

// AdoptMasterKey makes the key the current one if there is none, and reports whether it is the
// current one now.
func (tx *Tx) AdoptMasterKey(ctx context.Context, id string, check []byte) (bool, error) {
	if err := tx.run(ctx, sqlAdoptMasterKey, id, check, micros(tx.Now)); err != nil {
		return false, err
	}
	return tx.LockMasterKey(ctx, id)
}

// LockMasterKey reports whether the key is the current one, and keeps it current until the
// transaction ends: a later rotation finds what this transaction seals.
func (tx *Tx) LockMasterKey(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlLockMasterKey, id)
}

// LockAllMasterKeys makes other transactions that call LockMasterKey or LockAllMasterKeys wait until
// this one ends.
func (tx *Tx) LockAllMasterKeys(ctx context.Context) error { return tx.run(ctx, sqlLockAllMasterKeys) }

// ReplaceMasterKey makes next the current key in place of the one with the id. It reports
// false, and does nothing, unless that is the current one.
func (tx *Tx) ReplaceMasterKey(ctx context.Context, id string, next MasterKey) (bool, error) {
	replaced, err := tx.affected(ctx, sqlReplaceMasterKey, id)
	if err != nil || !replaced {
		return false, err
	}
	return true, tx.run(ctx, sqlInsertMasterKey, next.ID, next.Check, next.Wrapped, micros(tx.Now))
}

// ForgetMasterKeys deletes all keys except the current one, and the wrapped copy of the current
// one. It reports false, and does nothing, unless the current key is the one with the id.
func (tx *Tx) ForgetMasterKeys(ctx context.Context, id string) (bool, error) {
	current, err := tx.affected(ctx, sqlDropWrappedMasterKey, id)
	if err != nil || !current {
		return false, err
	}
	return true, tx.run(ctx, sqlForgetMasterKeys)
}

// AbandonMasterKeys makes the key the current and only one: the others are lost. Transactions that seal with
// one of them have ended, and later ones find that it isn't the current one.
func (tx *Tx) AbandonMasterKeys(ctx context.Context, id string, check []byte) error {
	if err := tx.run(ctx, sqlDropMasterKeysExcept, id); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlAdoptMasterKey, id, check, micros(tx.Now)); err != nil {
		return err
	}
	return tx.run(ctx, sqlMakeMasterKeyCurrent, id)
}

// SealedValue is a value that is sealed with a master key, and its place.
type SealedValue struct {
	Table, ID, Column string
	Value             []byte
}

const (
	sqlSealedSigningKeys = `SELECT id, private_sealed FROM signing_keys
WHERE substr(private_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealSigningKey = `UPDATE signing_keys SET private_sealed = $1 WHERE id = $2 AND private_sealed = $3`

	sqlSealedSeeds = `SELECT id, seed_sealed FROM factors
WHERE seed_sealed IS NOT NULL AND substr(seed_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealSeed = `UPDATE factors SET seed_sealed = $1 WHERE id = $2 AND seed_sealed = $3`

	sqlSealedHookSecrets = `SELECT id, secret_sealed FROM webhooks
WHERE substr(secret_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealHookSecret   = `UPDATE webhooks SET secret_sealed = $1 WHERE id = $2 AND secret_sealed = $3`
	sqlSealedHookPrevious = `SELECT id, previous_sealed FROM webhooks
WHERE previous_sealed IS NOT NULL AND substr(previous_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealHookPrevious = `UPDATE webhooks SET previous_sealed = $1 WHERE id = $2 AND previous_sealed = $3`
	sqlSealedHookKeys     = `SELECT id, private_sealed FROM webhooks
WHERE substr(private_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealHookKey = `UPDATE webhooks SET private_sealed = $1 WHERE id = $2 AND private_sealed = $3`

	sqlSealedClientSecrets = `SELECT id, secret_sealed FROM connection_secrets
WHERE length(secret_sealed) > 0 AND substr(secret_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealClientSecret = `UPDATE connection_secrets SET secret_sealed = $1 WHERE id = $2 AND secret_sealed = $3`
	sqlSealedClientKeys   = `SELECT id, private_sealed FROM connection_keys
WHERE substr(private_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealClientKey = `UPDATE connection_keys SET private_sealed = $1 WHERE id = $2 AND private_sealed = $3`
	sqlSealedSAMLKeys  = `SELECT id, private_sealed FROM connection_saml_keys
WHERE substr(private_sealed, 1, 9) <> $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlResealSAMLKey = `UPDATE connection_saml_keys SET private_sealed = $1 WHERE id = $2 AND private_sealed = $3`
)

// sealedColumn is a column whose values are sealed, with the statements by which they
// are sealed again. The first 9 bytes of a value name its key.
type sealedColumn struct{ table, column, find, reseal string }

// sealedColumns lists every column called …_sealed; TestSealedColumns compares it with the
// migrations.
var sealedColumns = []sealedColumn{
	{"signing_keys", "private_sealed", sqlSealedSigningKeys, sqlResealSigningKey},
	{"factors", "seed_sealed", sqlSealedSeeds, sqlResealSeed},
	{"webhooks", "secret_sealed", sqlSealedHookSecrets, sqlResealHookSecret},
	{"webhooks", "previous_sealed", sqlSealedHookPrevious, sqlResealHookPrevious},
	{"webhooks", "private_sealed", sqlSealedHookKeys, sqlResealHookKey},
	{"connection_secrets", "secret_sealed", sqlSealedClientSecrets, sqlResealClientSecret},
	{"connection_keys", "private_sealed", sqlSealedClientKeys, sqlResealClientKey},
	{"connection_saml_keys", "private_sealed", sqlSealedSAMLKeys, sqlResealSAMLKey},
}

// SealedTables returns the tables that have a sealed column, each once.
func SealedTables() (all []string) {
	for _, c := range sealedColumns {
		if !slices.Contains(all, c.table) {
			all = append(all, c.table)
		}
	}
	return all
}

func (c sealedColumn) isOf(s SealedValue) bool { return c.table == s.Table && c.column == s.Column }

// SealedWithOtherKeys returns up to limit values whose header (their first 9 bytes, which name
// the key) differs from header. It continues after last; the zero value means from the beginning.
func (r Reader) SealedWithOtherKeys(ctx context.Context, header []byte, last SealedValue, limit int) (all []SealedValue, err error) {
	first := max(0, slices.IndexFunc(sealedColumns, func(c sealedColumn) bool { return c.isOf(last) }))
	for _, c := range sealedColumns[first:] {
		fields := func(s *SealedValue) []any {
			s.Table, s.Column = c.table, c.column
			return []any{&s.ID, &s.Value}
		}
		afterID := ""
		if c.isOf(last) {
			afterID = last.ID
		}
		found, err := list(ctx, r, fields, c.find, header, afterID, limit-len(all))
		if all = append(all, found...); err != nil || len(all) == limit {
			return all, err
		}
	}
	return all, nil
}

const (
	sqlTenantOfSAMLKey = `SELECT c.tenant_id FROM connection_saml_keys x JOIN connections c ON c.id = x.connection_id WHERE x.id = $1`
	sqlTenantOfSecret  = `SELECT c.tenant_id FROM connection_secrets x JOIN connections c ON c.id = x.connection_id WHERE x.id = $1`
	sqlLostHooks       = `SELECT id FROM webhooks
WHERE tenant_id = $1 AND (substr(secret_sealed, 1, 9) <> $2 OR substr(private_sealed, 1, 9) <> $2) ORDER BY id`
	sqlLostConnections = `SELECT id FROM connections c WHERE tenant_id = $1 AND (EXISTS (SELECT 1 FROM connection_secrets x
WHERE x.connection_id = c.id AND length(x.secret_sealed) > 0 AND substr(x.secret_sealed, 1, 9) <> $2)
OR EXISTS (SELECT 1 FROM connection_saml_keys k WHERE k.connection_id = c.id AND substr(k.private_sealed, 1, 9) <> $2)) ORDER BY id`
)

// SecretTenant returns the tenant of the connection that a client secret belongs to, or ErrNone.
func (r Reader) SecretTenant(ctx context.Context, secretID string) (string, error) {
	return one(ctx, r, textField, sqlTenantOfSecret, secretID)
}

// SAMLKeyTenant returns the tenant of the connection of type saml that a key belongs to, or ErrNone.
func (r Reader) SAMLKeyTenant(ctx context.Context, keyID string) (string, error) {
	return one(ctx, r, textField, sqlTenantOfSAMLKey, keyID)
}

// LostSecrets returns the ids of the tenant's webhooks and connections that have a secret, or a key that somebody else has to learn, whose header
// (see SealedWithOtherKeys) differs from header.
func (r Reader) LostSecrets(ctx context.Context, tenantID string, header []byte) (webhooks, connections []string, err error) {
	if webhooks, err = list(ctx, r, textField, sqlLostHooks, tenantID, header); err != nil {
		return nil, nil, err
	}
	connections, err = list(ctx, r, textField, sqlLostConnections, tenantID, header)
	return webhooks, connections, err
}

// Reseal replaces the value, unless it has changed since it was read.
func (tx *Tx) Reseal(ctx context.Context, s SealedValue, value []byte) error {
	i := slices.IndexFunc(sealedColumns, func(c sealedColumn) bool { return c.isOf(s) })
	if i < 0 {
		return fault(fmt.Errorf("store: %s.%s is not in the list of sealed columns", s.Table, s.Column))
	}
	return tx.run(ctx, sealedColumns[i].reseal, value, s.ID, s.Value)
}
