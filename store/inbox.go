package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward"
)

// InboxMinute is how long what is alike is counted in one row.
const InboxMinute = time.Minute

// InboxRow counts what is alike: refusals of one caller, or requests for a reset,
// within a minute. The first five fields are its key.
type InboxRow struct {
	Source  string // client network, user, key or counter of attempts
	Action  doorward.Action
	Reason  doorward.Code // empty for what was not refused
	Subject string
	Minute  time.Time // its beginning

	Email    string // canonical address whose account the event is about; may be empty
	ReturnTo string // for the mail of a reset
	Event    doorward.Event
	Hits     int
	Recorded int // how many of Hits the trail has

	Aside bool  // it could not be recorded before
	Fault error // why Event can't be read; it is zero then
}

// isOver reports whether the minute of the row is past at the instant, so that
// nothing more is counted in it.
func (r InboxRow) isOver(now time.Time) bool { return !now.Before(r.Minute.Add(InboxMinute)) }

const (
	filedColumnsOfInbox = `source, action, reason, subject, minute, email, return_to, event, hits, recorded`
	columnsOfInbox      = filedColumnsOfInbox + `, aside > 0`
)

func inboxColumns(r *InboxRow) []any {
	return []any{
		&r.Source, &r.Action, &r.Reason, &r.Subject, (*instant)(&r.Minute), &r.Email, &r.ReturnTo,
		inboxEvent{r},
		&r.Hits, &r.Recorded, &r.Aside,
	}
}

// inboxEvent scans the event of a row. One that can't be read is a fault of that
// row alone.
type inboxEvent struct{ of *InboxRow }

// Scan is for database/sql.
func (e inboxEvent) Scan(v any) error {
	var event doorward.Event
	if e.of.Fault = (jsonColumn[doorward.Event]{&event}).Scan(v); e.of.Fault == nil {
		e.of.Event = event
	}
	return nil
}

const sqlFileInbox = `INSERT INTO inbox (` + filedColumnsOfInbox + `, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10)
ON CONFLICT (source, action, reason, subject, minute) DO UPDATE SET hits = inbox.hits + $9`

// FileInbox adds the row's hits to the row with its key. A new one is due at once,
// or when its minute is over if it is to wait. It waits for nobody but another
// writer of the same row.
func (tx *Tx) FileInbox(ctx context.Context, r InboxRow, wait bool) error {
	e := r.Event
	e.Target.ID, e.RequestID, e.IP = storable(e.Target.ID), storable(e.RequestID), storable(e.IP)
	event, err := json.Marshal(e)
	if err != nil {
		return err
	}
	due := tx.Now
	if wait {
		due = r.Minute.Add(InboxMinute)
	}
	tx.filed = true
	return tx.run(ctx, sqlFileInbox, storable(r.Source), r.Action, r.Reason, storable(r.Subject), micros(r.Minute),
		r.Email, r.ReturnTo, string(event), r.Hits, micros(due))
}

const sqlHasInbox = `SELECT count(*) FROM inbox WHERE source = $1 AND action = $2 AND reason = $3 AND subject = $4 AND minute = $5`

// HasInbox reports whether a row with the key of r is committed. It waits for
// nobody, so the row may be claimed by another transaction, or gone a moment later.
func (tx *Tx) HasInbox(ctx context.Context, r InboxRow) (bool, error) {
	n, err := one(ctx, tx.Reader, countColumn, sqlHasInbox, storable(r.Source), r.Action, r.Reason, storable(r.Subject), micros(r.Minute))
	return n > 0, err
}

const (
	selectInbox = `SELECT ` + columnsOfInbox + ` FROM inbox `

	sqlDueInbox     = selectInbox + `WHERE due_at <= $1 AND (action <> $2 OR email = '') ORDER BY due_at LIMIT $3`
	sqlPendingInbox = selectInbox + `WHERE hits > recorded AND aside = 0 ORDER BY due_at LIMIT $1`
	// The first row of each source comes before the second one of any.
	sqlKnownInbox = `SELECT ` + columnsOfInbox + ` FROM (
  SELECT i.source, i.action, i.reason, i.subject, i.minute, i.email, i.return_to, i.event, i.hits, i.recorded, i.aside, i.due_at,
    row_number() OVER (PARTITION BY i.source ORDER BY i.due_at) AS seq
  FROM inbox i JOIN users u ON u.email = i.email WHERE i.action = $1 AND i.due_at <= $2) AS known
ORDER BY seq, due_at LIMIT $3`
)

