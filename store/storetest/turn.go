package storetest

import (
	"time"

	"github.com/doorward/doorward/store"
)

// turnsOfSweeps: of two nodes that have read the same, one takes a turn.
func turnsOfSweeps(f *fixture) {
	ctx := f.Context()
	equal(f, f.value(f.Read().Turns(ctx)), map[string]time.Time{})
	first, second := f.clock.read(), f.clock.read().Add(time.Minute)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.TakeTurn(ctx, "mails", time.Time{}, first))
		f.wantNoChange(tx.TakeTurn(ctx, "mails", time.Time{}, second))
		f.wantChange(tx.TakeTurn(ctx, "trails", time.Time{}, first))
		f.wantChange(tx.TakeTurn(ctx, "mails", first, second))
		f.wantNoChange(tx.TakeTurn(ctx, "mails", first, second))
		f.wantNoChange(tx.TakeTurn(ctx, "none", first, second))
	})
	equal(f, f.value(f.Read().Turns(ctx)), map[string]time.Time{"mails": second, "trails": first})
}
