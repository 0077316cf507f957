package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// smallTables have few rows whatever the size of an installation, or only rows of work under way.
var smallTables = []string{
	"attempts", "backups", "challenges", "change_position", "due_roles", "erasures", "feed_state", "feed_trims", "forgotten_passwords", "goose_db_version", "inbox",
	"maintenance", "master_keys", "models", "nodes", "oldest_binary", "operator_keys", "queue_pauses", "service_keys", "shared_clock", "signing_keys", "turns",
	"webhooks",
}

// perTenant are tables with few rows for each tenant, read by statements about all tenants.
var perTenant = []string{"audit_chains", "factor_demands", "feed_chains", "logos", "policies", "roles", "sso_policies", "tenants"}

// mayScan are the statements that read another table from its beginning, by the reason.
var mayScan = map[string][]string{
	"what a clock that was ahead has written is corrected once": {
		"sqlClampAPIKeyUses", "sqlClampAPIKeys", "sqlClampCalls", "sqlClampConnectionKeys", "sqlClampConnectionSecrets", "sqlClampConnections", "sqlClampDiscoveries", "sqlClampDomains", "sqlClampFactorCodes", "sqlClampFactorWords", "sqlClampForgotten", "sqlClampIdentities", "sqlClampRememberedBrowsers", "sqlClampResets", "sqlClampSCIMSecrets", "sqlClampSessions", "sqlClampSetupLinks", "sqlClampThrottles",
	},
	"all rows change after a restore, or when all sessions are ended": {
		"sqlDeleteAllCalls", "sqlDeleteAllSessions", "sqlDisableAllAPIKeys", "sqlDisableAllConnections", "sqlEndAllDevices", "sqlEndAllFactorCodes", "sqlEndAllFactorWords", "sqlEndAllSetupLinks", "sqlEndDeviceCounters", "sqlExpireAllResets",
		"sqlRetireAllTokens", "sqlSkipGenerations",
	},
	"the caller needs all rows":                             {"sqlChainIDs", "sqlEachLiveAPIKey", "sqlCountFactors", "sqlCountWithPassword", "sqlHeldDomains"},
	"an index on the last use would be written by each use": {"sqlOverdueSessions"},
	"a tenant is destroyed once":                            {"sqlDeleteResends"},
}

func mayReadWhole(name string, read wholeRead) bool {
	for _, names := range mayScan {
		if slices.Contains(names, name) {
			return true
		}
	}
	return slices.Contains(smallTables, read.table) || slices.Contains(perTenant, read.table)
}

// A statement that reads a whole table takes longer the larger an installation is, which the
// few rows of tests don't show. So this test reads the plans of both databases; of PostgreSQL
// the generic ones.
func TestStatementsReadNoTableWhole(t *testing.T) {
	s := readSource()
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			write, _ := store.Pools(storetest.Migrated(t, dsn(t), time.Now))
			conn, err := write.Conn(t.Context())
			ok(t, err)
			defer conn.Close()
			skipUnreadablePlans(t, engine, conn)
			partial, tables := partialIndexes(t, engine, conn), tablesOf(t, engine, conn)
			for _, name := range slices.Sorted(maps.Keys(s.statements)) {
				query := s.statements[name]
				for _, read := range wholeReads(engine, query, tables, genericPlan(t, engine, conn, query)) {
					if !slices.Contains(partial, read.index) && !mayReadWhole(name, read) {
						t.Errorf("%s reads all of %s %s:\n%s", name, read.table, read.index, query)
					}
				}
			}
		})
	}
}

// skipUnreadablePlans skips the test from PostgreSQL 17 on, which writes plans in another way: a minimum or
// maximum has no condition of the index, and tables that are small are read whole in spite of
// enable_seqscan. The plans of 15 and 16 say which indexes a statement can use.
func skipUnreadablePlans(t *testing.T, engine string, conn *sql.Conn) {
	t.Helper()
	if engine != "postgres" {
		return
	}
	var version int
	ok(t, conn.QueryRowContext(t.Context(), `SELECT current_setting('server_version_num')::int / 10000`).Scan(&version))
	if version > 16 {
		t.Skipf("plans are read as PostgreSQL 15 and 16 write them, and this is %d", version)
	}
}

// partialIndexes are the names of the indexes that have only some rows of their table.
func partialIndexes(t *testing.T, engine string, conn *sql.Conn) []string {
	t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'`
	if engine == "postgres" {
		query = `SELECT indexname FROM pg_indexes WHERE indexdef LIKE '% WHERE %'`
	}
	return strings.Fields(lines(t.Context(), t, conn, query))
}

func tablesOf(t *testing.T, engine string, conn *sql.Conn) []string {
	t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'table'`
	if engine == "postgres" {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`
	}
	return strings.Fields(lines(t.Context(), t, conn, query))
}

// genericPlan returns the plan of a statement that PostgreSQL uses for all values.
func genericPlan(t *testing.T, engine string, conn *sql.Conn, query string) string {
	t.Helper()
	n := 0
	for _, p := range parameter.FindAllStringSubmatch(query, -1) {
		var number int
		_, err := fmt.Sscan(p[1], &number)
		ok(t, err)
		n = max(n, number)
	}
	if engine == "sqlite" {
		return lines(t.Context(), t, conn, "EXPLAIN QUERY PLAN "+query, make([]any, n)...)
	}
	// A Seq Scan is left only where no index serves: for the few rows of a test it would be chosen
	// everywhere.
	for _, set := range []string{"SET plan_cache_mode = force_generic_plan", "SET enable_seqscan = off", "PREPARE planned AS " + query} {
		_, err := conn.ExecContext(context.Background(), set)
		ok(t, err)
	}
	explain := "EXPLAIN EXECUTE planned"
	if n > 0 {
		explain += "(NULL" + strings.Repeat(", NULL", n-1) + ")"
	}
	plan := lines(t.Context(), t, conn, explain)
	_, err := conn.ExecContext(context.Background(), "DEALLOCATE planned")
	ok(t, err)
	return plan
}

// wholeRead is a table that a plan reads from its beginning, in the order of an index if that is
// named.
type wholeRead struct{ table, index string }

var (
	sqliteScan   = regexp.MustCompile(`^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?`)
	postgresScan = regexp.MustCompile(`(?:Seq Scan|Index Scan(?: Backward)? using (\w+)|Index Only Scan(?: Backward)? using (\w+)) on (\w+)`)
)

// wholeReads returns the whole reads in a plan.
func wholeReads(engine, query string, tables []string, plan string) (all []wholeRead) {
	if engine == "sqlite" {
		for line := range strings.Lines(plan) {
			if m := sqliteScan.FindStringSubmatch(line); m != nil {
				if table := tableOf(query, m[1]); slices.Contains(tables, table) {
					all = append(all, wholeRead{table, m[2]})
				}
			}
		}
		return all
	}
	nodes := strings.Split(plan, "->")
	for _, node := range nodes {
		if m := postgresScan.FindStringSubmatch(node); m != nil && !strings.Contains(node, "Index Cond") {
			all = append(all, wholeRead{m[3], m[1] + m[2]})
		}
	}
	return all
}

var tableAndAlias = regexp.MustCompile(`(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?`)

// tableOf is the table that has the name, perhaps an alias, in a statement.
func tableOf(query, name string) string {
	for _, m := range tableAndAlias.FindAllStringSubmatch(query, -1) {
		if m[2] == name {
			return m[1]
		}
	}
	return name
}
