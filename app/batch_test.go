package app_test

import (
	"testing"

	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// InBatches goes on as long as a transaction uses up its limit, each time in another one, and
// keeps what was done when a later one fails.
func TestInBatches(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		left, ran := int64(1200), map[*store.Tx]int64{}
		f.NoError(f.Node(0).Access.InBatches(f.Context(), func(tx *store.Tx, limit int) (int64, error) {
			n := min(left, int64(limit))
			left -= n
			ran[tx] = n
			return n, nil
		}))
		if left != 0 || len(ran) != 3 {
			t.Errorf("%d rows are left after %d transactions, want none after 3", left, len(ran))
		}
	})
}
