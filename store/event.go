package store

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/doorward/doorward"
)

// InsertEvent adds a line to the audit trail, at the transaction's instant. It
// is written at the end of the transaction, and any error comes then: whoever
// adds to a trail keeps others from it until the commit (see chain.go).
func (tx *Tx) InsertEvent(_ context.Context, e doorward.Event) error {
	e.At = tx.Now
	tx.events = append(tx.events, e)
	return nil
}

// InsertPastEvent is InsertEvent for what has happened earlier, at the event's own
// instant. Its place in the trail is that of this transaction.
func (tx *Tx) InsertPastEvent(e doorward.Event) { tx.events = append(tx.events, e) }

const columnsOfEvent = `id, at, action, outcome, actor_type, actor_id, actor_email,
  target_type, target_id, tenant_id, ip, request_id, changes`

func eventColumns(e *doorward.Event) []any {
	return []any{
		&e.ID, (*instant)(&e.At), &e.Action, &e.Outcome, &e.ActorType, &e.ActorID, &e.ActorEmail,
		&e.Target.Type, &e.Target.ID, &e.Target.TenantID, &e.IP, &e.RequestID,
		jsonColumn[[]doorward.Change]{&e.Changes},
	}
}

// jsonColumn scans JSON text; what was blanked stays as it is.
type jsonColumn[T any] struct{ to *T }

// Scan is for database/sql.
func (j jsonColumn[T]) Scan(v any) error {
	var text string
	if err := (textOrNone{&text}).Scan(v); err != nil || text == "" {
		return err
	}
	return json.Unmarshal([]byte(text), j.to)
}

// EventFilter chooses events; zero fields choose nothing. The times are
// pointers because the zero time is an instant that can be asked for.
type EventFilter struct {
	Action doorward.Action
	Actor  string // id or address
	Target string // id
	From   *time.Time
	To     *time.Time // exclusive

	Outcome doorward.Outcome
	Request string // id
}

// numbered is an event with its place in its chain.
type numbered struct {
	doorward.Event
	seq int64
}

func numberedColumns(n *numbered) []any { return append([]any{&n.seq}, eventColumns(&n.Event)...) }

const (
	selectNumbered = `SELECT seq, ` + columnsOfEvent + ` FROM events
`
	chosenEvents = `  AND at >= $3 AND at < $4
  AND ($5 = '' OR action = $5) AND ($6 = '' OR actor_id = $6 OR actor_email = $6) AND ($7 = '' OR target_id = $7)
  AND ($8 = '' OR outcome = $8) AND ($9 = '' OR request_id = $9)
`
	sqlEventPage       = selectNumbered + `WHERE tenant_id = $1 AND seq < $2` + chosenEvents + `ORDER BY seq DESC LIMIT $10`
	sqlEventPageBefore = selectNumbered + `WHERE tenant_id = $1 AND seq > $2` + chosenEvents + `ORDER BY seq LIMIT $10`
)

// EventPage returns events of the tenant, the newest first. Positions are
// numbers in its chain, so pages stay whole while events come in.
func (r Reader) EventPage(ctx context.Context, tenantID string, f EventFilter, w doorward.Window) (doorward.Page[doorward.Event], error) {
	query, seq, from, to := sqlEventPage, edge(w).At, int64(math.MinInt64), int64(math.MaxInt64)
	switch {
	case w.Back():
		query = sqlEventPageBefore
	case w.After == doorward.Position{}:
		seq = math.MaxInt64
	}
	if f.From != nil {
		from = micros(*f.From)
	}
	if f.To != nil {
		to = micros(*f.To)
	}
	rows, err := list(ctx, r, numberedColumns, query, tenantID, seq, from, to, string(f.Action), f.Actor, f.Target,
		string(f.Outcome), f.Request, w.Limit+1)
	some := page(rows, w, func(n numbered) doorward.Position { return doorward.Position{At: n.seq, ID: n.ID} })
	all := doorward.Page[doorward.Event]{Prev: some.Prev, Next: some.Next}
	for _, n := range some.Items {
		all.Items = append(all.Items, n.Event)
	}
	return all, err
}

const sqlRedactEvents = `UPDATE events SET actor_email = '', ip = '', changes = '', salt = NULL
WHERE tenant_id = '' AND salt IS NOT NULL AND (actor_id = $1 OR target_id = $1)`

// RedactEvents blanks what is personal in the installation's events by a user
// or about one, and returns in how many. What they did and when stays, and so
// does the chain. Events that are older than the chains keep what they have.
func (tx *Tx) RedactEvents(ctx context.Context, userID string) (int64, error) {
	return tx.exec(ctx, sqlRedactEvents, userID)
}

const (
	sqlDeleteEvents = `DELETE FROM events WHERE id IN (SELECT id FROM events WHERE tenant_id = $1 ORDER BY seq LIMIT $2)`
	sqlDeleteChain  = `DELETE FROM audit_chains WHERE tenant_id = $1`
)

// chainBatch keeps a deletion from holding the database's only writer for long.
const chainBatch = 1000

// DeleteChain deletes up to 1000 events of the tenant, the oldest first, and
// with the last of them its chain. It returns how many it has deleted; after
// fewer than 1000 nothing is left.
func (tx *Tx) DeleteChain(ctx context.Context, tenantID string) (int64, error) {
	n, err := tx.exec(ctx, sqlDeleteEvents, tenantID, chainBatch)
	if err != nil || n == chainBatch {
		return n, err
	}
	return n, tx.run(ctx, sqlDeleteChain, tenantID)
}

const sqlEvent = `SELECT ` + columnsOfEvent + ` FROM events WHERE id = $1`

// Event returns the line of the audit trail, or ErrNone.
func (r Reader) Event(ctx context.Context, id string) (doorward.Event, error) {
	return one(ctx, r, eventColumns, sqlEvent, id)
}
