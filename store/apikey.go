package store

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
)

// KeyCredential is an API key with everything that a check of one of its secrets needs.
type KeyCredential struct {
	Key    doorward.APIKey
	Tenant doorward.TenantStatus
	// SecretEndsAt is when the secret that was looked up ends, if a rotation has replaced
	// it. It may lie in the past.
	SecretEndsAt *time.Time
}

func apiKeyFields(k *doorward.APIKey) []any {
	return append([]any{
		&k.ID, &k.TenantID, &k.Name, &k.Role, wordsOf(&k.Permissions, parseAction), &k.Status, &k.OwnerID,
		nullableText{(*string)(&k.OwnerRole)},
		&k.CreatedBy, (*storedTime)(&k.CreatedAt), (*storedTime)(&k.ExpiresAt),
		nullableTime{&k.RotateBy},
		wordsOf(&k.AllowedIPs, parsePrefix), &k.PerSecond,
		nullableTime{&k.LastUsedAt},
		&k.LastUsedIP, &k.Hint,
		previousEnd{&k.Previous},
		previousUse{&k.Previous},
	}, rulesFields(&k.Rules)...)
}

func keyCredentialFields(c *KeyCredential) []any {
	return append(apiKeyFields(&c.Key), &c.Tenant, nullableTime{&c.SecretEndsAt})
}

// apiKeyColumns needs the joins of joinAPIKey.
const (
	apiKeyColumns = `k.id, k.tenant_id, k.name, k.role, k.permissions, k.status, k.owner_id, m.role, k.created_by, k.created_at, k.expires_at,
  k.rotate_by, k.allowed_ips, k.per_second, k.last_used_at, k.last_used_ip, s.hint, p.ends_at, p.last_used_at,
  (SELECT t.rules_revision FROM tenants t WHERE t.id = k.tenant_id), ` + modelRevision

	// $1 is now. At most one secret is valid beside the current one.
	joinAPIKey = `JOIN api_key_secrets s ON s.key_id = k.id AND s.ends_at IS NULL
LEFT JOIN api_key_secrets p ON p.hash = (SELECT y.hash FROM api_key_secrets y WHERE y.key_id = k.id AND y.ends_at > $1 ORDER BY y.ends_at DESC LIMIT 1)
LEFT JOIN memberships m ON m.tenant_id = k.tenant_id AND m.user_id = k.owner_id AND m.status = 'active'
`
	selectAPIKey = `SELECT ` + apiKeyColumns + ` FROM api_keys k ` + joinAPIKey

	// liveAPIKey selects the keys that have not ended at $1.
	liveAPIKey = `status IN ('active', 'disabled') AND ends_at > $1`
)

// wordsOf returns a scanner of a list of values separated by spaces, as joined writes it.
func wordsOf[T any](dest *[]T, parse func(string) (T, error)) wordsColumn[T] {
	return wordsColumn[T]{dest, parse}
}

type wordsColumn[T any] struct {
	dest  *[]T
	parse func(string) (T, error)
}

// Scan implements sql.Scanner.
func (w wordsColumn[T]) Scan(v any) error {
	var text string
	if err := (nullableText{&text}).Scan(v); err != nil {
		return err
	}
	all := []T{}
	for _, word := range strings.Fields(text) {
		value, err := w.parse(word)
		if err != nil {
			return err
		}
		all = append(all, value)
	}
	*w.dest = all
	return nil
}

func parseAction(s string) (doorward.Action, error) { return doorward.Action(s), nil }

// parsePrefix reads an address or a network in CIDR notation.
func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		addr, err := netip.ParseAddr(s)
		return netip.PrefixFrom(addr, addr.BitLen()), err
	}
	return netip.ParsePrefix(s)
}

func joined[T any](all []T, text func(T) string) string {
	parts := make([]string, len(all))
	for i, v := range all {
		parts[i] = text(v)
	}
	return strings.Join(parts, " ")
}

func actionText(a doorward.Action) string { return string(a) }

// previousEnd scans the end of the previous secret; NULL: there is none.
type previousEnd struct{ dest **doorward.PreviousSecret }

