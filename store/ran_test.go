package store_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// TestMain demands that each statement of package store has run on both databases, with the types
// of parameters and columns that its method has. Those of store/lease run in that package's tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && runsContract() {
		code = reportNotRun()
	}
	os.Exit(code)
}

// runsContract reports whether TestContract and what it depends on run, on both databases. make
// test skips tests of races by name: these aren't needed.
func runsContract() bool {
	for _, name := range []string{"test.run", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

// ofMigrations run with each database of a test, on the migrator's own connection, which isn't watched.
var ofMigrations = []string{"sqlMigrationState", "sqlRecordMigration", "sqlFinishMigration"}

func reportNotRun() (code int) {
	s := readSource()
	for engine := range storetest.Engines {
		needed := store.ListsOf(engine)
		for _, name := range s.inStore {
			if query, is := s.statements[name]; is && !slices.Contains(ofMigrations, name) {
				needed = append(needed, query)
			}
		}
		slices.Sort(needed)
		for _, query := range needed {
			if !storetest.HasRun(engine, query) {
				code = 1
				fmt.Printf("no test has run this statement on %s; add it to a case of storetest:\n%s\n\n", engine, query)
			}
		}
	}
	return code
}
