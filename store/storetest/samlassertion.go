package storetest

import (
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// samlAssertions: an assertion is new once, and what it says is used once, by its connection and in time. It is known until
// it ends, or its connection is deleted.
func samlAssertions(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	con, other := f.active(acme, "Okta"), f.active(acme, "Entra")
	assertion := func(name string) store.SAMLAssertion {
		return store.SAMLAssertion{
			Hash: []byte(name), ConnectionID: con.ID, Said: []byte("sealed " + name), WaitsUntil: f.clock.read().Add(time.Minute), EndsAt: f.clock.read().Add(time.Hour),
		}
	}
	use := func(connectionID, name string) (said []byte, err error) {
		f.write(func(tx *store.Tx) { said, err = tx.UseSAMLAssertion(ctx, connectionID, []byte(name)) })
		return said, err
	}
	wantNone := func(connectionID, name string) {
		f.Helper()
		if said, err := use(connectionID, name); !errors.Is(err, store.ErrNone) || said != nil {
			f.Errorf("%s of %s is used: %q, %v", name, connectionID, said, err)
		}
	}
	first, late := assertion("first"), assertion("late")
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.InsertSAMLAssertion(ctx, first))
		f.wantNoChange(tx.InsertSAMLAssertion(ctx, first))
		f.wantChange(tx.InsertSAMLAssertion(ctx, late))
		f.wantNoChange(tx.InsertSAMLAssertion(ctx, store.SAMLAssertion{Hash: []byte("none"), ConnectionID: "con_none", Said: []byte("sealed")}))
	})
	wantNone(other.ID, "first")
	wantNone(con.ID, "another")
	f.write(func(tx *store.Tx) {
		equal(f, string(f.value(tx.SAMLAssertion(ctx, con.ID, first.Hash)).([]byte)), "sealed first")
		_, err := tx.SAMLAssertion(ctx, other.ID, first.Hash)
		equal(f, errors.Is(err, store.ErrNone), true)
	})
	said, err := use(con.ID, "first")
	noError(f, err)
	equal(f, string(said), "sealed first")
	wantNone(con.ID, "first")
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.InsertSAMLAssertion(ctx, first)) })

	f.clock.move(time.Minute)
	wantNone(con.ID, "late")
	f.clock.move(time.Hour - time.Minute - time.Microsecond)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteSAMLAssertions(ctx, 10)), int64(0)) })
	f.clock.move(time.Microsecond)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteSAMLAssertions(ctx, 1)), int64(1))
		equal(f, f.value(tx.DeleteSAMLAssertions(ctx, 10)), int64(1))
	})
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertSAMLAssertion(ctx, assertion("last"))) })
	f.write(func(tx *store.Tx) { f.wantChange(tx.DeleteConnection(ctx, con.ID)) })
	wantNone(con.ID, "last")
}

// usedAssertion: of many nodes that have the same response one keeps it, and of many callbacks one uses it.
func usedAssertion(f *fixture) {
	ctx := f.Context()
	con := f.active(f.tenant("Acme"), "Okta")
	a := store.SAMLAssertion{Hash: []byte("hash"), ConnectionID: con.ID, Said: []byte("sealed"), WaitsUntil: noon.Add(time.Minute), EndsAt: noon.Add(time.Hour)}
	f.onlyOne(8, func(tx *store.Tx, _ int) (bool, error) { return tx.InsertSAMLAssertion(ctx, a) })
	f.onlyOne(8, func(tx *store.Tx, _ int) (bool, error) {
		said, err := tx.UseSAMLAssertion(ctx, con.ID, a.Hash)
		if errors.Is(err, store.ErrNone) {
			return false, nil
		}
		return string(said) == "sealed", err
	})
}

// sessionsUntil: a session that a provider has bounded is over then, and a renewal keeps or changes that.
func sessionsUntil(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	open := func(until time.Time) doorward.Session {
		s := doorward.Session{ID: f.id("ses_"), UserID: ann.ID, TenantID: acme.ID, CreatedAt: f.clock.read(), LastSeenAt: f.clock.read(), Assurance: doorward.Assurance{Issuer: "con_1", ProviderUntil: until}}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertSession(ctx, s, hashOf(s))) })
		return s
	}
	until := f.clock.read().Add(time.Hour)
	bounded, renewed, unbounded := open(until), open(until), open(time.Time{})
	renewed.ProviderUntil = until.Add(-time.Minute)
	f.write(func(tx *store.Tx) { f.wantChange(tx.RenewSession(ctx, renewed, hashOf(renewed))) })
	for _, s := range []doorward.Session{bounded, renewed, unbounded} {
		got, err := f.Read().Session(ctx, s.ID)
		noError(f, err)
		equal(f, got.Session.ProviderUntil, s.ProviderUntil)
	}
	count := func() any { return f.value(f.Read().CountMemberSessions(ctx, aDay, acme.ID, ann.ID, f.clock.read())) }
	f.clock.move(time.Hour - time.Minute)
	equal(f, count(), any(int64(2)))
	f.clock.move(time.Minute - time.Microsecond)
	equal(f, count(), any(int64(2)))
	f.clock.move(time.Microsecond)
	equal(f, count(), any(int64(1)))
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteOverdueUserSessions(ctx, aDay, ann.ID)) })
	equal(f, f.live(bounded, renewed, unbounded), []string{unbounded.ID})
}