// Scan implements sql.Scanner.
func (p previousEnd) Scan(v any) error {
	if v == nil {
		*p.dest = nil
		return nil
	}
	*p.dest = new(doorward.PreviousSecret)
	return (*storedTime)(&(*p.dest).EndsAt).Scan(v)
}

// previousUse scans the last use of the secret that previousEnd has scanned.
type previousUse struct{ dest **doorward.PreviousSecret }

// Scan implements sql.Scanner.
func (p previousUse) Scan(v any) error {
	if *p.dest == nil {
		return nil
	}
	return nullableTime{&(*p.dest).LastUsedAt}.Scan(v)
}

const sqlAPIKey = selectAPIKey + `WHERE k.id = $2`

// APIKey returns the key as it is at now, or ErrNone.
func (r Reader) APIKey(ctx context.Context, id string, now time.Time) (doorward.APIKey, error) {
	return one(ctx, r, apiKeyFields, sqlAPIKey, micros(now), id)
}

const sqlAPIKeyBySecret = `SELECT ` + apiKeyColumns + `, t.status, x.ends_at
FROM api_key_secrets x JOIN api_keys k ON k.id = x.key_id JOIN tenants t ON t.id = k.tenant_id ` + joinAPIKey + `WHERE x.hash = $2`

// APIKeyBySecret returns the key of a secret's hash, whether or not it has ended, or
// ErrNone.
func (r Reader) APIKeyBySecret(ctx context.Context, hash []byte, now time.Time) (KeyCredential, error) {
	return one(ctx, r, keyCredentialFields, sqlAPIKeyBySecret, micros(now), hash)
}

// APIKeyFilter selects keys; empty fields select all.
type APIKeyFilter struct {
	Owner  string // a user's id
	Role   doorward.Role
	Status doorward.APIKeyStatus // at the time of the query
	Text   string                // words of the name, without regard to case and accents
}

var apiKeyPages = newPages(listing[doorward.APIKey]{
	head:  selectAPIKey,
	count: `FROM api_keys k `,
	where: `WHERE k.tenant_id = $2 AND ($3 = '' OR k.owner_id = $3)
  AND ($4 = '' OR $4 = CASE WHEN k.status <> 'revoked' AND k.ends_at <= $1 THEN 'expired' ELSE k.status END)
  AND ($5 = '' OR k.role = $5)
` + contains("k.search", 6),
	args:   5 + maxWords,
	fields: apiKeyFields,
	id:     "k.id",
	idOf:   func(k doorward.APIKey) string { return k.ID },
	orders: []order[doorward.APIKey]{
		{name: "createdAt", column: "k.created_at", number: func(k doorward.APIKey) int64 { return micros(k.CreatedAt) }},
		{name: "name", column: "k.name_key", key: func(k doorward.APIKey) string { return fold.Key(k.Name) }},
		{name: "expiresAt", column: "k.expires_at", number: func(k doorward.APIKey) int64 { return micros(k.ExpiresAt) }},
		{name: "lastUsedAt", column: "coalesce(k.last_used_at, 0)", number: func(k doorward.APIKey) int64 { return microsOrNone(k.LastUsedAt) }},
	},
	defaultOrder: "-createdAt",
})

// APIKeyPage returns keys of the tenant as they are at now, usually the newest first.
// Errors: validation_failed, for an unknown order.
func (r Reader) APIKeyPage(ctx context.Context, tenantID string, f APIKeyFilter, now time.Time, w doorward.Window) (doorward.Page[doorward.APIKey], error) {
	args := []any{micros(now), tenantID, f.Owner, string(f.Status), string(f.Role)}
	return apiKeyPages.read(ctx, r, w, append(args, searchArgs(f.Text)...)...)
}

const sqlCountLiveAPIKeys = `SELECT count(*) FROM api_keys WHERE ` + liveAPIKey + ` AND tenant_id = $2`

// CountLiveAPIKeys counts the tenant's keys that have not ended at now.
func (r Reader) CountLiveAPIKeys(ctx context.Context, tenantID string, now time.Time) (int, error) {
	return one(ctx, r, countColumn, sqlCountLiveAPIKeys, micros(now), tenantID)
}

