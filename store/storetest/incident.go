package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func incidents(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(zeta, "bob@zeta.example", doorward.RoleOwner)
	equal(f, f.value(f.Read().TenantsAfter(ctx, "", 1)), []string{acme.ID})
	equal(f, f.value(f.Read().TenantsAfter(ctx, acme.ID, 9)), []string{zeta.ID})
	equal(f, f.value(f.Read().TenantsAfter(ctx, zeta.ID, 9)), []string(nil))
	sessionsSince(f, acme, ann, bob)
	forgetPasswords(f, acme, ann, bob)
}

func sessionsSince(f *fixture, acme doorward.Tenant, ann, bob doorward.User) {
	ctx, life := f.Context(), store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: time.Hour, Absolute: time.Hour}}
	before := f.session(ann)
	f.clock.move(time.Minute)
	since := f.clock.read()
	one, other, elsewhere := f.session(ann), f.session(ann), f.session(bob)
	for _, want := range [][2]int64{{1, 1}, {1, 1}, {0, 0}} {
		f.write(func(tx *store.Tx) {
			deleted, live, err := tx.DeleteSessionsSince(ctx, life, acme.ID, since, 1)
			noError(f, err)
			equal(f, [2]int64{deleted, live}, want)
		})
	}
	equal(f, f.live(before, one, other, elsewhere), []string{before.ID, elsewhere.ID})
	equal(f, f.changesOf(func(tx *store.Tx) {
		_, _, err := tx.DeleteSessionsSince(ctx, life, acme.ID, since, 1)
		noError(f, err)
	}), []store.Change{{Kind: store.ChangeTenant, Subject: acme.ID}})

	f.clock.move(2 * time.Hour) // an expired one isn't counted
	f.write(func(tx *store.Tx) {
		deleted, live, err := tx.DeleteSessionsSince(ctx, life, acme.ID, time.Time{}, 9)
		noError(f, err)
		equal(f, [2]int64{deleted, live}, [2]int64{1, 0})
	})
}

func forgetPasswords(f *fixture, acme doorward.Tenant, ann, bob doorward.User) {
	ctx := f.Context()
	ids := func(all []doorward.Account, err error) (ids []string) {
		noError(f, err)
		for _, a := range all {
			ids = append(ids, a.ID)
		}
		return ids
	}
	equal(f, ids(f.Read().AccountsWithPassword(ctx, "", "", 9)), []string{ann.ID, bob.ID})
	equal(f, ids(f.Read().AccountsWithPassword(ctx, "", "", 1)), []string{ann.ID})
	equal(f, ids(f.Read().AccountsWithPassword(ctx, "", ann.ID, 9)), []string{bob.ID})
	equal(f, ids(f.Read().AccountsWithPassword(ctx, acme.ID, "", 9)), []string{ann.ID})
	equal(f, ids(f.Read().AccountsWithPassword(ctx, acme.ID, ann.ID, 9)), []string(nil))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ForgetPassword(ctx, ann.ID))
		f.wantNoChange(tx.ForgetPassword(ctx, ann.ID))
		f.wantNoChange(tx.ForgetPassword(ctx, "usr_none"))
	})
	equal(f, ids(f.Read().AccountsWithPassword(ctx, "", "", 9)), []string{bob.ID})
	account, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	equal(f, [2]string{account.PasswordHash, account.ManagedBy}, [2]string{"", ""})
}
