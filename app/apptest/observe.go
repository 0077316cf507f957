package apptest

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/store"
)

// observer is a connection that bypasses the store, opened on first use.
type observer struct {
	mu sync.Mutex
	db *sql.DB
}

// statements has the texts of statements that the nodes have run, while it is on.
type statements struct {
	mu  sync.Mutex
	on  bool
	all []string
}

// ofLease are the statements by which nodes keep their leases and read changes, at any time.
var ofLease = regexp.MustCompile(`^(SELECT p\.last, .*|SELECT id, lease, .*|UPDATE nodes .*)`)

func (s *statements) note(query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on && !ofLease.MatchString(query) {
		s.all = append(s.all, query)
	}
}

func (s *statements) set(on bool) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.all, s.on = s.all, nil, on
	return all
}

// StatementsOf returns the statements that the nodes run during do, without those of leases.
func (f *Fixture) StatementsOf(do func()) []string {
	f.statements.set(true)
	do()
	return f.statements.set(false)
}

// SQL returns a connection that bypasses the store.
func (f *Fixture) SQL() *sql.DB {
	f.Helper()
	f.observer.mu.Lock()
	defer f.observer.mu.Unlock()
	if f.observer.db != nil {
		return f.observer.db
	}
	driver, dsn := "pgx", f.DSN
	if path, ok := strings.CutPrefix(f.DSN, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	f.NoError(err)
	f.Cleanup(func() { db.Close() })
	f.observer.db = db
	return db
}

// Exec runs a statement that bypasses the store, as another version might.
func (f *Fixture) Exec(query string, args ...any) {
	f.Helper()
	_, err := f.SQL().ExecContext(f.Context(), query, args...)
	f.NoError(err)
}

// Int returns the single number that a query returns.
func (f *Fixture) Int(query string, args ...any) (n int) {
	f.Helper()
	f.NoError(f.SQL().QueryRowContext(f.Context(), query, args...).Scan(&n))
	return n
}

// CountRows returns how many rows a table has.
func (f *Fixture) CountRows(table string) int {
	f.Helper()
	return f.Int(`SELECT count(*) FROM ` + table)
}

// CountFailures returns the failed attempts in the counters whose names have the prefix.
func (f *Fixture) CountFailures(prefix string) int {
	f.Helper()
	return f.Int(`SELECT coalesce(sum(hits), 0) FROM throttles WHERE substr(bucket, 1, $1) = $2`, len(prefix), prefix)
}

// Tables returns the names of all tables.
func (f *Fixture) Tables() []string {
	f.Helper()
	tables := `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
	if strings.HasPrefix(f.DSN, "sqlite:") {
		tables = `SELECT name FROM sqlite_master WHERE type = 'table'`
	}
	return f.textRows(tables)
}

// AllRows returns all rows of all tables as text, each after its table's name.
func (f *Fixture) AllRows() (all []string) {
	f.Helper()
	for _, table := range f.Tables() {
		for _, row := range f.textRows(`SELECT * FROM "` + table + `"`) {
			all = append(all, table+": "+row)
		}
	}
	slices.Sort(all) // after an update PostgreSQL may return rows in another order
	return all
}

// RowsWithoutNodes is AllRows without the table nodes, whose rows change without a request.
func (f *Fixture) RowsWithoutNodes() []string {
	f.Helper()
	return slices.DeleteFunc(f.AllRows(), func(row string) bool { return strings.HasPrefix(row, "nodes: ") })
}

// textRows returns each row of the result as text. It converts bytes to characters.
func (f *Fixture) textRows(query string) (all []string) {
	f.Helper()
	rows, err := f.SQL().QueryContext(f.Context(), query)
	f.NoError(err)
	defer rows.Close()
	names, err := rows.Columns()
	f.NoError(err)
	for rows.Next() {
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(any)
		}
		f.NoError(rows.Scan(values...))
		var text []string
		for _, v := range values {
			switch v := (*v.(*any)).(type) {
			case []byte:
				text = append(text, string(v))
			default:
				text = append(text, fmt.Sprint(v))
			}
		}
		all = append(all, strings.Join(text, " "))
	}
	f.NoError(rows.Err())
	return all
}

// RowsWith returns the rows that contain one of the words, ignoring case.
func RowsWith(rows []string, words ...string) (found []string) {
	for _, row := range rows {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(row), strings.ToLower(word)) }) {
			found = append(found, row)
		}
	}
	return found
}

// WantNoDeadlocks stops the nodes and fails if PostgreSQL has resolved a deadlock.
// SQLite has one writer at a time, so it has no deadlocks.
func (f *Fixture) WantNoDeadlocks() {
	f.Helper()
	if f.DB.Engine() == "sqlite" {
		return
	}
	for _, stop := range f.stop {
		stop() // connections report their deadlocks when they are closed
	}
	f.SQL().Close()
	observer, err := sql.Open("pgx", f.DSN)
	f.NoError(err)
	defer observer.Close()
	var n int
	for others := 1; others > 0; {
		f.NoError(observer.QueryRowContext(f.Context(), `SELECT numbackends - 1, deadlocks FROM pg_stat_database
			WHERE datname = current_database()`).Scan(&others, &n))
	}
	if n > 0 {
		f.Errorf("PostgreSQL has resolved %d deadlocks", n)
	}
}

// CountWaiting returns how many connections to PostgreSQL wait for a lock.
func (f *Fixture) CountWaiting() int {
	f.Helper()
	return f.Int(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// WaitFor returns when n connections to PostgreSQL wait for locks, or the channel, unless nil, is
// closed.
func (f *Fixture) WaitFor(n int, stop <-chan struct{}) {
	f.Helper()
	for f.CountWaiting() < n {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// WhileLocked calls lock in a transaction on PostgreSQL, and then do before the transaction ends. do
// gets the method WaitFor.
func (f *Fixture) WhileLocked(lock func(*store.Tx) error, do func(waitFor func(n int, stop <-chan struct{}))) {
	f.Helper()
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		err := lock(tx)
		if err == nil {
			do(f.WaitFor)
		}
		return err
	})
	f.NoError(err)
}

// WhileTrailLocked is WhileLocked with the lock on the trail of a tenant. A change takes this lock
// after its others, except that on the position of changes, so it waits when it has written nearly
// everything.
func (f *Fixture) WhileTrailLocked(tenantID string, do func(waitFor func(n int, stop <-chan struct{}))) {
	f.Helper()
	tx, err := f.SQL().BeginTx(f.Context(), nil)
	f.NoError(err)
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	_, err = tx.ExecContext(f.Context(), `UPDATE audit_chains SET last = last WHERE tenant_id = $1`, tenantID)
	f.NoError(err)
	do(f.WaitFor)
	f.NoError(tx.Commit())
}
