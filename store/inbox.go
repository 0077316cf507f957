package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward"
)

// InboxMinute is the time for which equal refusals are counted in one row.
const InboxMinute = time.Minute

// InboxRow counts equal refusals of one caller, or requests for a reset, within a
// minute. The first five fields are its key.
type InboxRow struct {
	Source  string // client network, user, key or counter of attempts
	Action  doorward.Action
	Reason  doorward.Code // empty for what was not refused
	Subject string        // identifies the object of the action, or the request for a reset
	Minute  time.Time     // its start

	Email    string // canonical address whose account the event is about; may be empty
	ReturnTo string // for the mail of a reset
	Event    doorward.Event
	Hits     int
	Recorded int // how many of Hits are in the trail

	IsSetAside bool  // it could not be recorded and is retried later
	Fault      error // why Event, which is then zero, can't be read
}

// isOver reports whether the row's minute has passed, so that no more hits are
// added.
func (r InboxRow) isOver(now time.Time) bool { return !now.Before(r.Minute.Add(InboxMinute)) }

const (
	filedInboxColumns = `source, action, reason, subject, minute, email, return_to, event, hits, recorded`
	inboxColumns      = filedInboxColumns + `, aside > 0`
)

func inboxFields(r *InboxRow) []any {
	return []any{
		&r.Source, &r.Action, &r.Reason, &r.Subject, (*storedTime)(&r.Minute), &r.Email, &r.ReturnTo,
		inboxEvent{r},
		&r.Hits, &r.Recorded, &r.IsSetAside,
	}
}

// inboxEvent scans the event of a row. If that fails, only this row has a Fault.
type inboxEvent struct{ row *InboxRow }

// Scan implements sql.Scanner.
func (e inboxEvent) Scan(v any) error {
	var event doorward.Event
	if e.row.Fault = (jsonColumn[doorward.Event]{&event}).Scan(v); e.row.Fault == nil {
		e.row.Event = event
	}
	return nil
}

const sqlFileInbox = `INSERT INTO inbox (` + filedInboxColumns + `, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10)
ON CONFLICT (source, action, reason, subject, minute) DO UPDATE SET hits = inbox.hits + $9`

// FileInbox adds the row's hits to the row with its key. A new row is due at once. FileInbox
// blocks only on another write of the same row.
func (tx *Tx) FileInbox(ctx context.Context, r InboxRow) error {
	return tx.fileInbox(ctx, r, tx.Now)
}

// FileInboxLater is FileInbox, but a new row is due at the end of its minute.
func (tx *Tx) FileInboxLater(ctx context.Context, r InboxRow) error {
	return tx.fileInbox(ctx, r, r.Minute.Add(InboxMinute))
}

func (tx *Tx) fileInbox(ctx context.Context, r InboxRow, due time.Time) error {
	e := r.Event
	e.Target.ID, e.RequestID, e.IP = storable(e.Target.ID), storable(e.RequestID), storable(e.IP)
	event, err := json.Marshal(e)
	if err != nil {
		return err
	}
	tx.inboxFiled = true
	return tx.run(ctx, sqlFileInbox, storable(r.Source), r.Action, r.Reason, storable(r.Subject), micros(r.Minute),
		r.Email, r.ReturnTo, string(event), r.Hits, micros(due))
}

const sqlHasInbox = `SELECT count(*) FROM inbox WHERE source = $1 AND action = $2 AND reason = $3 AND subject = $4 AND minute = $5`

// HasInbox reports whether a row with the key of r is committed. It takes no lock,
// so the row may be claimed or deleted a moment later.
func (tx *Tx) HasInbox(ctx context.Context, r InboxRow) (bool, error) {
	n, err := one(ctx, tx.Reader, countColumn, sqlHasInbox, storable(r.Source), r.Action, r.Reason, storable(r.Subject), micros(r.Minute))
	return n > 0, err
}

const (
	selectInbox = `SELECT ` + inboxColumns + ` FROM inbox `

	sqlDueInbox     = selectInbox + `WHERE due_at <= $1 AND (action <> $2 OR email = '') ORDER BY due_at LIMIT $3`
	sqlPendingInbox = selectInbox + `WHERE hits > recorded AND aside = 0 ORDER BY due_at LIMIT $1`
	// The first row of each source comes before the second one of any.
	sqlKnownInbox = `SELECT ` + inboxColumns + ` FROM (
  SELECT i.source, i.action, i.reason, i.subject, i.minute, i.email, i.return_to, i.event, i.hits, i.recorded, i.aside, i.due_at,
    row_number() OVER (PARTITION BY i.source ORDER BY i.due_at) AS seq
  FROM inbox i JOIN users u ON u.email = i.email WHERE i.action = $1 AND i.due_at <= $2) AS known
ORDER BY seq, due_at LIMIT $3`
)

