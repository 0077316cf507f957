package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

func connectionTestFields(t *doorward.ConnectionTest) []any {
	return []any{
		&t.ID, &t.ConnectionID, &t.Pending, &t.BrowserHash, &t.Fingerprint, &t.Status, (*storedTime)(&t.CreatedAt),
		nullableTime{&t.BegunAt},
		nullableTime{&t.EndedAt},
		jsonText{&t.Claims},
		jsonText{&t.Checks},
	}
}

// jsonText scans a column with JSON; an empty text leaves the value as it is.
type jsonText struct{ dest any }

// Scan implements sql.Scanner.
func (j jsonText) Scan(v any) error {
	var text sql.NullString
	if err := text.Scan(v); err != nil || text.String == "" {
		return err
	}
	return json.Unmarshal([]byte(text.String), j.dest)
}

const (
	selectConnectionTest = `SELECT id, connection_id, pending, browser_hash, fingerprint, status, created_at, begun_at, ended_at, claims, checks
FROM connection_tests `
	sqlConnectionTest       = selectConnectionTest + `WHERE id = $1`
	sqlNewestConnectionTest = selectConnectionTest + `WHERE connection_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`
	sqlInsertConnectionTest = `INSERT INTO connection_tests (id, connection_id, pending, browser_hash, fingerprint, status, created_at)
VALUES ($1, $2, $3, $4, $5, 'waiting', $6)`
	sqlBeginConnectionTest = `UPDATE connection_tests SET begun_at = $2 WHERE id = $1 AND begun_at IS NULL AND created_at > $3`
	sqlEndConnectionTest   = `UPDATE connection_tests SET status = $2, ended_at = $3, claims = $4, checks = $5
WHERE id = $1 AND status = 'waiting' AND created_at > $6`
	sqlDeleteOldTests = `DELETE FROM connection_tests WHERE id IN (SELECT id FROM connection_tests WHERE created_at <= $1 ORDER BY created_at LIMIT $2)`
)

// ConnectionTest returns the test, or ErrNone.
func (r Reader) ConnectionTest(ctx context.Context, id string) (doorward.ConnectionTest, error) {
	return one(ctx, r, connectionTestFields, sqlConnectionTest, id)
}

// NewestConnectionTest returns the test of the connection that was made last, or ErrNone.
func (r Reader) NewestConnectionTest(ctx context.Context, connectionID string) (doorward.ConnectionTest, error) {
	return one(ctx, r, connectionTestFields, sqlNewestConnectionTest, connectionID)
}

// InsertConnectionTest adds the test, which is waiting.
func (tx *Tx) InsertConnectionTest(ctx context.Context, t doorward.ConnectionTest) error {
	return tx.run(ctx, sqlInsertConnectionTest, t.ID, t.ConnectionID, t.Pending, t.BrowserHash, t.Fingerprint, micros(t.CreatedAt))
}

// BeginConnectionTest uses the test up, and reports whether nobody has, and its time hasn't passed.
func (tx *Tx) BeginConnectionTest(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlBeginConnectionTest, id, micros(tx.Now), micros(tx.Now.Add(-doorward.TestLife)))
}

// EndConnectionTest writes the result of the test, and reports whether it had none, and its time hasn't
// passed.
func (tx *Tx) EndConnectionTest(ctx context.Context, id string, status doorward.TestStatus, claims json.RawMessage, checks []doorward.TestCheck) (bool, error) {
	text, err := json.Marshal(checks)
	if err != nil {
		return false, fault(fmt.Errorf("store: the checks of %s: %w", id, err))
	}
	return tx.affected(ctx, sqlEndConnectionTest, id, string(status), micros(tx.Now), storable(string(claims)), string(text), micros(tx.Now.Add(-doorward.TestLife)))
}

// DeleteOldTests deletes tests that were made at an instant or before, at most limit, and returns how many.
func (tx *Tx) DeleteOldTests(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldTests, micros(until), limit)
}

const (
	sqlUseState         = `INSERT INTO used_states (state_hash, ends_at) VALUES ($1, $2) ON CONFLICT (state_hash) DO NOTHING`
	sqlDeleteUsedStates = `DELETE FROM used_states WHERE state_hash IN (SELECT state_hash FROM used_states WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2)`
)

// UseState uses a sign-in's state up, and reports whether nobody has, on any node. It is remembered until
// ends, when the state itself is no longer good.
func (tx *Tx) UseState(ctx context.Context, hash []byte, ends time.Time) (bool, error) {
	return tx.affected(ctx, sqlUseState, hash, micros(ends))
}

// DeleteUsedStates deletes states whose time has passed, at most limit, and returns how many.
func (tx *Tx) DeleteUsedStates(ctx context.Context, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteUsedStates, micros(tx.Now), limit)
}

func attemptEntryFields(a *doorward.Attempt) []any {
	return []any{
		&a.ID, &a.ConnectionID, &a.Kind, (*storedTime)(&a.At), &a.Outcome, &a.Check, &a.Seen, &a.Advice, &a.Subject, &a.UserID, &a.Address, &a.Count,
		wordsOf(&a.RequestIDs, parsePlainText),
	}
}