// DueInbox returns rows to be taken at the instant, the longest waiting first, but for
// those of an action that have an address: see KnownInbox and TakeUnknownInbox.
func (r Reader) DueInbox(ctx context.Context, but doorward.Action, now time.Time, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxColumns, sqlDueInbox, micros(now), but, limit)
}

// PendingInbox is DueInbox for rows of which the trail lacks something, due or not,
// but for those that are set aside.
func (r Reader) PendingInbox(ctx context.Context, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxColumns, sqlPendingInbox, limit)
}

// KnownInbox returns rows of an action to be taken at the instant whose address has an
// account, the sources by turns.
func (r Reader) KnownInbox(ctx context.Context, act doorward.Action, now time.Time, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxColumns, sqlKnownInbox, act, micros(now), limit)
}

const (
	keyOfInbox     = ` WHERE source = $1 AND action = $2 AND reason = $3 AND subject = $4 AND minute = $5 AND recorded = $6`
	sqlDeleteInbox = `DELETE FROM inbox` + keyOfInbox + ` AND hits = $7`
	sqlMarkInbox   = `UPDATE inbox SET recorded = $7, due_at = $8` + keyOfInbox
)

// ClaimInbox takes the hits of the row as it was read, to be recorded in this
// transaction, and reports whether nobody else has. The row goes when its minute
// is over, or when it is done for good, else it comes up again then.
func (tx *Tx) ClaimInbox(ctx context.Context, r InboxRow, done bool) (bool, error) {
	key := []any{r.Source, r.Action, r.Reason, r.Subject, micros(r.Minute), r.Recorded, r.Hits}
	if done || r.isOver(tx.Now) {
		return tx.hit(ctx, sqlDeleteInbox, key...)
	}
	return tx.hit(ctx, sqlMarkInbox, append(key, micros(r.Minute.Add(InboxMinute)))...)
}

const sqlSetAsideInbox = `UPDATE inbox SET due_at = $7, aside = CASE WHEN aside = 0 THEN $8 ELSE aside END` + keyOfInbox

// SetAsideInbox puts the row off, which could not be recorded, and reports whether it
// is still as it was read.
func (tx *Tx) SetAsideInbox(ctx context.Context, r InboxRow, until time.Time) (bool, error) {
	return tx.hit(ctx, sqlSetAsideInbox, r.Source, r.Action, r.Reason, r.Subject, micros(r.Minute), r.Recorded, micros(until), micros(tx.Now))
}

const sqlTakeUnknownInbox = `DELETE FROM inbox WHERE (source, action, reason, subject, minute) IN (
  SELECT i.source, i.action, i.reason, i.subject, i.minute FROM inbox i
  WHERE i.action = $1 AND i.due_at <= $2 AND i.email <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.email = i.email)
  ORDER BY i.due_at LIMIT $3)
RETURNING ` + columnsOfInbox

// TakeUnknownInbox removes rows of an action that are due and whose address has no
// account, and returns them: one statement for many, since strangers send them.
func (tx *Tx) TakeUnknownInbox(ctx context.Context, act doorward.Action, limit int) ([]InboxRow, error) {
	return list(ctx, tx.Reader, inboxColumns, sqlTakeUnknownInbox, act, micros(tx.Now), limit)
}

const sqlCountInbox = `SELECT count(*) FROM (SELECT 1 AS n FROM inbox LIMIT $1) AS bounded`

// CountInbox counts the rows, up to a number.
func (r Reader) CountInbox(ctx context.Context, most int) (int, error) {
	return one(ctx, r, countColumn, sqlCountInbox, most)
}

const sqlInboxSources = `SELECT source FROM inbox WHERE action = $1 AND minute = $2 AND reason = $3 AND subject = $4 LIMIT $5`

// InboxSources returns up to limit sources of rows of one minute that are alike
// but for the source.
func (r Reader) InboxSources(ctx context.Context, like InboxRow, limit int) ([]string, error) {
	return list(ctx, r, textColumn, sqlInboxSources, like.Action, micros(like.Minute), like.Reason, like.Subject, limit)
}