const sqlCountLiveAPIKeysOf = `SELECT count(*) FROM api_keys WHERE ` + liveAPIKey + ` AND tenant_id = $2 AND owner_id = $3`

// CountLiveAPIKeysOf counts the keys that the user owns in the tenant and that have not ended
// at now.
func (r Reader) CountLiveAPIKeysOf(ctx context.Context, tenantID, ownerID string, now time.Time) (int64, error) {
	return one(ctx, r, int64Column, sqlCountLiveAPIKeysOf, micros(now), tenantID, ownerID)
}

const (
	sqlInsertAPIKey = `INSERT INTO api_keys (id, tenant_id, name, search, role, permissions, status, owner_id, created_by, created_at,
  expires_at, rotate_by, ends_at, allowed_ips, per_second, noticed_at, name_key)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $10, $16)`
	sqlInsertAPIKeySecret = `INSERT INTO api_key_secrets (hash, key_id, hint, created_at) VALUES ($1, $2, $3, $4)`
)

// InsertAPIKey adds the key with the hash of its secret, whose hint is k.Hint.
func (tx *Tx) InsertAPIKey(ctx context.Context, k doorward.APIKey, hash []byte) error {
	tx.Effects.Keys = append(tx.Effects.Keys, doorward.KeyEffect{After: k})
	err := tx.run(ctx, sqlInsertAPIKey, k.ID, k.TenantID, k.Name, searchable(k.Name), k.Role, joined(k.Permissions, actionText), k.Status,
		k.OwnerID, k.CreatedBy, micros(k.CreatedAt), micros(k.ExpiresAt), nullableMicros(k.RotateBy), micros(k.EndsAt()),
		joined(k.AllowedIPs, doorward.AddressText), k.PerSecond, fold.Key(k.Name))
	if err != nil {
		return err
	}
	return tx.run(ctx, sqlInsertAPIKeySecret, hash, k.ID, k.Hint, micros(tx.Now))
}

func nullableMicros(t *time.Time) any {
	if t == nil {
		return nil
	}
	return micros(*t)
}

const sqlUpdateAPIKey = `UPDATE api_keys SET name = $3, search = $4, permissions = $5, status = $6, owner_id = $7, expires_at = $8, rotate_by = $9,
  ends_at = $10, allowed_ips = $11, per_second = $12, noticed_at = CASE WHEN expires_at <> $8 THEN $1 ELSE noticed_at END, name_key = $13
WHERE id = $2 AND ` + liveAPIKey

// UpdateAPIKey writes what can be edited, and reports false if the key has ended. If ExpiresAt
// changes, notices that are already due count as sent.
func (tx *Tx) UpdateAPIKey(ctx context.Context, k doorward.APIKey) (bool, error) {
	if err := tx.announceAPIKey(ctx, k.ID); err != nil {
		return false, err
	}
	before, err := tx.APIKey(ctx, k.ID, tx.Now)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	tx.Effects.Keys = append(tx.Effects.Keys, doorward.KeyEffect{Before: before, After: k})
	return tx.affected(ctx, sqlUpdateAPIKey, micros(tx.Now), k.ID, k.Name, searchable(k.Name), joined(k.Permissions, actionText), k.Status,
		k.OwnerID, micros(k.ExpiresAt), nullableMicros(k.RotateBy), micros(k.EndsAt()), joined(k.AllowedIPs, doorward.AddressText), k.PerSecond, fold.Key(k.Name))
}

const sqlAPIKeyHashes = `SELECT hash FROM api_key_secrets WHERE key_id = $2 AND (ends_at IS NULL OR ends_at > $1)`

// announceAPIKey makes all nodes forget the key's valid secrets, before the key or a secret
// changes or ends. That includes secrets that ended up to clockMargin ago: they may still be
// valid on a node whose clock is behind.
func (tx *Tx) announceAPIKey(ctx context.Context, id string) error {
	return each(ctx, tx.Reader, bytesColumn, func(hash []byte) error {
		tx.announce(ChangeSession, SessionSubject(hash))
		return nil
	}, sqlAPIKeyHashes, micros(tx.Now.Add(-clockMargin)), id)
}

