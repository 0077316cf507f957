package lease

import (
	"context"
	"time"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

// loggedChange is a change as it is stored. No two are equal, not even where two
// histories of one database (it was restored to an older state, or a standby took over
// that lacked the newest commits) have used one number twice.
type loggedChange struct {
	store.Change
	at int64
}

// history is one reading of the log: the number of the newest change, and the changes
// from a position on.
type history struct {
	last    int64
	changes []loggedChange
}

type historyRow struct {
	last int64
	loggedChange
}

func historyColumns(h *historyRow) []any {
	return []any{&h.last, &h.at, &h.Seq, &h.Kind, &h.Subject}
}

func int64Column(n *int64) []any { return []any{n} }

const (
	sqlNewestChange = `SELECT last FROM change_position WHERE id = 1`

	// One statement, so that both parts are of one instant. A row with the number 0
	// stands for no changes.
	sqlHistory = `SELECT p.last, COALESCE(c.at, 0), COALESCE(c.seq, 0), COALESCE(c.kind, ''), COALESCE(c.subject, '')
FROM change_position p LEFT JOIN changes c ON c.seq >= $1 WHERE p.id = 1 ORDER BY c.seq LIMIT $2`

	sqlDeleteChanges = `DELETE FROM changes WHERE at <= $1`
)

// newestChange is the number of the newest change.
func newestChange(ctx context.Context, r store.Reader) (int64, error) {
	return rows.One(ctx, r.Conn, int64Column, sqlNewestChange)
}

// readHistory returns the changes from seq on, in the order of their commits, and at
// most so many.
func readHistory(ctx context.Context, r store.Reader, seq int64, limit int) (history, error) {
	all, err := rows.List(ctx, r.Conn, historyColumns, sqlHistory, seq, limit)
	var h history
	for _, row := range all {
		h.last = row.last
		if row.Seq != 0 {
			h.changes = append(h.changes, row.loggedChange)
		}
	}
	return h, err
}

// after returns the changes that follow a position, and whether they follow it without a
// gap: not so where some are deleted already, or where the database has another history
// than the one in which the position was read. A position whose instant is 0 is compared
// by its number alone.
func (h history) after(position loggedChange, limit int) (news []store.Change, complete bool) {
	all := h.changes
	if len(all) > 0 && all[0].Seq == position.Seq {
		if position.at != 0 && position != all[0] {
			return nil, false
		}
		all = all[1:]
	}
	next := position.Seq
	for _, change := range all {
		if next++; change.Seq != next {
			return nil, false
		}
		news = append(news, change.Change)
	}
	return news, next == h.last || len(h.changes) == limit
}

// deleteChanges deletes changes made until an instant. A node that has slept through
// some of them notices the gap and forgets all it knows.
func deleteChanges(ctx context.Context, tx *store.Tx, until time.Time) error {
	_, err := rows.Exec(ctx, tx.Conn, sqlDeleteChanges, until.UnixMicro())
	return err
}

// batchSize is how many changes are read at once.
const batchSize = 500

// catchUp applies what has changed since the position. A node that was away for longer
// than changes are kept, or whose database was restored to an older state, forgets
// everything and starts from the newest change.
func (l *Lease) catchUp(ctx context.Context) error {
	for {
		h, err := readHistory(ctx, l.db.Read(), l.position.Seq, batchSize)
		if err != nil {
			return err
		}
		news, complete := h.after(l.position, batchSize)
		if !complete {
			l.startAt(h.last)
			return nil
		}
		if err := l.apply(ctx, news); err != nil {
			return err
		}
		if len(h.changes) > 0 {
			l.position = h.changes[len(h.changes)-1]
			l.applied.Store(l.position.Seq)
		}
		if len(h.changes) < batchSize {
			return nil
		}
	}
}
