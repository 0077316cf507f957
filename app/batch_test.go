package app_test

import (
	"testing"

	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// InBatches begins another transaction as long as the last one changed as many rows as its limit.
func TestInBatches(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		remaining, transactions := int64(1200), map[*store.Tx]bool{}
		f.NoError(f.Node(0).Access.InBatches(f.Context(), func(tx *store.Tx, limit int) (int64, error) {
			n := min(remaining, int64(limit))
			remaining -= n
			transactions[tx] = true
			return n, nil
		}))
		if remaining != 0 || len(transactions) != 3 {
			t.Errorf("%d rows remain after %d transactions, want none after 3", remaining, len(transactions))
		}
	})
}
