package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

const (
	sqlRetireAllTokens = `UPDATE link_tokens SET retired_at = $1 WHERE retired_at IS NULL`
	sqlExpireAllResets = `UPDATE resets SET expires_at = $1 WHERE used_at IS NULL AND expires_at > $1`
)

// RetireAllTokens makes every link that was ever sent open nothing, and returns
// how many. Invitations stay as they are, to be sent again.
func (tx *Tx) RetireAllTokens(ctx context.Context) (int64, error) {
	if err := tx.run(ctx, sqlExpireAllResets, micros(tx.Now)); err != nil {
		return 0, err
	}
	return tx.exec(ctx, sqlRetireAllTokens, micros(tx.Now))
}

const (
	sqlSkipGenerations   = `UPDATE users SET credential_generation = credential_generation + 1048576, revision = revision + 1`
	sqlEndAllDevices     = `DELETE FROM devices`
	sqlEndDeviceCounters = `DELETE FROM throttles WHERE substr(bucket, 1, $2) = $1`
)

// EndAllTrust ends what trusts any browser of anybody. It is for a database that was
// set back, in which trust that was given up since lives again. Like those of changes,
// the numbers of generations that were given since must not be given anew.
func (tx *Tx) EndAllTrust(ctx context.Context) error {
	for _, query := range []string{sqlSkipGenerations, sqlEndAllDevices} {
		if err := tx.run(ctx, query); err != nil {
			return err
		}
	}
	const counters = "devices:"
	return tx.run(ctx, sqlEndDeviceCounters, counters, len(counters))
}

const sqlSkipChangeNumbers = `UPDATE change_position SET last = last + 4294967296 WHERE id = 1`

// InvalidateAll makes every node forget what it remembers. It is for a database that was
// set back: the numbers that were given since are given anew, so one that is
// beyond all of them is drawn, and nodes see that they have missed something.
// 2^32 changes in the life of a backup would be a thousand a second for 50 days.
func (tx *Tx) InvalidateAll(ctx context.Context) error {
	tx.announce(ChangeAll, "")
	return tx.run(ctx, sqlSkipChangeNumbers)
}

const sqlNoteBackup = `INSERT INTO backups (id, completed_at, destination) VALUES (1, $1, $2)
ON CONFLICT (id) DO UPDATE SET completed_at = $1, destination = $2`

// NoteBackup records that a backup was completed now. The destination is its file,
// empty where that is not known.
func (tx *Tx) NoteBackup(ctx context.Context, destination string) error {
	return tx.run(ctx, sqlNoteBackup, micros(tx.Now), storable(destination))
}

const sqlNewestEvent = `SELECT coalesce(max(at), 0) FROM events`

// NewestEvent is when the last event of the trail happened, 1970 without any.
func (r Reader) NewestEvent(ctx context.Context) (time.Time, error) {
	at, err := one(ctx, r, func(i *storedTime) []any { return []any{i} }, sqlNewestEvent)
	return time.Time(at), err
}

const sqlNewestEventID = `SELECT coalesce(max(id), '') FROM events WHERE at = (SELECT max(at) FROM events)`

// NewestEventID is the id of an event that no other is newer than, empty without any.
func (r Reader) NewestEventID(ctx context.Context) (string, error) {
	return one(ctx, r, textColumn, sqlNewestEventID)
}

const sqlCountEvent = `SELECT count(*) FROM events WHERE id = $1`

// HasEvent reports whether the event is in a trail.
func (r Reader) HasEvent(ctx context.Context, id string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlCountEvent, id)
	return n > 0, err
}

const sqlCountDone = `SELECT action, count(*) FROM events WHERE at > $1 AND outcome = 'done' GROUP BY action`

// CountDone counts what was done after an instant, by its name.
func (r Reader) CountDone(ctx context.Context, after time.Time) (map[doorward.Action]int, error) {
	type row struct {
		action doorward.Action
		n      int
	}
	rows, err := list(ctx, r, func(v *row) []any { return []any{&v.action, &v.n} }, sqlCountDone, micros(after))
	done := map[doorward.Action]int{}
	for _, v := range rows {
		done[v.action] = v.n
	}
	return done, err
}
