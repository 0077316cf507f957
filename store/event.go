package store

import (
	"context"
	"encoding/json"

	"github.com/doorward/doorward"
)

const sqlInsertEvent = `INSERT INTO events (id, at, action, outcome, actor_type, actor_id, actor_email,
  target_type, target_id, tenant_id, ip, request_id, changes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// InsertEvent adds a line to the audit trail, at the transaction's instant.
func (tx *Tx) InsertEvent(ctx context.Context, e doorward.Event) error {
	changes, err := json.Marshal(e.Changes)
	if err != nil {
		return err
	}
	return tx.must(ctx, sqlInsertEvent, e.ID, micros(tx.Now), e.Action, e.Outcome, e.ActorType, e.ActorID, e.ActorEmail,
		e.Target.Type, e.Target.ID, e.Target.TenantID, e.IP, e.RequestID, string(changes))
}

func eventColumns(e *doorward.Event) []any {
	return []any{
		&e.ID, (*instant)(&e.At), &e.Action, &e.Outcome, &e.ActorType, &e.ActorID, &e.ActorEmail,
		&e.Target.Type, &e.Target.ID, &e.Target.TenantID, &e.IP, &e.RequestID,
		jsonColumn[[]doorward.Change]{&e.Changes},
	}
}

// jsonColumn scans JSON text.
type jsonColumn[T any] struct{ to *T }

// Scan is for database/sql.
func (j jsonColumn[T]) Scan(v any) error {
	var text string
	if err := (textOrNone{&text}).Scan(v); err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), j.to)
}

const sqlEvents = `SELECT id, at, action, outcome, actor_type, actor_id, actor_email,
  target_type, target_id, tenant_id, ip, request_id, changes
FROM events WHERE tenant_id = $1 ORDER BY at, id`

// Events returns the audit trail of a tenant, the oldest first; the empty
// tenant is the installation's own.
func (r Reader) Events(ctx context.Context, tenantID string) ([]doorward.Event, error) {
	return list(ctx, r, eventColumns, sqlEvents, tenantID)
}

const sqlEvent = `SELECT id, at, action, outcome, actor_type, actor_id, actor_email,
  target_type, target_id, tenant_id, ip, request_id, changes
FROM events WHERE id = $1`

// Event returns the line of the audit trail, or ErrNone.
func (r Reader) Event(ctx context.Context, id string) (doorward.Event, error) {
	return one(ctx, r, eventColumns, sqlEvent, id)
}