const (
	selectAttemptEntry = `SELECT a.id, a.connection_id, a.kind, a.at, a.outcome, a.checked, a.seen, a.advice, a.subject, a.user_id, a.address, a.count, a.request_ids
FROM connection_attempts a `
	sqlLastAttemptEntry = selectAttemptEntry + `WHERE a.connection_id = $1 AND a.kind = $2 ORDER BY a.at DESC, a.id DESC LIMIT 1`
	sqlSameAttemptEntry = selectAttemptEntry + `WHERE a.connection_id = $1 AND a.kind = $2 AND a.outcome = $3 AND a.checked = $4 AND a.seen = $5 AND a.advice = $6 AND a.subject = $7 AND a.user_id = $8
ORDER BY a.at DESC, a.id DESC LIMIT 1`
	sqlInsertAttemptEntry = `INSERT INTO connection_attempts (id, connection_id, kind, at, outcome, checked, seen, advice, subject, user_id, address, count, request_ids)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 WHERE EXISTS (SELECT 1 FROM connections c WHERE c.id = $2)`
	sqlMergeAttemptEntry = `UPDATE connection_attempts SET at = $2, count = count + $3, request_ids = $4 WHERE id = $1 AND count = $5`
	sqlTrimAttempts      = `DELETE FROM connection_attempts WHERE connection_id = $1 AND kind = $2 AND id NOT IN (
  SELECT id FROM connection_attempts WHERE connection_id = $1 AND kind = $2 ORDER BY at DESC, id DESC LIMIT $3)`
	sqlDeleteOldAttempts = `DELETE FROM connection_attempts WHERE id IN (SELECT id FROM connection_attempts WHERE at <= $1 ORDER BY at LIMIT $2)`
)

var attemptPages = newPages(listing[doorward.Attempt]{
	head:   selectAttemptEntry,
	count:  "FROM connection_attempts a ",
	where:  "WHERE a.connection_id = $1\n",
	args:   1,
	fields: attemptEntryFields,
	id:     "a.id",
	idOf:   func(a doorward.Attempt) string { return a.ID },
	orders: []order[doorward.Attempt]{
		{name: "at", column: "a.at", number: func(a doorward.Attempt) int64 { return micros(a.At) }},
	},
	defaultOrder: "-at",
})

// AttemptPage returns the protocol of the connection, the newest first unless the window says otherwise.
// Errors: validation_failed, for an unknown order.
func (r Reader) AttemptPage(ctx context.Context, connectionID string, w doorward.Window) (doorward.Page[doorward.Attempt], error) {
	return attemptPages.read(ctx, r, w, connectionID)
}

// LastAttempt returns the newest entry of the kind in the protocol of the connection, or ErrNone.
func (r Reader) LastAttempt(ctx context.Context, connectionID string, kind doorward.AttemptKind) (doorward.Attempt, error) {
	return one(ctx, r, attemptEntryFields, sqlLastAttemptEntry, connectionID, string(kind))
}

// SameAttempt returns the newest entry in the protocol of a's connection that is about the same as a, or ErrNone.
func (r Reader) SameAttempt(ctx context.Context, a doorward.Attempt) (doorward.Attempt, error) {
	return one(ctx, r, attemptEntryFields, sqlSameAttemptEntry, a.ConnectionID, string(a.Kind), string(a.Outcome), a.Check, storable(a.Seen), a.Advice, storable(a.Subject), a.UserID)
}

// InsertAttemptEntry adds the entry to the protocol of its connection, where the newest
// doorward.AttemptsMax of its kind are kept. It adds nothing if the connection has since been deleted.
func (tx *Tx) InsertAttemptEntry(ctx context.Context, a doorward.Attempt) error {
	err := tx.run(ctx, sqlInsertAttemptEntry, a.ID, a.ConnectionID, string(a.Kind), micros(a.At), string(a.Outcome), a.Check,
		storable(a.Seen), a.Advice, storable(a.Subject), a.UserID, a.Address, a.Count, strings.Join(a.RequestIDs, " "))
	if err != nil {
		return err
	}
	return tx.run(ctx, sqlTrimAttempts, a.ConnectionID, string(a.Kind), doorward.AttemptsMax)
}

// MergeAttemptEntry counts a's Count in the entry was, at a.At, with the ids of the requests. It reports
// false, and does nothing, if another fault was counted in it since was was read.
func (tx *Tx) MergeAttemptEntry(ctx context.Context, was, a doorward.Attempt, requestIDs []string) (bool, error) {
	return tx.affected(ctx, sqlMergeAttemptEntry, was.ID, micros(a.At), a.Count, strings.Join(requestIDs, " "), was.Count)
}

const (
	sqlDeleteEntriesOfAddress  = `DELETE FROM connection_attempts WHERE address = $1 AND address <> ''`
	sqlDeleteEntriesAbout      = `DELETE FROM connection_attempts WHERE user_id = $1 AND user_id <> ''`
	sqlDeleteEntriesOfSubjects = `DELETE FROM connection_attempts WHERE id IN (SELECT a.id FROM identities i
  JOIN connection_attempts a ON a.connection_id = i.connection_id AND a.subject = i.subject WHERE i.user_id = $1)`
)

// DeleteEntriesAbout deletes the entries of all protocols about the account, and about the subjects that it
// has identities of.
func (tx *Tx) DeleteEntriesAbout(ctx context.Context, userID string) error {
	return tx.runEach(ctx, userID, sqlDeleteEntriesAbout, sqlDeleteEntriesOfSubjects)
}

// DeleteOldAttempts deletes entries of protocols from an instant or before, at most limit, and returns how
// many.
func (tx *Tx) DeleteOldAttempts(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldAttempts, micros(until), limit)
}
