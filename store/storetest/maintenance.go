package storetest

import (
	"time"

	"github.com/doorward/doorward/store"
)

func maintenance(f *fixture) {
	ctx := f.Context()
	changed := []store.Change{{Kind: store.ChangeMaintenance}}
	equal(f, f.value(f.Read().Maintenance(ctx)), store.Maintenance{})

	on := store.Maintenance{On: true, Since: f.clock.read(), Reason: "We move."}
	equal(f, f.changesOf(func(tx *store.Tx) { noError(f, tx.StartMaintenance(ctx, "We move.")) }), changed)
	equal(f, f.value(f.Read().Maintenance(ctx)), on)
	vitals, err := f.Read().Vitals(ctx, f.clock.read())
	noError(f, err)
	equal(f, vitals.Paused, 1)

	f.clock.move(time.Minute) // another reason doesn't begin it again
	f.write(func(tx *store.Tx) { noError(f, tx.StartMaintenance(ctx, "")) })
	on.Reason = ""
	equal(f, f.value(f.Read().Maintenance(ctx)), on)

	equal(f, f.changesOf(func(tx *store.Tx) { f.wantChange(tx.EndMaintenance(ctx)) }), changed)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.EndMaintenance(ctx)) })
	equal(f, f.value(f.Read().Maintenance(ctx)), store.Maintenance{})
}
