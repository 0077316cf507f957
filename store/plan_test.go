package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// searches are filters of a trail, each with the index that finds its rows.
var searches = []struct {
	filter store.EventFilter
	index  string
}{
	{store.EventFilter{}, "events_page"},
	{store.EventFilter{Request: "req_1"}, "events_by_request"},
	{store.EventFilter{Target: "usr_1"}, "events_by_target"},
	{store.EventFilter{Actor: "usr_1"}, "events_by_actor"},
	{store.EventFilter{Actor: "ann@acme.example"}, "events_by_address"},
	{store.EventFilter{IP: "192.0.2.7"}, "events_by_ip"},
	{store.EventFilter{Operator: true}, "events_by_operator"},
	{store.EventFilter{SystemUser: "root@db1", Action: doorward.UserRole}, "events_by_operator"},
	{store.EventFilter{Action: doorward.UserRole}, "events_by_action"},
	{store.EventFilter{Outcome: doorward.Refused}, "events_refused"},
	{store.EventFilter{Actor: "usr_1", Action: doorward.UserRole, Outcome: doorward.Done}, "events_by_actor"},
	{store.EventFilter{Target: "usr_1", Request: "req_1", Actor: "usr_2", Action: doorward.UserRole, Outcome: doorward.Refused}, "events_by_request"},
}

// bothEnds is a plan of SQLite that begins and ends at a number.
var bothEnds = regexp.MustCompile(`SEARCH events .*seq\)?>.*seq\)?<`)

// Each search in a trail reads rows by an index, within a range of numbers and in their order,
// also when PostgreSQL has planned the statement so often that it may keep a generic plan.
func TestSearchesUseAnIndex(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			write, _ := store.Pools(db)
			fillTrail(t, write)
			if engine == "postgres" { // no operator analyses SQLite
				ok(t, execute(t, write, "ANALYZE"))
			}
			search, args := store.SearchStatement()
			if plan := planOf(t, engine, write, search, args); !strings.Contains(plan, "tenant_id=? AND seq=?") && !strings.Contains(plan, "seq = ") {
				t.Errorf("reads more than one event in each step:\n%s", plan)
			}
			for _, s := range searches {
				first, after, total, args := store.EventStatements(engine, s.filter)
				for name, query := range map[string]string{"first": first, "after": after, "total": total} {
					if name == "total" && s.index == "events_page" {
						continue // how it counts doesn't matter: it stops at a limit
					}
					plan := planOf(t, engine, write, query, valuesOf(name, args))
					scans := strings.Contains(plan, "SCAN events") || strings.Contains(plan, "Seq Scan")
					// PostgreSQL chooses by its statistics. SQLite, without any, must use this index.
					other := engine == "sqlite" && name != "total" && !strings.Contains(plan, s.index)
					if scans || other {
						t.Errorf("%+v: does not use %s:\n%s\n%s", s.filter, s.index, query, plan)
					}
					if name != "total" && (strings.Contains(plan, "Sort Key") || strings.Contains(plan, "TEMP B-TREE")) {
						t.Errorf("%+v: sorts events that an index has in order:\n%s\n%s", s.filter, query, plan)
					}
					if engine == "sqlite" && !bothEnds.MatchString(plan) {
						t.Errorf("%+v: reads events outside of the range of numbers:\n%s\n%s", s.filter, query, plan)
					}
				}
			}
		})
	}
}

// Counting what somebody has done by day reads the newest of that person's events alone, by an index, in its order and
// within a range of numbers: the limit bounds what is read, however large the trail is.
func TestDaysUseAnIndex(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			write, _ := store.Pools(db)
			fillTrail(t, write)
			if engine == "postgres" {
				ok(t, execute(t, write, "ANALYZE"))
			}
			for index, filter := range map[string]store.EventFilter{"events_by_actor": {Actor: "usr_1"}, "events_by_target": {Target: "ses_1"}} {
				query, args := store.DaysStatement(engine, filter)
				plan := planOf(t, engine, write, query, args)
				isSQLite := engine == "sqlite"
				if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE FOR ORDER") || isSQLite && !bothEnds.MatchString(plan) {
					t.Errorf("does not read %s in order, within a range of numbers:\n%s\n%s", index, query, plan)
				}
			}
		})
	}
}

// searchesOfAll are filters of all trails, each with the index that finds its rows.
var searchesOfAll = []struct {
	filter store.EventFilter
	index  string
}{
	{store.EventFilter{}, "events_by_time"},
	{store.EventFilter{Action: doorward.UserRole}, "events_by_time"},
	{store.EventFilter{Target: "usr_1"}, "events_target"},
	{store.EventFilter{Actor: "usr_1"}, "events_actor"},
	{store.EventFilter{IP: "192.0.2.7"}, "events_of_ip"},
	{store.EventFilter{Operator: true}, "events_of_operator"},
	{store.EventFilter{SystemUser: "root@db1", IP: "192.0.2.7"}, "events_of_operator"},
	{store.EventFilter{Target: "usr_1", Actor: "usr_2", IP: "192.0.2.7"}, "events_target"},
}

