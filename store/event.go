package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
)

// InsertEvent adds an event to the audit trail, with the transaction's time. It is
// written at the end of the transaction, since its lock on the chain blocks others
// until the commit (see chain.go); errors come then.
func (tx *Tx) InsertEvent(_ context.Context, e doorward.Event) error {
	e.At = tx.Now
	tx.events = append(tx.events, e)
	return nil
}

// InsertCountedEvent is InsertEvent for a change that counts in its tenant's quota of events a
// day. Errors at the end of the transaction: quota_exceeded.
func (tx *Tx) InsertCountedEvent(ctx context.Context, e doorward.Event) error {
	if tx.counts == nil {
		tx.counts = map[string]int64{}
	}
	tx.counts[e.Target.TenantID]++
	return tx.InsertEvent(ctx, e)
}

// InsertPastEvent is InsertEvent for something that happened earlier, with the
// event's own time. Its place in the trail is that of this transaction.
func (tx *Tx) InsertPastEvent(e doorward.Event) { tx.events = append(tx.events, e) }

const eventColumns = `id, at, action, outcome, actor_type, actor_id, actor_email,
  target_type, target_id, tenant_id, ip, request_id, changes, personal`

func eventFields(e *doorward.Event) []any {
	return []any{
		&e.ID, (*storedTime)(&e.At), &e.Action, &e.Outcome, &e.ActorType, &e.ActorID, &e.ActorEmail,
		&e.Target.Type, &e.Target.ID, &e.Target.TenantID, &e.IP, &e.RequestID,
		jsonColumn[[]doorward.Change]{&e.Changes},
		addedChanges{&e.Changes},
		&e.Seq,
	}
}

// jsonColumn scans JSON text; a blanked value leaves the target unchanged.
type jsonColumn[T any] struct{ dest *T }

// Scan implements sql.Scanner.
func (j jsonColumn[T]) Scan(v any) error {
	var text string
	if err := (nullableText{&text}).Scan(v); err != nil || text == "" {
		return err
	}
	return json.Unmarshal([]byte(text), j.dest)
}

// addedChanges adds the changes about the actor to those that jsonColumn has scanned. Older events
// have none apart.
type addedChanges struct{ dest *[]doorward.Change }

// Scan implements sql.Scanner.
func (a addedChanges) Scan(v any) error {
	var personal []doorward.Change
	err := jsonColumn[[]doorward.Change]{&personal}.Scan(v)
	*a.dest = append(*a.dest, personal...)
	return err
}

// EventFilter selects events; zero fields select all. The times are pointers
// because the zero time is a valid bound.
type EventFilter struct {
	Action doorward.Action
	Actor  string // id or address
	Target string // id
	From   *time.Time
	To     *time.Time // exclusive

	Outcome doorward.Outcome
	Request string // id
	IP      string // of the client

	Operator   bool   // only by the operator
	SystemUser string // who ran the operator's command, as in root@db1; implies Operator
}

// operator returns the values of the parameters for Operator and SystemUser. All that a command's event
// has about its actor is the system user, after the name of the command line where it records that: so
// one of two texts is its column personal.
func (f EventFilter) operator() []any {
	if f.SystemUser == "" {
		kind := ""
		if f.Operator {
			kind = string(doorward.Operator)
		}
		return []any{kind, "", ""}
	}
	system := doorward.Change{Field: doorward.FieldSystemUser, To: f.SystemUser}
	program := doorward.Change{Field: doorward.FieldUserAgent, To: doorward.OperatorAtTerminal().UserAgent}
	return []any{string(doorward.Operator), jsonOf(system), jsonOf(program, system)}
}

// jsonOf returns the changes as a column has them.
func jsonOf(changes ...doorward.Change) string {
	text, err := json.Marshal(changes)
	if err != nil {
		panic(err) // texts always have a JSON form
	}
	return string(text)
}

const selectEvent = `SELECT ` + eventColumns + `, seq FROM events
`

