package store

import (
	"context"
	"encoding/hex"
	"time"
)

// ChangeKind says what a change is about.
type ChangeKind string

// The kinds of changes.
const (
	ChangeSession ChangeKind = "session" // Subject is the token hash in hex: the session has ended
	ChangeUser    ChangeKind = "user"    // Subject is the user: sessions or memberships are other ones now
	ChangeTenant  ChangeKind = "tenant"  // Subject is the tenant: its status is another one now
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
		if err := tx.must(ctx, sqlInsertChange, c.Seq, c.Kind, c.Subject, micros(tx.Now)); err != nil {
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

const sqlChangesAfter = `SELECT seq, kind, subject FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2`

// changesAfter returns changes in the order of their commits.
func (r Reader) changesAfter(ctx context.Context, seq int64, limit int) ([]Change, error) {
	return list(ctx, r, changeColumns, sqlChangesAfter, seq, limit)
}

const sqlDeleteOldChanges = `DELETE FROM changes WHERE at <= $1`

// DeleteOldChanges forgets changes made before an instant. A node that has
// slept through some of them notices the gap and forgets all it knows.
func (tx *Tx) DeleteOldChanges(ctx context.Context, before time.Time) error {
	return tx.must(ctx, sqlDeleteOldChanges, micros(before))
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

const sqlInsertPeer = `INSERT INTO nodes (id, lease, applied, beat) VALUES ($1, $2, $3, 0)`

func (tx *Tx) insertPeer(ctx context.Context, id string, lease time.Duration, applied int64) error {
	return tx.must(ctx, sqlInsertPeer, id, lease.Microseconds(), applied)
}

const sqlBeat = `UPDATE nodes SET beat = beat + 1, applied = $1 WHERE id = $2`

func (tx *Tx) beat(ctx context.Context, id string, applied int64) (bool, error) {
	return tx.hit(ctx, sqlBeat, applied, id)
}

const sqlDeletePeer = `DELETE FROM nodes WHERE id = $1`

func (tx *Tx) deletePeer(ctx context.Context, id string) error {
	return tx.must(ctx, sqlDeletePeer, id)
}

const sqlBuryPeer = `DELETE FROM nodes WHERE id = $1 AND beat = $2`

// buryPeer removes a node that hasn't beaten since the beat given.
func (tx *Tx) buryPeer(ctx context.Context, id string, beat int64) error {
	return tx.must(ctx, sqlBuryPeer, id, beat)
}
