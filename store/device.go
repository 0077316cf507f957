package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
)

// KnownDevice is a browser that has signed in to an account before.
type KnownDevice struct {
	Hash   []byte // of its cookie
	UserID string
	// SecondAt is when a second factor was proved in the browser. The browser stands in for
	// the factor for as long as a tenant allows; with the zero Time it doesn't.
	SecondAt time.Time
}

func knownDeviceFields(d *KnownDevice) []any {
	return []any{&d.Hash, &d.UserID, optionalTime{&d.SecondAt}}
}

// Only devices of the account's current generation count: see doorward.Account.
const sqlKnownDevices = `SELECT d.hash, d.user_id, d.second_at
FROM users u JOIN devices d ON d.user_id = u.id AND d.credential_generation = u.credential_generation
WHERE u.email = $1 AND d.created_at > $2 AND d.hash IN ($3, $4, $5, $6)`

// KnownDevices returns the browsers with one of the hashes that have signed in to
// the account of the canonical address since an instant and are still trusted, always
// in the same order. It reads at most doorward.MaxDevices hashes.
func (r Reader) KnownDevices(ctx context.Context, email string, hashes [][]byte, since time.Time) ([]KnownDevice, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	args := []any{email, micros(since)}
	for i := range doorward.MaxDevices {
		args = append(args, hashes[min(i, len(hashes)-1)])
	}
	known, err := list(ctx, r, knownDeviceFields, sqlKnownDevices, args...)
	slices.SortFunc(known, func(a, b KnownDevice) int { return bytes.Compare(a.Hash, b.Hash) })
	return known, err
}

const sqlDeviceHashes = `SELECT hash FROM devices WHERE user_id = $1`

// DeviceHashes returns the hashes of the user's known browsers.
func (r Reader) DeviceHashes(ctx context.Context, userID string) ([][]byte, error) {
	return list(ctx, r, bytesColumn, sqlDeviceHashes, userID)
}

const sqlCountDevices = `SELECT count(*) FROM users u JOIN devices d ON d.user_id = u.id AND d.credential_generation = u.credential_generation
WHERE u.id = $1 AND d.created_at > $2`

// CountDevices counts the user's known browsers that were made since an instant.
func (r Reader) CountDevices(ctx context.Context, userID string, since time.Time) (int, error) {
	return one(ctx, r, countColumn, sqlCountDevices, userID, micros(since))
}

const (
	// sqlDeleteUnusedDevices deletes expired devices, and unused ones of an earlier generation or
	// beyond the limit, the oldest first. A device that was used again is never deleted for a new one.
	sqlDeleteUnusedDevices = `DELETE FROM devices WHERE user_id = $1 AND (used_at = 0 OR created_at <= $3) AND hash NOT IN (
  SELECT hash FROM devices WHERE user_id = $1 AND created_at > $3
  AND credential_generation = (SELECT credential_generation FROM users WHERE id = $1) ORDER BY used_at DESC, created_at DESC LIMIT $2)`

	sqlInsertDevice = `INSERT INTO devices (hash, user_id, created_at, credential_generation)
SELECT $1, id, $3, credential_generation FROM users WHERE id = $2
AND (SELECT count(*) FROM devices d WHERE d.user_id = $2 AND d.credential_generation = users.credential_generation) < $4`
)

// InsertDevice stores a browser and reports whether it did. An account has at most limit
// browsers made since the instant. One more replaces the oldest that was never used again; if
// all were used again, it isn't stored. The count is right only under LockAccount.
func (tx *Tx) InsertDevice(ctx context.Context, hash []byte, userID string, limit int, since time.Time) (bool, error) {
	if err := tx.run(ctx, sqlDeleteUnusedDevices, userID, limit-1, micros(since)); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlInsertDevice, hash, userID, micros(tx.Now), limit)
}

const sqlUseDevice = `UPDATE devices SET used_at = $1 WHERE hash = $2 AND used_at <= $3`

// useInterval is the precision of a device's last use. Only whether it was used
// matters, so most logins write nothing.
const useInterval = 24 * time.Hour

// UseDevice records that the browser has signed in again.
func (tx *Tx) UseDevice(ctx context.Context, hash []byte) error {
	return tx.run(ctx, sqlUseDevice, micros(tx.Now), hash, micros(tx.Now.Add(-useInterval)))
}

const sqlRenewDevice = `UPDATE devices SET hash = $2, created_at = $3 WHERE hash = $1`

// RenewDevice replaces the cookie of a browser: that of the old hash is no longer known.
func (tx *Tx) RenewDevice(ctx context.Context, old, hash []byte) error {
	return tx.run(ctx, sqlRenewDevice, old, hash, micros(tx.Now))
}

const (
	sqlRaiseCredentialGeneration = `UPDATE users SET credential_generation = credential_generation + 1, revision = revision + 1 WHERE id = $1`
	sqlEndOtherDevices           = `DELETE FROM devices WHERE user_id = $1 AND hash <> $2`
	sqlCarryDevicesOver          = `UPDATE devices SET credential_generation = (SELECT credential_generation FROM users WHERE id = $1) WHERE user_id = $1`
)

// RaiseCredentialGeneration begins a new generation of the account's credentials
// (doorward.Account). It ends the trust in all browsers of the user except the one with the
// hash, which may be nil, and clears the counter of attempts with known browsers.
func (tx *Tx) RaiseCredentialGeneration(ctx context.Context, userID string, except []byte) error {
	if except == nil {
		except = []byte{} // hash <> NULL would delete nothing
	}
	if err := tx.run(ctx, sqlRaiseCredentialGeneration, userID); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlEndOtherDevices, userID, except); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlCarryDevicesOver, userID); err != nil {
		return err
	}
	return tx.ClearThrottle(ctx, "devices:"+userID)
}

const sqlDeleteOldDevices = `DELETE FROM devices WHERE hash IN (
  SELECT hash FROM devices WHERE created_at <= $1 ORDER BY created_at LIMIT $2)`

// DeleteOldDevices deletes devices first seen at an instant or before, and returns how many, at
// most limit.
func (tx *Tx) DeleteOldDevices(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldDevices, micros(until), limit)
}