// eventConditions are the conditions of a search; by is a name that mostSelective returns. A
// listing finds its rows by the index of at most one condition, and has that one as driving,
// which needs a value. It has the others as filter, which selects all rows for an empty value.
// column and value are those of driving, where the index is on column and seq. The driving
// conditions of an outcome and of the operator compare $7 and $12 only because each statement must
// have all parameters.
var eventConditions = []struct{ by, filter, driving, column, value string }{
	{"request", "($8 = '' OR request_id = $8)", "request_id = $8", "request_id", "$8"},
	{"target", "($6 = '' OR target_id = $6)", "target_id = $6", "target_id", "$6"},
	{"actor", "($5 = '' OR actor_id = $5 OR actor_email = $5)", "actor_id = $5", "actor_id", "$5"},
	{"address", "", "actor_email = $5", "actor_email", "$5"},
	{"ip", "($11 = '' OR ip = $11)", "ip = $11", "ip", "$11"},
	{"action", "($4 = '' OR action = $4)", "action = $4", "action", "$4"},
	{"outcome", "($7 = '' OR outcome = $7)", "outcome = 'refused' AND $7 <> ''", "", ""},
	{"operator", "($12 = '' OR actor_type = $12)", "actor_type = 'operator' AND $12 <> ''", "", ""},
	{"", "($13 = '' OR personal = $13 OR personal = $14)", "", "", ""}, // drives nothing: "operator" does
}

// eventPages has a listing for each driving condition, and one without, "". A single listing
// with filters alone would use the index of none: some databases plan a statement before they
// know the values. The second map is for SQLite, which has no statistics: given a range of
// numbers it uses the index on numbers, whatever the other conditions are. So the driving
// condition is part of the range there. PostgreSQL would estimate such a range badly.
// They are made at the first search, since they would take as long as all other statements at each
// start of a command.
var eventPages = sync.OnceValues(func() (all, sqlite map[string]eventListing) {
	all = map[string]eventListing{"": eventPagesBy("", false)}
	sqlite = maps.Clone(all)
	for _, c := range eventConditions {
		if c.by == "" {
			continue
		}
		all[c.by] = eventPagesBy(c.by, false)
		sqlite[c.by] = all[c.by]
		if c.column != "" {
			sqlite[c.by] = eventPagesBy(c.by, true)
		}
	}
	return all, sqlite
})

// withinNumbers are the conditions on the number of an event, for each direction of paging. A
// + hides a bound from the planner, where the position of the page is the closer bound.
var withinNumbers = statements{
	up:     "  AND seq > $9 AND seq < $10\n",
	down:   "  AND seq > $9 AND seq < $10\n",
	after:  "  AND +seq > $9 AND seq < $10\n",
	before: "  AND seq > $9 AND +seq < $10\n",
}

// withinNumbersOf is withinNumbers for the rows that have the value in the column.
func withinNumbersOf(column, value string) statements {
	lower := fmt.Sprintf("  AND (%[1]s, seq) > (%[2]s, $9)", column, value)
	upper := fmt.Sprintf("  AND (%[1]s, seq) < (%[2]s, $10)", column, value)
	return statements{
		up:     lower + upper + "\n",
		down:   lower + upper + "\n",
		after:  "  AND +seq > $9" + upper + "\n",
		before: lower + "  AND +seq < $10\n",
	}
}

// eventListing is a listing of events, and the statement that counts the newest of them by time: the
// parameters after those of the listing are how many, and the width of a bar.
type eventListing struct {
	pages[doorward.Event]
	bars string
	days string // counts the newest events by day, action and outcome; empty for listings that nobody counts so
}

const countBars = `SELECT (at - $2) / $%[2]d AS bar, count(*) FROM (SELECT at FROM events %[1]s LIMIT $%[3]d) AS newest
GROUP BY bar ORDER BY bar`

// countDays has no condition but those that drive the listing: the limit then bounds what is read, too.
const countDays = `SELECT at / 86400000000 AS day, action, outcome, count(*), CAST(sum(times) AS BIGINT)
FROM (SELECT at, action, outcome, times FROM events %[1]s LIMIT $%[2]d) AS newest GROUP BY day, action, outcome`

