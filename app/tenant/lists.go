package tenant

import (
	"context"

	"github.com/doorward/doorward/store"
)

// foldBatch bounds a transaction: SQLite has only one writer.
const foldBatch = 200

// FoldLists makes people, invitations, API keys and tenants searchable that were written by a
// version without the columns for searching. There are such rows only after an upgrade.
func (t *Tenants) FoldLists(ctx context.Context) error {
	for {
		var found int // in the list with the most such rows
		err := t.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			found, err = tx.FoldLists(ctx, foldBatch)
			return err
		})
		if err != nil || found < foldBatch {
			return err
		}
	}
}
