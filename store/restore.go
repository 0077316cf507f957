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

// RetireAllTokens invalidates all links in mails, and returns how many.
// Invitations remain and can be sent again.
func (tx *Tx) RetireAllTokens(ctx context.Context) (int64, error) {
	if err := tx.run(ctx, sqlExpireAllResets, micros(tx.Now)); err != nil {
		return 0, err
	}
	return tx.exec(ctx, sqlRetireAllTokens, micros(tx.Now))
}

const (
	sqlSkipGenerations   = `UPDATE users SET credential_generation = credential_generation + 1048576, revision = revision + 1`
	sqlEndAllDevices     = `DELETE FROM devices`
	sqlEndAllChallenges  = `DELETE FROM challenges`
	sqlEndAllFactorWords = `DELETE FROM factor_words`
	sqlEndAllFactorCodes = `DELETE FROM factor_codes`
	sqlEndAllSetupLinks  = `DELETE FROM setup_links`
	sqlEndDeviceCounters = `DELETE FROM throttles WHERE substr(bucket, 1, $2) = $1`
)

// EndAllTrust ends the trust in all known browsers, all challenges, all resets of factors, and all set-up links. After a restore, trust
// that was ended since the backup would be back. It raises credential generations by so much
// that none that was used since the backup is used again, see doorward.Account.
func (tx *Tx) EndAllTrust(ctx context.Context) error {
	for _, query := range []string{sqlSkipGenerations, sqlEndAllDevices, sqlEndAllChallenges, sqlEndAllFactorWords, sqlEndAllFactorCodes, sqlEndAllSetupLinks} {
		if err := tx.run(ctx, query); err != nil {
			return err
		}
	}
	const counters = "devices:"
	return tx.run(ctx, sqlEndDeviceCounters, counters, len(counters))
}

const sqlSkipChangeNumbers = `UPDATE change_position SET last = last + 4294967296 WHERE id = 1`

// InvalidateAll makes every node clear its memory. After a restore, change numbers that were
// used since the backup would be used again, so it skips beyond all of them, and nodes notice
// the gap. It skips 2^32 numbers, enough for a thousand changes a second for 50 days.
func (tx *Tx) InvalidateAll(ctx context.Context) error {
	tx.announce(ChangeAll, "")
	return tx.run(ctx, sqlSkipChangeNumbers)
}

const sqlNoteBackup = `INSERT INTO backups (id, completed_at, destination) VALUES (1, $1, $2)
ON CONFLICT (id) DO UPDATE SET completed_at = $1, destination = $2`

// NoteBackup records that a backup was completed now. The destination is its file,
// or empty if unknown.
func (tx *Tx) NoteBackup(ctx context.Context, destination string) error {
	return tx.run(ctx, sqlNoteBackup, micros(tx.Now), storable(destination))
}

const sqlNewestEvent = `SELECT coalesce(max(at), 0) FROM events`

// NewestEvent is the time of the newest event, the Unix epoch without any.
func (r Reader) NewestEvent(ctx context.Context) (time.Time, error) {
	at, err := one(ctx, r, func(i *storedTime) []any { return []any{i} }, sqlNewestEvent)
	return time.Time(at), err
}

const sqlNewestEventID = `SELECT coalesce(max(id), '') FROM events WHERE at = (SELECT max(at) FROM events)`

// NewestEventID is the id of the newest event, empty without any.
func (r Reader) NewestEventID(ctx context.Context) (string, error) {
	return one(ctx, r, textField, sqlNewestEventID)
}

const sqlCountEvent = `SELECT count(*) FROM events WHERE id = $1`

// HasEvent reports whether the event is in a trail.
func (r Reader) HasEvent(ctx context.Context, id string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlCountEvent, id)
	return n > 0, err
}

const sqlCountDone = `SELECT action, count(*) FROM events WHERE at > $1 AND outcome = 'done' GROUP BY action`

// CountDone counts the actions done after an instant, by name.
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