const (
	sqlEndReplacedSecrets = `UPDATE api_key_secrets SET ends_at = $3 WHERE key_id = $2 AND ends_at > $1`
	sqlReplaceSecret      = `UPDATE api_key_secrets SET ends_at = $1 WHERE key_id = $2 AND ends_at IS NULL`
	sqlAPIKeyRotated      = `UPDATE api_keys SET rotate_by = NULL, ends_at = expires_at WHERE id = $2 AND ` + liveAPIKey
	sqlDeleteEndedSecrets = `DELETE FROM api_key_secrets WHERE ends_at <= $1 AND hash IN (
  SELECT hash FROM api_key_secrets WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2)`
	endedSecretRetention = 30 * 24 * time.Hour
)

// RotateAPIKey replaces the current secret, which stays valid until graceEnds, and ends
// one that was replaced before. It reports false if the key has ended.
func (tx *Tx) RotateAPIKey(ctx context.Context, id string, hash []byte, hint string, graceEnds time.Time) (bool, error) {
	if err := tx.announceAPIKey(ctx, id); err != nil {
		return false, err
	}
	if live, err := tx.affected(ctx, sqlAPIKeyRotated, micros(tx.Now), id); err != nil || !live {
		return false, err
	}
	if err := tx.run(ctx, sqlEndReplacedSecrets, micros(tx.Now), id, tx.endsNow()); err != nil {
		return false, err
	}
	ends := micros(graceEnds)
	if !graceEnds.After(tx.Now) {
		ends = tx.endsNow()
	}
	if err := tx.run(ctx, sqlReplaceSecret, ends, id); err != nil {
		return false, err
	}
	return true, tx.run(ctx, sqlInsertAPIKeySecret, hash, id, hint, micros(tx.Now))
}

// EndReplacedSecrets ends the secret that a rotation has replaced, and reports whether
// there was a valid one.
func (tx *Tx) EndReplacedSecrets(ctx context.Context, id string) (bool, error) {
	if err := tx.announceAPIKey(ctx, id); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlEndReplacedSecrets, micros(tx.Now), id, tx.endsNow())
}

// endsNow is the end of a secret that ends now: an instant that has passed on every node,
// although their clocks differ a little.
func (tx *Tx) endsNow() int64 { return micros(tx.Now.Add(-clockMargin)) }

// DeleteEndedSecrets deletes secrets that ended 30 days ago or earlier, and returns how many,
// at most limit. Until then the trail can name the key of an ended secret that is presented.
func (tx *Tx) DeleteEndedSecrets(ctx context.Context, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteEndedSecrets, micros(tx.Now.Add(-endedSecretRetention)), limit)
}

const sqlRevokeAPIKey = `UPDATE api_keys SET status = 'revoked' WHERE id = $2 AND ` + liveAPIKey

// RevokeAPIKey ends the key for good, and reports false if it has ended already.
func (tx *Tx) RevokeAPIKey(ctx context.Context, id string) (bool, error) {
	if err := tx.announceAPIKey(ctx, id); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlRevokeAPIKey, micros(tx.Now), id)
}

// sortedIDs returns the ids that a statement returns, in an order that is the same on
// both databases.
func (tx *Tx) sortedIDs(ctx context.Context, query string, args ...any) ([]string, error) {
	ids, err := list(ctx, tx.Reader, textField, query, args...)
	slices.Sort(ids)
	return ids, err
}

const sqlRevokeAPIKeysOf = `UPDATE api_keys SET status = 'revoked' WHERE tenant_id = $2 AND owner_id = $3 AND ` + liveAPIKey + ` RETURNING id`

// RevokeAPIKeysOf ends the keys that the user owns in the tenant, and returns their ids.
func (tx *Tx) RevokeAPIKeysOf(ctx context.Context, tenantID, ownerID string) ([]string, error) {
	tx.announce(ChangeUser, ownerID)
	return tx.sortedIDs(ctx, sqlRevokeAPIKeysOf, micros(tx.Now), tenantID, ownerID)
}

