package storetest

import (
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// addressesOfClients: those that are old are found in order, and blanked unless they have been written again.
func addressesOfClients(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	old := []string{f.session(ann).ID, f.session(ann).ID}
	slices.Sort(old)
	used := f.apiKey(ann, "Reports")
	until := f.clock.read()
	f.clock.move(time.Second)
	young := f.session(ann)
	f.exec(`UPDATE sessions SET ip = '192.0.2.7'`)
	f.exec(`UPDATE api_keys SET last_used_at = $1, last_used_ip = '192.0.2.7'`, until.UnixMicro())

	read := f.Read()
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfSession, "", until, 9)), old)
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfSession, "", until, 1)), old[:1])
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfSession, old[0], until, 9)), old[1:])
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfKey, "", until, 9)), []string{used.ID})
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfKey, "", until.Add(-1), 9)), []string(nil))
	f.write(func(tx *store.Tx) {
		noError(f, tx.ForgetAddresses(ctx, store.AddressOfSession, append(old[:1:1], young.ID), until))
		noError(f, tx.ForgetAddresses(ctx, store.AddressOfKey, []string{used.ID}, until.Add(-time.Second)))
	})
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfSession, "", young.CreatedAt, 9)), slices.Sorted(slices.Values([]string{old[1], young.ID})))
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfKey, "", until, 9)), []string{used.ID})
	f.write(func(tx *store.Tx) { noError(f, tx.ForgetAddresses(ctx, store.AddressOfKey, []string{used.ID}, until)) })
	equal(f, f.value(read.OldAddresses(ctx, store.AddressOfKey, "", until, 9)), []string(nil))
}