// eventPagesBy returns the listing that finds rows by a condition. inRange makes its column a
// part of the range of numbers.
func eventPagesBy(by string, inRange bool) eventListing {
	// The + keeps the databases from an index on the time, with which they would sort
	// everything that they find.
	where := "WHERE tenant_id = $1 AND +at >= $2 AND +at < $3"
	within, sorted := withinNumbers, order[doorward.Event]{name: "at", column: "seq", unique: true, number: func(e doorward.Event) int64 { return e.Seq }}
	for _, c := range eventConditions {
		switch {
		case c.by == "":
			where += " AND " + c.filter
		case c.by == by && inRange:
			within, sorted.prefix, sorted.prefixValue = withinNumbersOf(c.column, c.value), c.column, c.value
		case c.by == by:
			where += " AND " + c.driving
		case c.filter != "" && !(c.by == "actor" && by == "address"):
			where += " AND " + c.filter
		}
	}
	const args = 14
	newest := where + "\n" + within.down + "ORDER BY " + sorted.columns("id", " DESC")
	bars, days := fmt.Sprintf(countBars, newest, args+2, args+1), ""
	everyList = append(everyList, bars)
	if by == "actor" || by == "target" {
		days = fmt.Sprintf(countDays, newest, args+1)
		everyList = append(everyList, days)
	}
	return eventListing{bars: bars, days: days, pages: newPages(listing[doorward.Event]{
		head: selectEvent, count: "FROM events ", where: where + "\n", extra: within, args: args,
		fields: eventFields, id: "id", idOf: func(e doorward.Event) string { return e.ID },
		orders:       []order[doorward.Event]{sorted},
		defaultOrder: "-at",
	})}
}

// mostSelective names the condition that an index finds rows by: the one likely to select the
// fewest.
func (f EventFilter) mostSelective() string {
	switch {
	case f.Request != "":
		return "request"
	case f.Target != "":
		return "target"
	case strings.Contains(f.Actor, "@"):
		return "address"
	case f.Actor != "":
		return "actor"
	case f.IP != "":
		return "ip"
	case f.Operator || f.SystemUser != "":
		return "operator"
	case f.Action != "":
		return "action"
	case f.Outcome == doorward.Refused:
		return "outcome"
	}
	return ""
}

// EventPage returns events of the tenant, usually the newest first. Positions are numbers
// in its chain, so pages stay stable while events are added. Errors: validation_failed,
// for an unknown order.
func (r Reader) EventPage(ctx context.Context, tenantID string, f EventFilter, w doorward.Window) (doorward.Page[doorward.Event], error) {
	search, args, err := r.searchOf(ctx, tenantID, f)
	if err != nil {
		return doorward.Page[doorward.Event]{}, err
	}
	return search.read(ctx, r, w, args...)
}

// EventBar counts the events of one bar of time.
type EventBar struct {
	N     int64 // number of the bar, from 0
	Count int64
}

// EventBars counts the newest events that the filter selects, most at most, by time: each bar is of
// the width, and the first begins at f.From, which must be set. Bars without events are left out.
func (r Reader) EventBars(ctx context.Context, tenantID string, f EventFilter, width time.Duration, most int) ([]EventBar, error) {
	search, args, err := r.searchOf(ctx, tenantID, f)
	if err != nil {
		return nil, err
	}
	fields := func(b *EventBar) []any { return []any{&b.N, &b.Count} }
	return list(ctx, r, fields, search.bars, append(args, most, width.Microseconds())...)
}

// EventDay is how often an action was done or refused in a day of UTC.
type EventDay struct {
	Day     int64 // days since 1970-01-01
	Times   int64 // adds up the refusals that an event stands for
	Action  doorward.Action
	Outcome doorward.Outcome
	Events  int64
}