const sqlTransferAPIKeys = `UPDATE api_keys SET owner_id = $4,
  rotate_by = CASE WHEN rotate_by < $5 THEN rotate_by ELSE $5 END, ends_at = CASE WHEN ends_at < $5 THEN ends_at ELSE $5 END
WHERE tenant_id = $2 AND owner_id = $3 AND ` + liveAPIKey + ` RETURNING id`

// TransferAPIKeys transfers the keys that the user from owns in the tenant to the user to, and
// returns their ids. They end at rotateBy at the latest, unless they are rotated.
func (tx *Tx) TransferAPIKeys(ctx context.Context, tenantID, from, to string, rotateBy time.Time) ([]string, error) {
	tx.announce(ChangeUser, from)
	ids, err := tx.sortedIDs(ctx, sqlTransferAPIKeys, micros(tx.Now), tenantID, from, to, micros(rotateBy))
	tx.Effects.KeysTransferred = tx.Effects.KeysTransferred || len(ids) > 0
	return ids, err
}

const sqlDisableAllAPIKeys = `UPDATE api_keys SET status = 'disabled' WHERE status = 'active' AND ends_at > $1 RETURNING id, name, tenant_id`

// KeyName names an API key to an operator.
type KeyName struct{ ID, Name, TenantID string }

// DisableAllAPIKeys disables the active keys of all tenants, and returns them in the order
// of their ids.
func (tx *Tx) DisableAllAPIKeys(ctx context.Context) ([]KeyName, error) {
	tx.announce(ChangeAll, "")
	fields := func(k *KeyName) []any { return []any{&k.ID, &k.Name, &k.TenantID} }
	keys, err := list(ctx, tx.Reader, fields, sqlDisableAllAPIKeys, micros(tx.Now))
	slices.SortFunc(keys, func(a, b KeyName) int { return strings.Compare(a.ID, b.ID) })
	return keys, err
}

const sqlAPIKeysToExpire = selectAPIKey + `WHERE k.status IN ('active', 'disabled') AND k.ends_at <= $1 ORDER BY k.ends_at, k.id LIMIT $2`

// APIKeysToExpire returns keys that have expired at now and are not marked as expired, the
// earliest first.
func (r Reader) APIKeysToExpire(ctx context.Context, now time.Time, limit int) ([]doorward.APIKey, error) {
	return list(ctx, r, apiKeyFields, sqlAPIKeysToExpire, micros(now), limit)
}

const sqlEachLiveAPIKey = selectAPIKey + `WHERE k.status IN ('active', 'disabled') AND k.ends_at > $1 ORDER BY k.tenant_id, k.id`

// EachLiveAPIKey calls fn with the keys of all tenants that have not ended at now, until fn
// fails, and returns fn's error. Their rules are not read.
func (r Reader) EachLiveAPIKey(ctx context.Context, now time.Time, fn func(doorward.APIKey) error) error {
	return each(ctx, r, apiKeyFields, fn, sqlEachLiveAPIKey, micros(now))
}

const sqlExpireAPIKey = `UPDATE api_keys SET status = 'expired' WHERE id = $2 AND status IN ('active', 'disabled') AND ends_at <= $1`

// ExpireAPIKey marks a key that has expired, and reports false if it is marked already.
// No node needs a notice: each refuses the key from its end on.
func (tx *Tx) ExpireAPIKey(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlExpireAPIKey, micros(tx.Now), id)
}

// Owners get no notice about disabled keys.
const (
	noticeDue = `k.status = 'active' AND k.ends_at > $1 AND k.ends_at <= $1 + $2 AND k.noticed_at < k.ends_at - $2`

	// The states repeat the condition of the index api_keys_end, so that it is used.
	sqlAPIKeysExpiring = selectAPIKey + `WHERE k.status IN ('active', 'disabled') AND ` + noticeDue + ` ORDER BY k.ends_at, k.id LIMIT $3`
	sqlAPIKeysEnding   = selectAPIKey + `WHERE k.tenant_id = $2 AND k.status = 'active' AND k.ends_at > $1 AND k.ends_at <= $3 ORDER BY k.ends_at, k.id LIMIT $4`
	sqlNoticeAPIKey    = `UPDATE api_keys SET noticed_at = $1
WHERE id = $3 AND EXISTS (SELECT 1 FROM api_keys k WHERE k.id = api_keys.id AND ` + noticeDue + `)`
)

