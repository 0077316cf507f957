package tenant

import (
	"context"

	"github.com/doorward/doorward/store"
)

// foldBatch bounds a transaction: SQLite has only one writer.
const foldBatch = 200

// FoldLists makes the rows of lists searchable that an earlier version has written: people,
// invitations, API keys, tenants. There are none but after an upgrade.
func (t *Tenants) FoldLists(ctx context.Context) error {
	for {
		var most int
		err := t.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			most, err = tx.FoldLists(ctx, foldBatch)
			return err
		})
		if err != nil || most < foldBatch {
			return err
		}
	}
}
