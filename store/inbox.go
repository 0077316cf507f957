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
}

// Over reports whether the minute of the row is past at the instant, so that
// nothing more is counted in it.
func (r InboxRow) Over(now time.Time) bool { return !now.Before(r.Minute.Add(InboxMinute)) }

const columnsOfInbox = `source, action, reason, subject, minute, email, return_to, event, hits, recorded`

func inboxColumns(r *InboxRow) []any {
	return []any{
		&r.Source, &r.Action, &r.Reason, &r.Subject, (*instant)(&r.Minute), &r.Email, &r.ReturnTo,
		jsonColumn[doorward.Event]{&r.Event},
		&r.Hits, &r.Recorded,
	}
}

const sqlFileInbox = `INSERT INTO inbox (` + columnsOfInbox + `, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10)
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
	return tx.must(ctx, sqlFileInbox, storable(r.Source), r.Action, r.Reason, storable(r.Subject), micros(r.Minute),
		r.Email, r.ReturnTo, string(event), r.Hits, micros(due))
}

const (
	selectInbox = `SELECT ` + columnsOfInbox + ` FROM inbox `

	sqlDueInbox     = selectInbox + `WHERE due_at <= $1 ORDER BY due_at LIMIT $2`
	sqlPendingInbox = selectInbox + `WHERE hits > recorded ORDER BY due_at LIMIT $1`
	// The first row of each source comes before the second one of any.
	sqlKnownInbox = `SELECT ` + columnsOfInbox + ` FROM (
  SELECT i.source, i.action, i.reason, i.subject, i.minute, i.email, i.return_to, i.event, i.hits, i.recorded, i.due_at,
    row_number() OVER (PARTITION BY i.source ORDER BY i.due_at) AS seq
  FROM inbox i JOIN users u ON u.email = i.email WHERE i.action = $1 AND i.due_at <= $2) AS known
ORDER BY seq, due_at LIMIT $3`
)

// DueInbox returns rows to be taken at the instant, the longest waiting first.
func (r Reader) DueInbox(ctx context.Context, now time.Time, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxColumns, sqlDueInbox, micros(now), limit)
}

// PendingInbox is DueInbox for rows of which the trail lacks something, due or not.
func (r Reader) PendingInbox(ctx context.Context, limit int) ([]InboxRow, error) {
	return list(ctx, r, inboxColumns, sqlPendingInbox, limit)
}

// KnownInbox is DueInbox for rows of an action whose address has an account, the
// sources by turns.
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
	if done || r.Over(tx.Now) {
		return tx.hit(ctx, sqlDeleteInbox, key...)
	}
	return tx.hit(ctx, sqlMarkInbox, append(key, micros(r.Minute.Add(InboxMinute)))...)
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
