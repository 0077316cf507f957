package store

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// ChangeKind says what a change is about. A node that doesn't know a kind, which
// a newer version has announced, forgets everything: so a new kind may end
// something, and may not ask something as ChangeFlush does before every node
// knows it.
type ChangeKind string

// The kinds of changes.
const (
	ChangeSession ChangeKind = "session" // Subject is the token hash in hex: the session has ended
	ChangeUser    ChangeKind = "user"    // Subject is the user: sessions or memberships are other ones now
	ChangeTenant  ChangeKind = "tenant"  // Subject is the tenant: its status is another one now
	ChangeAll     ChangeKind = "all"     // there is no Subject: nothing that was read before is good
	ChangeFlush   ChangeKind = "flush"   // Subject is the token hash in hex: who has seen it used is to say so
)

// Change tells the memory of every node what to forget.
type Change struct {
	Seq     int64 // 0 until it is drawn
	Kind    ChangeKind
	Subject string
}

func changeColumns(c *Change) []any { return []any{&c.Seq, &c.Kind, &c.Subject} }

// SessionSubject is the subject of a session's changes.
func SessionSubject(hash []byte) string { return hex.EncodeToString(hash) }

// announce notes a change to be written before the commit. Statements that
// change what a session may do call it themselves, so that no feature can
// forget to.
func (tx *Tx) announce(kind ChangeKind, subject string) {
	for _, c := range tx.changes {
		if c.Kind == kind && c.Subject == subject {
			return
		}
	}
	tx.changes = append(tx.changes, Change{Kind: kind, Subject: subject})
}

// AskFlush makes every node write down when it last saw the session used.
func (tx *Tx) AskFlush(hash []byte) { tx.announce(ChangeFlush, SessionSubject(hash)) }

const sqlDrawPosition = `UPDATE change_position SET last = last + $1 WHERE id = 1 RETURNING last`

const sqlInsertChange = `INSERT INTO changes (seq, kind, subject, at) VALUES ($1, $2, $3, $4)`

// draw writes the announced changes; it is the last thing before the commit,
// because from here on every other revocation waits.
func (tx *Tx) draw(ctx context.Context) error {
	if len(tx.changes) == 0 {
		return nil
	}
	last, err := one(ctx, tx.Reader, positionColumn, sqlDrawPosition, len(tx.changes))
	if err != nil {
		return err
	}
	for i := range tx.changes {
		c := &tx.changes[i]
		c.Seq = last - int64(len(tx.changes)-1-i)
		if err := tx.run(ctx, sqlInsertChange, c.Seq, c.Kind, c.Subject, micros(tx.Now)); err != nil {
			return err
		}
	}
	return nil
}

func positionColumn(n *int64) []any { return []any{n} }

const sqlPosition = `SELECT last FROM change_position WHERE id = 1`

// position is the seq of the newest change.
func (r Reader) position(ctx context.Context) (int64, error) {
	return one(ctx, r, positionColumn, sqlPosition)
}

// logged is a change as it is stored. No two are equal, not even where two
// histories of one database (it was set back to an older state, or a standby
// took over that lacked the newest commits) have given one number twice.
type logged struct {
	Change
	at int64
}

// history is one look at the log: the number of the newest change, and the
// changes from a position on.
type history struct {
	last int64
	rows []logged
}

type historyRow struct {
	last int64
	logged
}

func historyColumns(h *historyRow) []any {
	return append([]any{&h.last, &h.at}, changeColumns(&h.Change)...)
}

// One statement, so that both parts are of one instant. A row with the number 0
// stands for no changes.
const sqlHistory = `SELECT p.last, COALESCE(c.at, 0), COALESCE(c.seq, 0), COALESCE(c.kind, ''), COALESCE(c.subject, '')
FROM change_position p LEFT JOIN changes c ON c.seq >= $1 WHERE p.id = 1 ORDER BY c.seq LIMIT $2`

// historyFrom returns the changes from seq on, in the order of their commits,
// and at most so many.
func (r Reader) historyFrom(ctx context.Context, seq int64, limit int) (history, error) {
	rows, err := list(ctx, r, historyColumns, sqlHistory, seq, limit)
	var h history
	for _, row := range rows {
		h.last = row.last
		if row.Seq != 0 {
			h.rows = append(h.rows, row.logged)
		}
	}
	return h, err
}

// after returns the changes that follow the one given, and whether they follow
// it without a gap: not so where some are forgotten already, or where the
// database has another history than the one in which it was read. The content
// of the one given is not compared when its instant is 0.
func (h history) after(one logged, limit int) (news []Change, unbroken bool) {
	rows := h.rows
	if len(rows) > 0 && rows[0].Seq == one.Seq {
		if one.at != 0 && one != rows[0] {
			return nil, false
		}
		rows = rows[1:]
	}
	next := one.Seq
	for _, row := range rows {
		if next++; row.Seq != next {
			return nil, false
		}
		news = append(news, row.Change)
	}
	return news, next == h.last || len(h.rows) == limit
}

const sqlDeleteOldChanges = `DELETE FROM changes WHERE at <= $1`

// DeleteOldChanges forgets changes made before an instant. A node that has
// slept through some of them notices the gap and forgets all it knows.
func (tx *Tx) DeleteOldChanges(ctx context.Context, before time.Time) error {
	return tx.run(ctx, sqlDeleteOldChanges, micros(before))
}

// peer is the row of a process that answers from memory.
type peer struct {
	id      string
	lease   int64
	applied int64
	beat    int64
}

func peerColumns(p *peer) []any { return []any{&p.id, &p.lease, &p.applied, &p.beat} }

const sqlPeers = `SELECT id, lease, applied, beat FROM nodes`

func (r Reader) peers(ctx context.Context) ([]peer, error) {
	return list(ctx, r, peerColumns, sqlPeers)
}

const sqlInsertPeer = `INSERT INTO nodes (id, lease, applied, beat, settings) VALUES ($1, $2, $3, $4, $5)`

// insertPeer begins to count beats at a number of chance. At 0 the row of a node
// that was removed and is back could have the beat that others have seen it not
// go on from, and they would remove it at once.
func (tx *Tx) insertPeer(ctx context.Context, id string, lease time.Duration, applied int64, settings string) error {
	return tx.run(ctx, sqlInsertPeer, id, lease.Microseconds(), applied, rand.Int64N(1<<62), settings)
}

const sqlBeat = `UPDATE nodes SET beat = beat + 1 WHERE id = $1`

func (tx *Tx) heartbeat(ctx context.Context, id string) (bool, error) {
	return tx.hit(ctx, sqlBeat, id)
}

const sqlApplied = `UPDATE nodes SET applied = $1 WHERE id = $2`

func (tx *Tx) applied(ctx context.Context, id string, seq int64) (bool, error) {
	return tx.hit(ctx, sqlApplied, seq, id)
}

const sqlDeletePeer = `DELETE FROM nodes WHERE id = $1`

func (tx *Tx) deletePeer(ctx context.Context, id string) error {
	return tx.run(ctx, sqlDeletePeer, id)
}

const sqlBuryPeer = `DELETE FROM nodes WHERE id = $1 AND beat = $2`

// deleteDeadPeer removes a node that hasn't beaten since the beat given.
func (tx *Tx) deleteDeadPeer(ctx context.Context, id string, beat int64) error {
	return tx.run(ctx, sqlBuryPeer, id, beat)
}