// APIKeysExpiring returns active keys that end within the duration after now and whose owner
// hasn't been notified of that yet, the earliest end first.
func (r Reader) APIKeysExpiring(ctx context.Context, within time.Duration, now time.Time, limit int) ([]doorward.APIKey, error) {
	return list(ctx, r, apiKeyFields, sqlAPIKeysExpiring, micros(now), within.Microseconds(), limit)
}

// APIKeysEnding returns active keys of the tenant that end after now and by an instant, the earliest end first, at most limit.
// Their rules are not read.
func (r Reader) APIKeysEnding(ctx context.Context, tenantID string, now, until time.Time, limit int) ([]doorward.APIKey, error) {
	return list(ctx, r, apiKeyFields, sqlAPIKeysEnding, micros(now), tenantID, micros(until), limit)
}

// MarkAPIKeyNoticeSent records that the owner is now notified that the key ends within the
// duration, and reports whether this notice was due. Due notices for longer durations count as
// sent, too.
func (tx *Tx) MarkAPIKeyNoticeSent(ctx context.Context, id string, within time.Duration) (bool, error) {
	return tx.affected(ctx, sqlNoticeAPIKey, micros(tx.Now), within.Microseconds(), id)
}

// The row of the key is locked before those of its secrets, as in every other write.
const (
	sqlUseAPIKey = `UPDATE api_keys SET last_used_at = $1, last_used_ip = coalesce(nullif($2, ''), last_used_ip)
WHERE id = (SELECT key_id FROM api_key_secrets WHERE hash = $3) AND (last_used_at IS NULL OR last_used_at < $1)`
	sqlUseAPIKeySecret = `UPDATE api_key_secrets SET last_used_at = $1 WHERE hash = $2 AND (last_used_at IS NULL OR last_used_at < $1)`
)

// KeyUse is a use of an API key.
type KeyUse struct {
	Use
	IP string // empty if it is not known: the previous one stays
}

// TouchAPIKeys records uses, except where a later one is recorded.
func (tx *Tx) TouchAPIKeys(ctx context.Context, uses []KeyUse) error {
	for _, u := range uses {
		if err := tx.run(ctx, sqlUseAPIKey, micros(u.At), u.IP, u.Hash[:]); err != nil {
			return err
		}
		if err := tx.run(ctx, sqlUseAPIKeySecret, micros(u.At), u.Hash[:]); err != nil {
			return err
		}
	}
	return nil
}

const sqlEachAPIKey = selectAPIKey + `WHERE k.tenant_id = $2 ORDER BY k.created_at, k.id`

// EachAPIKey calls fn with the keys of the tenant as they are at now, the oldest first, until
// fn fails, and returns fn's error. Their rules are not read.
func (r Reader) EachAPIKey(ctx context.Context, tenantID string, now time.Time, fn func(doorward.APIKey) error) error {
	return each(ctx, r, apiKeyFields, fn, sqlEachAPIKey, micros(now), tenantID)
}

const (
	sqlDeleteAPIKeySecrets = `DELETE FROM api_key_secrets WHERE key_id IN (SELECT id FROM api_keys WHERE tenant_id = $1)`
	sqlDeleteAPIKeys       = `DELETE FROM api_keys WHERE tenant_id = $1`
)

// DeleteAPIKeys deletes the keys of the tenant.
func (tx *Tx) DeleteAPIKeys(ctx context.Context, tenantID string) error {
	tx.announce(ChangeTenant, tenantID)
	if err := tx.run(ctx, sqlDeleteAPIKeySecrets, tenantID); err != nil {
		return err
	}
	return tx.run(ctx, sqlDeleteAPIKeys, tenantID)
}
