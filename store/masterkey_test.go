package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// TestSealedColumns: each column that the migrations call …_sealed is sealed again when
// the master key is replaced. A forgotten one would be unreadable afterwards.
func TestSealedColumns(t *testing.T) {
	write, _ := store.Pools(storetest.Migrated(t, "sqlite:"+t.TempDir()+"/doorward.db", time.Now))
	// Joined, since storetest.Query returns one value.
	const named = `SELECT coalesce(group_concat(t.name || '.' || c.name), '') FROM sqlite_master t, pragma_table_info(t.name) c
WHERE t.type = 'table' AND substr(c.name, -7) = '_sealed'`
	inSchema := func() []string {
		all := strings.Split(storetest.Query[string](t, write, named), ",")
		slices.Sort(all)
		return all
	}
	listed := slices.Sorted(slices.Values(store.SealedColumns()))
	if diff := cmp.Diff(inSchema(), listed); diff != "" {
		t.Errorf("the schema's sealed columns (-) are not those of sealedColumns (+): add the missing ones\n%s", diff)
	}
	storetest.Exec(t, write, `CREATE TABLE forgotten (id TEXT, seed_sealed BYTEA)`)
	if !slices.Contains(inSchema(), "forgotten.seed_sealed") {
		t.Error("a new sealed column isn't found: this test proves nothing")
	}
}