// Each search in all trails reads rows by an index and in their order.
func TestSearchesInAllTrailsUseAnIndex(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			write, _ := store.Pools(db)
			fillTrail(t, write)
			if engine == "postgres" {
				ok(t, execute(t, write, "ANALYZE"))
			}
			for _, s := range searchesOfAll {
				first, after, _, args := store.EveryTrailStatements(s.filter)
				for query, values := range map[string][]any{first: append(args[:11:11], 51), after: append(args[:11:11], int64(500), "evt_500", 51)} {
					plan := planOf(t, engine, write, query, values)
					isSorted := !strings.Contains(plan, "Sort Key") && !strings.Contains(plan, "TEMP B-TREE")
					if !strings.Contains(plan, s.index) || !isSorted {
						t.Errorf("%+v: does not read %s in order:\n%s\n%s", s.filter, s.index, query, plan)
					}
				}
			}
		})
	}
}

// Each order of people and invitations reads the rows of a page by an index: sorting a
// hundred thousand rows would take most of a second.
func TestListsAreSortedByAnIndex(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			write, _ := store.Pools(db)
			insertPeople(t, db, 5000)
			insertInvitations(t, db, 5000)
			for _, s := range store.SortedStatements("tnt_a") {
				plan := planOf(t, engine, write, s.Query, s.Args)
				if strings.Contains(plan, "TEMP B-TREE FOR ORDER") || strings.Contains(plan, "Sort Key") {
					t.Errorf("%s sorts rows:\n%s", s.Name, plan)
				}
			}
		})
	}
}

// valuesOf are the arguments of a statement: those of the search, the position, the limit.
func valuesOf(name string, args []any) []any {
	switch name {
	case "first":
		return append(args[:14:14], 51)
	case "after":
		return append(args[:14:14], 500, 51)
	}
	return args
}

// fillTrail writes a trail by SQL, so that PostgreSQL has something to plan for.
func fillTrail(t *testing.T, db *sql.DB) {
	t.Helper()
	series := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)`
	ok(t, execute(t, db, series+` INSERT INTO events (id, at, action, outcome, actor_type, actor_id, actor_email, target_type, target_id, tenant_id, ip, request_id, changes, seq)
SELECT 'evt_' || i, i, CASE WHEN i % 500 = 0 THEN 'user.role' ELSE 'session.open' END, CASE WHEN i % 100 = 0 THEN 'refused' ELSE 'done' END,
  CASE WHEN i % 200 = 1 THEN 'operator' ELSE 'user' END, 'usr_' || (i % 500), 'p' || (i % 500) || '@acme.example', 'session', 'ses_' || i, 'tnt_1', '192.0.2.' || (i % 200), 'req_' || i, '[]', i FROM n`))
}

func execute(t *testing.T, db *sql.DB, statement string) error {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	return err
}

// planOf returns the plan of a statement; on PostgreSQL that of its tenth execution.
func planOf(t *testing.T, engine string, db *sql.DB, query string, args []any) string {
	t.Helper()
	ctx := t.Context()
	conn, err := db.Conn(ctx)
	ok(t, err)
	defer conn.Close()
	if engine == "sqlite" {
		return lines(ctx, t, conn, "EXPLAIN QUERY PLAN "+query, args...)
	}
	_, _ = conn.ExecContext(ctx, "DEALLOCATE search") // of an earlier call on this connection
	_, err = conn.ExecContext(ctx, "PREPARE search AS "+query)
	ok(t, err)
	var values []string
	for _, a := range args {
		values = append(values, "'"+fmt.Sprint(a)+"'")
	}
	plan := ""
	for range 10 {
		plan = lines(ctx, t, conn, "EXPLAIN EXECUTE search("+strings.Join(values, ", ")+")")
	}
	return plan
}

// lines returns the last column of all rows, one a line.
func lines(ctx context.Context, t *testing.T, conn *sql.Conn, query string, args ...any) string {
	t.Helper()
	rows, err := conn.QueryContext(ctx, query, args...)
	ok(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	ok(t, err)
	var all strings.Builder
	for rows.Next() {
		cells := make([]any, len(names))
		for i := range cells {
			cells[i] = new(any)
		}
		ok(t, rows.Scan(cells...))
		fmt.Fprintln(&all, *cells[len(cells)-1].(*any))
	}
	ok(t, rows.Err())
	return all.String()
}
