package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

func incidents(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(zeta, "bob@zeta.example", doorward.RoleOwner)
	equal(f, f.value(f.Read().CountTenants(ctx)), 2)
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
	ctx, life := f.Context(), store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: time.Hour, Absolute: time.Hour}}
	equal(f, f.value(f.Read().AccountsWithPassword(ctx, "", "", 9)), []string{ann.ID, bob.ID})
	equal(f, f.value(f.Read().AccountsWithPassword(ctx, "", "", 1)), []string{ann.ID})
	equal(f, f.value(f.Read().AccountsWithPassword(ctx, "", ann.ID, 9)), []string{bob.ID})
	equal(f, f.value(f.Read().AccountsWithPassword(ctx, acme.ID, "", 9)), []string{ann.ID})
	equal(f, f.value(f.Read().AccountsWithPassword(ctx, acme.ID, ann.ID, 9)), []string(nil))
	equal(f, f.value(f.Read().CountWithPassword(ctx, "")), 2)
	equal(f, f.value(f.Read().CountWithPassword(ctx, acme.ID)), 1)

	before, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	f.leaveOpened(ann, "ann")
	f.leaveOpened(bob, "bob")
	one, elsewhere := f.session(ann), f.session(bob)
	var done store.Forgotten
	equal(f, f.changesOf(func(tx *store.Tx) {
		done, err = tx.ForgetPasswords(ctx, life, []string{"usr_none", ann.ID})
		noError(f, err)
	}), []store.Change{{Kind: store.ChangeUser, Subject: ann.ID}})
	equal(f, done, store.Forgotten{UserIDs: []string{ann.ID}, Sessions: map[string]map[string]int64{ann.ID: {acme.ID: 1}}})
	equal(f, f.live(one, elsewhere), []string{elsewhere.ID})
	after, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	equal(f, [2]string{after.PasswordHash, after.ManagedBy}, [2]string{"", ""})
	equal(f, after.Generation, before.Generation+1)
	f.wantOpened(ann, "ann", 0)
	f.wantOpened(bob, "bob", 1)
	equal(f, f.value(f.Read().AccountsWithPassword(ctx, "", "", 9)), []string{bob.ID})
	f.takeForgotten(life, ann, bob)
}

// leaveOpened leaves what somebody with the password of an account may have opened.
func (f *fixture) leaveOpened(u doorward.User, name string) {
	f.write(func(tx *store.Tx) {
		ctx := f.Context()
		f.wantChange(tx.InsertDevice(ctx, []byte("browser of "+name), u.ID, 9, time.Time{}))
		noError(f, tx.InsertReset(ctx, store.Reset{ID: "rst_" + name, UserID: u.ID, CreatedAt: tx.Now, ExpiresAt: tx.Now.Add(time.Hour)}))
		_, err := tx.HitThrottle(ctx, "devices:"+u.ID, time.Hour)
		noError(f, err)
	})
	f.factor(doorward.Account{ID: u.ID}, doorward.TOTP)
}

// wantOpened fails unless each kind of what leaveOpened has left is there n times.
func (f *fixture) wantOpened(u doorward.User, name string, n int) {
	for _, query := range []string{
		`SELECT count(*) FROM devices WHERE user_id = '` + u.ID + `'`,
		`SELECT count(*) FROM factors WHERE user_id = '` + u.ID + `'`,
		`SELECT count(*) FROM resets WHERE id = 'rst_` + name + `' AND expires_at > created_at`,
		`SELECT count(*) FROM throttles WHERE bucket = 'devices:` + u.ID + `'`,
	} {
		got, err := rows.One(f.Context(), f.Read().Conn, func(n *int) []any { return []any{n} }, query)
		noError(f, err)
		equal(f, got, n)
	}
}

// takeForgotten: each account is taken once, in batches or alone, and not at all if it was erased.
func (f *fixture) takeForgotten(life store.SessionLifetime, ann, bob doorward.User) {
	ctx := f.Context()
	forget := func(tx *store.Tx, ids ...string) {
		_, err := tx.ForgetPasswords(ctx, life, ids)
		noError(f, err)
	}
	f.write(func(tx *store.Tx) { forget(tx, bob.ID, ann.ID) })
	equal(f, f.value(f.Read().CountForgotten(ctx)), 2)
	for _, want := range [][]string{{ann.ID}, {bob.ID}, nil} {
		f.write(func(tx *store.Tx) { equal(f, f.value(tx.TakeForgotten(ctx, 1)), want) })
	}
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SetPassword(ctx, ann.ID, "", "hash"))
		forget(tx, ann.ID)
		f.wantChange(tx.TakeForgottenAccount(ctx, ann.ID))
		f.wantNoChange(tx.TakeForgottenAccount(ctx, ann.ID))
	})
	equal(f, f.value(f.Read().CountForgotten(ctx)), 0)
}
