package store

import (
	"context"
	"encoding/hex"
)

// ChangeKind says what a change is about. A node of an older version, which doesn't know a
// new kind, clears its memory. That is enough for a kind that revokes; a kind that requests
// an action, as ChangeFlush does, may be written only once every node knows it.
type ChangeKind string

// The kinds of changes.
const (
	ChangeSession     ChangeKind = "session"     // Subject is a token hash in hex: the session or the secret of an API key has changed or ended
	ChangeUser        ChangeKind = "user"        // Subject is the user id: sessions, memberships or API keys have changed
	ChangeTenant      ChangeKind = "tenant"      // Subject is the tenant id: its status or settings have changed
	ChangeAll         ChangeKind = "all"         // no Subject: everything that was read before is invalid
	ChangeSigning     ChangeKind = "signing"     // no Subject: assertions are signed with another key
	ChangeFlush       ChangeKind = "flush"       // Subject is the token hash in hex: every node is to write its last use
	ChangeMaintenance ChangeKind = "maintenance" // no Subject: the operator has paused or resumed writes; no session ends
	ChangeNodes       ChangeKind = "nodes"       // no Subject: a node has joined or left, or was removed; no session ends
)

// Change tells every node what to remove from memory, or what to do.
type Change struct {
	Seq     int64 // assigned by writeChanges
	Kind    ChangeKind
	Subject string
}

// SessionSubject is the subject of changes of a session, or of a secret of an API key.
func SessionSubject(hash []byte) string { return hex.EncodeToString(hash) }

// announce adds a change to be written before the commit. Statements that affect
// what a session may do call it themselves, so that no feature can forget it.
func (tx *Tx) announce(kind ChangeKind, subject string) {
	for _, c := range tx.changes {
		if c.Kind == kind && c.Subject == subject {
			return
		}
	}
	tx.changes = append(tx.changes, Change{Kind: kind, Subject: subject})
}

// RequestFlush makes every node write its last use of the session.
func (tx *Tx) RequestFlush(hash []byte) { tx.announce(ChangeFlush, SessionSubject(hash)) }

// AnnounceNodes makes every node read which nodes there are.
func (tx *Tx) AnnounceNodes() { tx.announce(ChangeNodes, "") }

const sqlNextPosition = `UPDATE change_position SET last = last + $1 WHERE id = 1 RETURNING last`

const sqlInsertChange = `INSERT INTO changes (seq, kind, subject, at) VALUES ($1, $2, $3, $4)`

// writeChanges writes the announced changes. It comes last before the commit,
// because its lock makes every other revocation wait.
func (tx *Tx) writeChanges(ctx context.Context) error {
	if len(tx.changes) == 0 {
		return nil
	}
	last, err := one(ctx, tx.Reader, int64Column, sqlNextPosition, len(tx.changes))
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
