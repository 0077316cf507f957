package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/doorward/doorward"
)

const serviceKeyColumns = `id, name, may, tenants, created_at, disabled_at IS NOT NULL`

func serviceKeyFields(k *doorward.ServiceKey) []any {
	return []any{&k.ID, &k.Name, wordsOf(&k.May, parseAction), wordsOf(&k.Tenants, parsePlainText), (*storedTime)(&k.CreatedAt), &k.Disabled}
}

func plainText(s string) string { return s }

func parsePlainText(s string) (string, error) { return s, nil }

const (
	sqlServiceKeyByHash = `SELECT ` + serviceKeyColumns + ` FROM service_keys WHERE hash = $1`
	sqlServiceKey       = `SELECT ` + serviceKeyColumns + ` FROM service_keys WHERE id = $1`
	sqlServiceKeys      = `SELECT ` + serviceKeyColumns + ` FROM service_keys ORDER BY created_at, id`
)

// ServiceKeyByHash returns the key with the hash, also a disabled one, or ErrNone.
func (r Reader) ServiceKeyByHash(ctx context.Context, hash []byte) (doorward.ServiceKey, error) {
	return one(ctx, r, serviceKeyFields, sqlServiceKeyByHash, hash)
}

// ServiceKey returns the key with the id, also a disabled one, or ErrNone.
func (r Reader) ServiceKey(ctx context.Context, id string) (doorward.ServiceKey, error) {
	return one(ctx, r, serviceKeyFields, sqlServiceKey, id)
}

// ServiceKeys returns all keys, the oldest first.
func (r Reader) ServiceKeys(ctx context.Context) ([]doorward.ServiceKey, error) {
	return list(ctx, r, serviceKeyFields, sqlServiceKeys)
}

const sqlInsertServiceKey = `INSERT INTO service_keys (id, name, hash, may, tenants, created_at) VALUES ($1, $2, $3, $4, $5, $6)`

// InsertServiceKey adds the key.
func (tx *Tx) InsertServiceKey(ctx context.Context, k doorward.ServiceKey, hash []byte) error {
	return tx.run(ctx, sqlInsertServiceKey, k.ID, k.Name, hash, joined(k.May, actionText), joined(k.Tenants, plainText), micros(k.CreatedAt))
}

const (
	sqlDeleteServiceKey     = `DELETE FROM service_keys WHERE id = $1`
	sqlEnableServiceKey     = `UPDATE service_keys SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL`
	sqlDisableAllServiceKey = `UPDATE service_keys SET disabled_at = $1 WHERE disabled_at IS NULL RETURNING ` + serviceKeyColumns
)

// DeleteServiceKey deletes the key and reports whether it existed. Keys are never
// cached, so no change is announced.
func (tx *Tx) DeleteServiceKey(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDeleteServiceKey, id)
}

// EnableServiceKey makes a disabled key work again, and reports whether it was disabled.
func (tx *Tx) EnableServiceKey(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlEnableServiceKey, id)
}

// DisableAllServiceKeys disables all keys, and returns those that worked, the oldest
// first.
func (tx *Tx) DisableAllServiceKeys(ctx context.Context) ([]doorward.ServiceKey, error) {
	keys, err := list(ctx, tx.Reader, serviceKeyFields, sqlDisableAllServiceKey, micros(tx.Now))
	slices.SortFunc(keys, func(a, b doorward.ServiceKey) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return keys, err
}

const sqlRevokeInvitationsOfService = `UPDATE invitations SET state = 'REVOKED', revoked_at = $1
WHERE service_key_id = $2 AND service_key_id <> '' AND state = 'PENDING' AND expires_at > $1 RETURNING tenant_id`

// RevokedInvitations counts the invitations that were revoked in a tenant.
type RevokedInvitations struct {
	TenantID    string
	Invitations int64
}

// RevokeInvitationsOfService revokes the pending invitations that the service key sent,
// and returns how many in each tenant, in the order of their ids.
func (tx *Tx) RevokeInvitationsOfService(ctx context.Context, id string) ([]RevokedInvitations, error) {
	tenants, err := list(ctx, tx.Reader, textField, sqlRevokeInvitationsOfService, micros(tx.Now), id)
	counts := map[string]int64{}
	for _, tenantID := range tenants {
		counts[tenantID]++
	}
	var all []RevokedInvitations
	for _, tenantID := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, RevokedInvitations{tenantID, counts[tenantID]})
	}
	return all, err
}