// EventDays counts the newest events of the tenant by the actor or about the target of the filter, which has one
// of the two, an id, and f.From; it reads most of them at most. Days without events are left out. They come in no
// order.
func (r Reader) EventDays(ctx context.Context, tenantID string, f EventFilter, most int) ([]EventDay, error) {
	search, args, err := r.searchOf(ctx, tenantID, EventFilter{Actor: f.Actor, Target: f.Target, From: f.From})
	if err != nil {
		return nil, err
	}
	if search.days == "" {
		return nil, doorward.Unavailable(errors.New("events are counted by day for an actor or a target by id alone"))
	}
	fields := func(d *EventDay) []any { return []any{&d.Day, &d.Action, &d.Outcome, &d.Events, &d.Times} }
	return list(ctx, r, fields, search.days, append(args, most)...)
}

// searchOf returns the listing that finds the filter's events fast, and its arguments.
func (r Reader) searchOf(ctx context.Context, tenantID string, f EventFilter) (eventListing, []any, error) {
	// Beyond all times, and far from overflows.
	from, to, numbers := int64(-1<<62), int64(1<<62), openRange{math.MinInt64, math.MaxInt64}
	if f.From != nil {
		from = micros(*f.From)
	}
	if f.To != nil {
		to = micros(*f.To)
	}
	if f.From != nil || f.To != nil {
		var err error
		if numbers, err = r.numbersOf(ctx, tenantID, from, to); err != nil {
			return eventListing{}, nil, err
		}
	}
	all, sqlite := eventPages()
	if r.engine.path != "" { // SQLite
		all = sqlite
	}
	return all[f.mostSelective()], append([]any{
		tenantID, from, to, string(f.Action), f.Actor, f.Target, string(f.Outcome), f.Request, numbers.lo, numbers.hi, f.IP,
	}, f.operator()...), nil
}

// everyTrail has the listings of the events of all tenants and of the installation, by time and then by id, each
// with the condition that drives it; "" by time alone.
var everyTrail = sync.OnceValue(func() map[string]pages[doorward.Event] {
	all := map[string]pages[doorward.Event]{"": everyTrailBy("")}
	for _, c := range everyTrailConditions {
		all[c.by] = everyTrailBy(c.by)
	}
	return all
})

// everyTrailConditions are the conditions that an index can drive: one on a column, the time and the id, or without
// a column on the time and the id of the rows that the condition selects.
var everyTrailConditions = []struct{ by, filter, driving, column, parameter string }{
	{"target", "($5 = '' OR target_id = $5)", "target_id = $5", "target_id", "$5"},
	{"actor", "($4 = '' OR actor_id = $4 OR actor_email = $4)", "actor_id = $4", "actor_id", "$4"},
	{"operator", "($9 = '' OR actor_type = $9)", "actor_type = 'operator' AND $9 <> ''", "", ""},
	{"ip", "($8 = '' OR ip = $8)", "ip = $8", "ip", "$8"},
}

func everyTrailBy(by string) pages[doorward.Event] {
	where := "WHERE at >= $1 AND at < $2 AND ($3 = '' OR action = $3) AND ($6 = '' OR outcome = $6) AND ($7 = '' OR request_id = $7) AND ($10 = '' OR personal = $10 OR personal = $11)"
	sorted := order[doorward.Event]{name: "at", column: "at", number: func(e doorward.Event) int64 { return micros(e.At) }}
	for _, c := range everyTrailConditions {
		if c.by != by {
			where += " AND " + c.filter
			continue
		}
		where += " AND " + c.driving
		sorted.prefix, sorted.prefixValue = c.column, c.parameter
	}
	return newPages(listing[doorward.Event]{
		head: selectEvent, count: "FROM events ", where: where + "\n", args: 11,
		fields: eventFields, id: "id", idOf: func(e doorward.Event) string { return e.ID },
		orders: []order[doorward.Event]{sorted}, defaultOrder: "-at",
	})
}

// EventPageOfAll is EventPage for the trails of all tenants and of the installation, by time and then by id. It
// finds an actor by the id alone, unless the text has an @.
func (r Reader) EventPageOfAll(ctx context.Context, f EventFilter, w doorward.Window) (doorward.Page[doorward.Event], error) {
	search, args := everyTrailOf(f)
	return search.read(ctx, r, w, args...)
}

