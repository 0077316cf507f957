package store

import (
	"context"
	"encoding/hex"
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
	last, err := one(ctx, tx.Reader, int64Column, sqlDrawPosition, len(tx.changes))
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

func int64Column(n *int64) []any { return []any{n} }
