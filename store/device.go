package store

import (
	"context"
	"time"
)

const sqlDeviceKnown = `SELECT count(*) FROM devices d JOIN users u ON u.id = d.user_id WHERE d.hash = $1 AND u.email = $2 AND d.created_at > $3`

// DeviceKnown reports whether the browser behind hash has signed in as the
// owner of the address since an instant.
func (r Reader) DeviceKnown(ctx context.Context, hash []byte, email string, since time.Time) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlDeviceKnown, hash, email, micros(since))
	return n > 0, err
}

const sqlInsertDevice = `INSERT INTO devices (hash, user_id, created_at) VALUES ($1, $2, $3)`

// InsertDevice remembers a browser.
func (tx *Tx) InsertDevice(ctx context.Context, hash []byte, userID string) error {
	return tx.must(ctx, sqlInsertDevice, hash, userID, micros(tx.Now))
}

const sqlDeleteOldestDevices = `DELETE FROM devices WHERE user_id = $1 AND hash NOT IN (
  SELECT hash FROM devices WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2)`

// DeleteOldestDevices keeps the newest devices of the user.
func (tx *Tx) DeleteOldestDevices(ctx context.Context, userID string, keep int) error {
	return tx.must(ctx, sqlDeleteOldestDevices, userID, keep)
}

const sqlDeleteOldDevices = `DELETE FROM devices WHERE created_at <= $1`

// DeleteOldDevices forgets the devices first seen before an instant.
func (tx *Tx) DeleteOldDevices(ctx context.Context, before time.Time) error {
	return tx.must(ctx, sqlDeleteOldDevices, micros(before))
}
