package lease

import (
	"context"
	"time"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

// loggedChange is a change as stored. No two are equal, even if two histories of one
// database used the same number: after a restore to an older state, or a failover to a
// standby without the newest commits.
type loggedChange struct {
	store.Change
	at int64
}

// history is one read of the log: the number of the newest change, and the changes
// from a position on.
type history struct {
	last    int64
	changes []loggedChange
}

type historyRow struct {
	last int64
	loggedChange
}

func historyFields(h *historyRow) []any {
	return []any{&h.last, &h.at, &h.Seq, &h.Kind, &h.Subject}
}

func int64Column(n *int64) []any { return []any{n} }

const (
	sqlNewestChange = `SELECT last FROM change_position WHERE id = 1`

	// One statement, so that both parts are of one instant. A row with the number 0
	// stands for no changes.
	sqlHistory = `SELECT p.last, COALESCE(c.at, 0), COALESCE(c.seq, 0), COALESCE(c.kind, ''), COALESCE(c.subject, '')
FROM change_position p LEFT JOIN changes c ON c.seq >= $1 WHERE p.id = 1 ORDER BY c.seq LIMIT $2`

	sqlNodesChanged = `SELECT count(*) FROM changes WHERE kind = 'nodes' AND at > $1`

	sqlDeleteChanges = `DELETE FROM changes WHERE seq IN (SELECT seq FROM changes WHERE at <= $1 ORDER BY at LIMIT $2)`
)

// newestChange returns the number of the newest change.
func newestChange(ctx context.Context, r store.Reader) (int64, error) {
	return rows.One(ctx, r.Conn, int64Column, sqlNewestChange)
}

// readHistory returns at most limit changes from seq on, in commit order.
func readHistory(ctx context.Context, r store.Reader, seq int64, limit int) (history, error) {
	all, err := rows.List(ctx, r.Conn, historyFields, sqlHistory, seq, limit)
	var h history
	for _, row := range all {
		h.last = row.last
		if row.Seq != 0 {
			h.changes = append(h.changes, row.loggedChange)
		}
	}
	return h, err
}

// changesAfter returns the changes that follow a position, and whether they follow it without a
// gap: some may be deleted already, or the database may have another history than when
// the position was read. A position whose instant is 0 is compared only by number.
func (h history) changesAfter(position loggedChange, limit int) (newer []store.Change, complete bool) {
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
		newer = append(newer, change.Change)
	}
	return newer, next == h.last || len(h.changes) == limit
}

// deleteChanges deletes up to limit changes made until an instant, the oldest first, and
// returns how many. A node that missed some of them notices the gap and clears its memory.
func deleteChanges(ctx context.Context, tx *store.Tx, until time.Time, limit int) (int64, error) {
	return rows.Exec(ctx, tx.Conn, sqlDeleteChanges, until.UnixMicro(), limit)
}

// nodesChanged reports whether a node has joined, has left or was removed after an instant,
// which must be within changesKept.
func nodesChanged(ctx context.Context, r store.Reader, after time.Time) (bool, error) {
	n, err := rows.One(ctx, r.Conn, int64Column, sqlNodesChanged, after.UnixMicro())
	return n > 0, err
}

// batchSize is how many changes are read at once, and deleted in one transaction.
const batchSize = 500

// catchUp applies the changes since the position. A node that was away for longer than
// changes are kept, or whose database was restored to an older state, clears its
// memory and starts from the newest change.
func (l *Lease) catchUp(ctx context.Context) error {
	for {
		h, err := readHistory(ctx, l.db.Read(), l.position.Seq, batchSize)
		if err != nil {
			return err
		}
		newer, complete := h.changesAfter(l.position, batchSize)
		if !complete {
			l.startAt(h.last)
			return nil
		}
		if err := l.apply(ctx, l.shares.takeNodeChanges(newer)); err != nil {
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
