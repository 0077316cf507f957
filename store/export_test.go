package store

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

// Pools returns the connection pools of db, for tests of SQL itself.
func Pools(db *DB) (write, read *sql.DB) { return db.write, db.read }

// Execute runs any statement in the transaction.
func Execute(ctx context.Context, tx *Tx, query string) error { return tx.run(ctx, query) }

// MigrationLock is the lock in PostgreSQL of a node that migrates.
const MigrationLock = migrationLock

// MigrateWith is Migrate of a version that has one migration more, with the text.
func MigrateWith(ctx context.Context, db *DB, text string) error {
	return db.migrate(ctx, append(slices.Clone(migrations), migration{schemaNeeded + 1, statementsOf(text)}))
}

// StatementsOf returns the statements of a migration: those that run in one transaction, and on
// PostgreSQL each on its own.
func StatementsOf(text string) (all, together, apart []string) {
	m := migration{statements: statementsOf(text)}
	together, apart = m.split()
	return m.statements, together, apart
}

// EveryList returns the statements that read lists.
func EveryList() []string {
	eventPages() // makes those of events
	return everyList
}

// ListsOf returns the statements that an engine reads lists by: each has its own for events.
func ListsOf(engine string) []string {
	postgres, sqlite := eventPages()
	own, other := textsOf(postgres), textsOf(sqlite)
	if engine == "sqlite" {
		own, other = other, own
	}
	return slices.DeleteFunc(slices.Clone(EveryList()), func(query string) bool {
		return slices.Contains(other, query) && !slices.Contains(own, query)
	})
}

func textsOf(all map[string]eventListing) (texts []string) {
	for _, p := range all {
		texts = append(texts, p.total, p.bars, p.days)
		for _, s := range p.statements {
			texts = append(texts, s.up, s.down, s.after, s.before)
		}
	}
	return texts
}

// SchemaNeeded is the schema that this binary needs, FirstSchema the oldest that it can begin with.
var SchemaNeeded, FirstSchema = schemaNeeded, firstSchema

// LastCommit is the commit that migrates older schemas.
const LastCommit = lastCommit

// SealedColumns are the columns that Reseal knows, as table.column.
func SealedColumns() (all []string) {
	for _, c := range sealedColumns {
		all = append(all, c.table+"."+c.column)
	}
	return all
}

// EventStatements are the statements of a search in a trail, and their arguments up to the
// position: of its first page, of a next one, and of its count.
func EventStatements(engine string, f EventFilter) (first, after, total string, args []any) {
	all, sqlite := eventPages()
	if engine == "sqlite" {
		all = sqlite
	}
	p := all[f.mostSelective()]
	s := p.statements["at"]
	args = append([]any{"tnt_1", int64(0), int64(1) << 60, string(f.Action), f.Actor, f.Target, string(f.Outcome), f.Request, int64(0), int64(1) << 60, f.IP}, f.operator()...)
	return s.down, s.before, p.total, args
}

// DaysStatement is the statement that counts the newest events of a search by day, and its arguments.
func DaysStatement(engine string, f EventFilter) (query string, args []any) {
	_, _, _, args = EventStatements(engine, f)
	postgres, sqlite := eventPages()
	if engine == "sqlite" {
		return sqlite[f.mostSelective()].days, append(args, 10_001)
	}
	return postgres[f.mostSelective()].days, append(args, 10_001)
}

// EveryTrailStatements is EventStatements for a search in all trails.
func EveryTrailStatements(f EventFilter) (first, after, total string, args []any) {
	p, args := everyTrailOf(f)
	s := p.statements["at"]
	return s.down, s.before, p.total, args
}

// SearchStatement is the statement by which a search by time finds numbers, with arguments.
func SearchStatement() (query string, args []any) {
	return sqlBinarySearch, []any{"tnt_1", int64(10_000), -1}
}

// NumbersOf is the range of numbers, both exclusive, that a search by time reads.
func NumbersOf(ctx context.Context, r Reader, tenantID string, from, to time.Time) (lo, hi int64, err error) {
	b, err := r.numbersOf(ctx, tenantID, micros(from), micros(to))
	return b.lo, b.hi, err
}

// SortedStatements are the statements of the first and of a later page of people and of
// invitations in each order, with the arguments that select all rows of the tenant.
func SortedStatements(tenantID string) (all []Sorted) {
	people := append([]any{tenantID, "", "", ""}, searchArgs("")...)
	invitations := append([]any{tenantID, "", int64(0), "", ""}, searchArgs("")...)
	for _, o := range userPages.orders {
		all = append(all, sorted("people", userPages.statements[o.name], o.name, o.key != nil, people)...)
	}
	for _, o := range invitationPages.orders {
		all = append(all, sorted("invitations", invitationPages.statements[o.name], o.name, o.key != nil, invitations)...)
	}
	return all
}

// Sorted is a statement of a list in one order.
type Sorted struct {
	Name, Query string
	Args        []any
}

func sorted(listName string, s statements, orderName string, byKey bool, args []any) []Sorted {
	var at any = int64(5)
	if byKey {
		at = "7"
	}
	later := append(slices.Clone(args), at, "x", 51)
	name := listName + " by " + orderName
	return []Sorted{
		{name, s.up, append(slices.Clone(args), 51)},
		{name + ", reversed", s.down, append(slices.Clone(args), 51)},
		{name + ", a later page", s.after, later},
		{name + ", reversed, a later page", s.before, later},
	}
}
