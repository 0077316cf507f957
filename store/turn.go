package store

import (
	"context"
	"time"
)

const (
	sqlTurns    = `SELECT name, next_at FROM turns`
	sqlNewTurn  = `INSERT INTO turns (name, next_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
	sqlTakeTurn = `UPDATE turns SET next_at = $2 WHERE name = $1 AND next_at = $3`
)

// Turns returns when each sweep is due next, by its name. A sweep that no node has done yet isn't there.
func (r Reader) Turns(ctx context.Context) (map[string]time.Time, error) {
	type turn struct {
		name string
		next time.Time
	}
	all := map[string]time.Time{}
	fields := func(t *turn) []any { return []any{&t.name, (*storedTime)(&t.next)} }
	err := each(ctx, r, fields, func(t turn) error { all[t.name] = t.next; return nil }, sqlTurns)
	return all, err
}

// TakeTurn makes the sweep due next at a time, and reports whether it was due as Turns has said, the zero time if
// it was not there: of several nodes one takes the turn.
func (tx *Tx) TakeTurn(ctx context.Context, name string, was, next time.Time) (bool, error) {
	if was.IsZero() {
		return tx.affected(ctx, sqlNewTurn, name, micros(next))
	}
	return tx.affected(ctx, sqlTakeTurn, name, micros(next), micros(was))
}