func everyTrailOf(f EventFilter) (pages[doorward.Event], []any) {
	from, to, by := int64(-1<<62), int64(1<<62), ""
	if f.From != nil {
		from = micros(*f.From)
	}
	if f.To != nil {
		to = micros(*f.To)
	}
	switch {
	case f.Target != "":
		by = "target"
	case f.Actor != "" && !strings.Contains(f.Actor, "@"):
		by = "actor"
	case f.Operator || f.SystemUser != "":
		by = "operator"
	case f.IP != "":
		by = "ip"
	}
	return everyTrail()[by], append([]any{from, to, string(f.Action), f.Actor, f.Target, string(f.Outcome), f.Request, f.IP}, f.operator()...)
}

const (
	oldestEvents        = `(SELECT id FROM events WHERE tenant_id = $1 ORDER BY seq LIMIT $2)`
	sqlDeleteEventMails = `DELETE FROM mails WHERE subject_id IN ` + oldestEvents
	sqlDeleteEventsHeld = `DELETE FROM held_notices WHERE event_id IN ` + oldestEvents
	sqlDeleteEvents     = `DELETE FROM events WHERE id IN ` + oldestEvents
	sqlDeleteChain      = `DELETE FROM audit_chains WHERE tenant_id = $1`
)

// chainBatch bounds a deletion, since SQLite has only one writer.
const chainBatch = 1000

// DeleteChain deletes up to chainBatch events of the tenant, the oldest first, with the mails
// about them, their rows of the feed, and with the last of them the chain and its usage. It returns the
// number deleted; fewer than chainBatch means that nothing is left.
func (tx *Tx) DeleteChain(ctx context.Context, tenantID string) (int64, error) {
	for _, query := range []string{sqlDeleteEventMails, sqlDeleteEventsHeld} {
		if err := tx.run(ctx, query, tenantID, chainBatch); err != nil {
			return 0, err
		}
	}
	n, err := tx.exec(ctx, sqlDeleteEvents, tenantID, chainBatch)
	if err == nil {
		err = tx.run(ctx, sqlDeleteFeedOf, tenantID, int64(math.MaxInt64))
	}
	if err != nil || n == chainBatch {
		return n, err
	}
	if err := tx.run(ctx, sqlDeleteFeedChain, tenantID); err != nil {
		return n, err
	}
	if err := tx.run(ctx, sqlDeleteChain, tenantID); err != nil {
		return n, err
	}
	return n, tx.deleteUsage(ctx, tenantID) // last: nobody adds to it any more
}

const sqlEventsAfter = selectEvent + `WHERE tenant_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`

// EventsAfter returns events of the tenant with a greater number than seq, in order.
func (r Reader) EventsAfter(ctx context.Context, tenantID string, seq int64, limit int) ([]doorward.Event, error) {
	return list(ctx, r, eventFields, sqlEventsAfter, tenantID, seq, limit)
}

const (
	sqlEvent = selectEvent + `WHERE id = $1`
	// The text is that of a doorward.Change.
	sqlRoleByHand = selectEvent + `WHERE tenant_id = $1 AND target_id = $2 AND action = 'user.role' AND outcome = 'done' 
  AND replace(changes, '{"field":"roleByHand"', '') <> changes ORDER BY seq DESC LIMIT 1`
)

// RoleByHand returns the event by which an OWNER, or the operator, last gave the member a role by hand that a directory
// doesn't lower, or left it to the directory; or ErrNone.
func (r Reader) RoleByHand(ctx context.Context, tenantID, userID string) (doorward.Event, error) {
	return one(ctx, r, eventFields, sqlRoleByHand, tenantID, userID)
}

// Event returns the event, or ErrNone.
func (r Reader) Event(ctx context.Context, id string) (doorward.Event, error) {
	return one(ctx, r, eventFields, sqlEvent, id)
}