// DueInbox returns rows that are due at now, the longest waiting first, without those
// of one action that have an address: see KnownInbox and TakeUnknownInbox.
func (r Reader) DueInbox(ctx context.Context, except doorward.Action, now time.Time, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxFields, sqlDueInbox, micros(now), except, limit)
}

// PendingInbox returns rows that are not completely recorded, due or not, except
// those that are set aside.
func (r Reader) PendingInbox(ctx context.Context, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxFields, sqlPendingInbox, limit)
}

// KnownInbox returns due rows of an action that have the address of an account,
// round-robin by source.
func (r Reader) KnownInbox(ctx context.Context, action doorward.Action, now time.Time, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxFields, sqlKnownInbox, action, micros(now), limit)
}

const (
	keyOfInbox     = ` WHERE source = $1 AND action = $2 AND reason = $3 AND subject = $4 AND minute = $5 AND recorded = $6`
	sqlDeleteInbox = `DELETE FROM inbox` + keyOfInbox + ` AND hits = $7`
	sqlMarkInbox   = `UPDATE inbox SET recorded = $7, due_at = $8` + keyOfInbox
)

// ClaimInbox takes the hits of the row as it was read, to be recorded in this
// transaction. The row is deleted when its minute is over or with done; else it is due
// again at the end of the minute. It reports false if another worker has taken the hits, or
// if a row to be deleted has got more.
func (tx *Tx) ClaimInbox(ctx context.Context, r InboxRow, done bool) (bool, error) {
	key := []any{r.Source, r.Action, r.Reason, r.Subject, micros(r.Minute), r.Recorded, r.Hits}
	if done || r.isOver(tx.Now) {
		return tx.affected(ctx, sqlDeleteInbox, key...)
	}
	return tx.affected(ctx, sqlMarkInbox, append(key, micros(r.Minute.Add(InboxMinute)))...)
}

const sqlSetAsideInbox = `UPDATE inbox SET due_at = $7, aside = CASE WHEN aside = 0 THEN $8 ELSE aside END` + keyOfInbox

// SetAsideInbox postpones a row that could not be recorded. It reports false if hits of the
// row were recorded since it was read.
func (tx *Tx) SetAsideInbox(ctx context.Context, r InboxRow, until time.Time) (bool, error) {
	return tx.affected(ctx, sqlSetAsideInbox, r.Source, r.Action, r.Reason, r.Subject, micros(r.Minute), r.Recorded, micros(until), micros(tx.Now))
}

const sqlTakeUnknownInbox = `DELETE FROM inbox WHERE (source, action, reason, subject, minute) IN (
  SELECT i.source, i.action, i.reason, i.subject, i.minute FROM inbox i
  WHERE i.action = $1 AND i.due_at <= $2 AND i.email <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.email = i.email)
  ORDER BY i.due_at LIMIT $3)
RETURNING ` + inboxColumns

// TakeUnknownInbox deletes and returns due rows of an action that have an address without an
// account. It is one statement, since anonymous callers can create many.
func (tx *Tx) TakeUnknownInbox(ctx context.Context, action doorward.Action, limit int) ([]InboxRow, error) {
	return list(ctx, tx.Reader, inboxFields, sqlTakeUnknownInbox, action, micros(tx.Now), limit)
}

const sqlCountInbox = `SELECT count(*) FROM (SELECT 1 AS n FROM inbox LIMIT $1) AS bounded`

// CountInbox counts the rows, up to limit.
func (r Reader) CountInbox(ctx context.Context, limit int) (int, error) {
	return one(ctx, r, countColumn, sqlCountInbox, limit)
}

const sqlInboxSources = `SELECT source FROM inbox WHERE action = $1 AND minute = $2 AND reason = $3 AND subject = $4 LIMIT $5`

// InboxSources returns up to limit sources of rows with the action, minute, reason
// and subject of key.
func (r Reader) InboxSources(ctx context.Context, key InboxRow, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlInboxSources, key.Action, micros(key.Minute), key.Reason, key.Subject, limit)
}
