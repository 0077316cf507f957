package app_test

import (
	"testing"

	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// InBatches begins another transaction as long as the last one has used up its limit.
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
