package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// knownDevices returns which of the hashes are devices of the address.
func (f *fixture) knownDevices(email string, since time.Time, hashes ...string) (known []string) {
	f.Helper()
	var all [][]byte
	for _, h := range hashes {
		all = append(all, []byte(h))
	}
	found, err := f.Read().KnownDevices(f.Context(), email, all, since)
	noError(f, err)
	for _, d := range found {
		known = append(known, string(d.Hash))
	}
	return known
}

// remember adds a device a minute later, with a limit of two, and reports whether
// it was added.
func (f *fixture) remember(hash, userID string) (remembered bool) {
	f.Helper()
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		var err error
		remembered, err = tx.InsertDevice(f.Context(), []byte(hash), userID, 2, time.Time{})
		noError(f, err)
	})
	return remembered
}

func devices(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	equal(f, f.remember("bob 1", bob.ID), true)
	first := f.clock.read()
	equal(f, f.remember("ann 1", ann.ID), true)
	since := f.clock.read()
	equal(f, f.value(f.Read().DeviceHashes(ctx, bob.ID)), [][]byte{[]byte("bob 1")})

	equal(f, f.knownDevices(ann.Email, since.Add(-time.Microsecond), "ann 1"), []string{"ann 1"})
	equal(f, f.knownDevices(ann.Email, since, "ann 1"), []string(nil))
	equal(f, f.knownDevices(bob.Email, time.Time{}, "ann 1"), []string(nil))
	equal(f, f.knownDevices(ann.Email, time.Time{}, "ann"), []string(nil))
	equal(f, f.knownDevices(ann.Email, time.Time{}), []string(nil))
	equal(f, f.knownDevices(ann.Email, time.Time{}, "a", "b", "c", "ann 1", "d"), []string{"ann 1"})
	equal(f, f.knownDevices(ann.Email, time.Time{}, "a", "b", "c", "d", "ann 1"), []string(nil)) // only four are compared
	found, err := f.Read().KnownDevices(ctx, ann.Email, [][]byte{[]byte("bob 1"), []byte("ann 1"), []byte("ann 1")}, time.Time{})
	equal(f, f.value(found, err), []store.KnownDevice{{Hash: []byte("ann 1"), UserID: ann.ID}})
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, since.Add(-1))), 1)
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, since)), 0)

	f.write(func(tx *store.Tx) {
		equal(f, []any{f.value(tx.DeleteOldDevices(ctx, first, 0)), f.value(tx.DeleteOldDevices(ctx, first, 1))}, []any{int64(0), int64(1)})
	})
	equal(f, f.knownDevices(bob.Email, time.Time{}, "bob 1"), []string(nil))
	equal(f, f.knownDevices(ann.Email, time.Time{}, "ann 1"), []string{"ann 1"})
}

// deviceLimit: a new device replaces the oldest that was never used again; used
// devices stay.
func deviceLimit(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	equal(f, f.remember("bob 1", bob.ID), true)
	known := func() []string { return f.knownDevices(ann.Email, time.Time{}, "1", "2", "3", "4") }
	use := func(hash string) {
		f.write(func(tx *store.Tx) { noError(f, tx.UseDevice(ctx, []byte(hash))) })
	}
	for _, hash := range []string{"1", "2", "3"} {
		equal(f, f.remember(hash, ann.ID), true)
	}
	equal(f, known(), []string{"2", "3"})
	use("2")
	equal(f, f.remember("4", ann.ID), true)
	equal(f, known(), []string{"2", "4"})
	use("4")
	use("4")
	equal(f, f.remember("1", ann.ID), false)
	equal(f, known(), []string{"2", "4"})
	equal(f, f.knownDevices(bob.Email, time.Time{}, "bob 1"), []string{"bob 1"})
	equal(f, f.remember("1", "usr_none"), false)
	f.write(func(tx *store.Tx) { // expired devices don't count
		f.wantChange(tx.InsertDevice(ctx, []byte("1"), ann.ID, 2, f.clock.read()))
	})
	equal(f, known(), []string{"1"})
}

// generations: a device of an earlier generation is unknown and doesn't count
// towards the limit.
func generations(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	known := func() []string { return f.knownDevices(ann.Email, time.Time{}, "1", "2", "3") }
	equal(f, f.remember("bob 1", bob.ID), true)
	equal(f, f.remember("1", ann.ID), true)
	equal(f, f.remember("2", ann.ID), true)
	hit := func() (n int) {
		f.write(func(tx *store.Tx) {
			t, err := tx.HitThrottle(ctx, "devices:"+ann.ID, day)
			noError(f, err)
			n = t.Hits
		})
		return n
	}
	hit()

	f.write(func(tx *store.Tx) { noError(f, tx.RaiseCredentialGeneration(ctx, ann.ID, []byte("2"))) })
	equal(f, known(), []string{"2"})
	equal(f, hit(), 1)
	current, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	equal(f, current.Generation, ann.Generation+1)

	f.write(func(tx *store.Tx) { noError(f, tx.RaiseCredentialGeneration(ctx, ann.ID, []byte("bob 1"))) })
	equal(f, known(), []string(nil))
	equal(f, f.remember("3", ann.ID), true)
	f.write(func(tx *store.Tx) { noError(f, tx.RaiseCredentialGeneration(ctx, ann.ID, nil)) })
	equal(f, known(), []string(nil))
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, time.Time{})), 0)
	equal(f, f.knownDevices(bob.Email, time.Time{}, "bob 1"), []string{"bob 1"})
}

// trustAfterARestore: no browser is known, later ones are remembered, and no
// generation is used twice.
func trustAfterARestore(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser)
	equal(f, f.remember("ann 1", ann.ID), true)
	equal(f, f.remember("bob 1", bob.ID), true)
	f.write(func(tx *store.Tx) {
		_, err := tx.HitThrottle(ctx, "devices:"+ann.ID, time.Hour)
		noError(f, err)
	})
	before, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	f.write(func(tx *store.Tx) { noError(f, tx.EndAllTrust(ctx)) })
	equal(f, f.knownDevices(ann.Email, time.Time{}, "ann 1"), []string(nil))
	equal(f, f.knownDevices(bob.Email, time.Time{}, "bob 1"), []string(nil))
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, time.Time{})), 0)
	after, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	if after.Generation < before.Generation+1000 {
		f.Errorf("the generation is %d and was %d: password changes since the backup have used the next ones", after.Generation, before.Generation)
	}
	f.write(func(tx *store.Tx) {
		t, err := tx.HitThrottle(ctx, "devices:"+ann.ID, time.Hour)
		equal(f, f.value(t.Hits, err), 1)
	})
	equal(f, f.remember("ann 2", ann.ID), true)
	equal(f, f.knownDevices(ann.Email, time.Time{}, "ann 2"), []string{"ann 2"})
}
