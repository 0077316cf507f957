package storetest

import (
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// endedByProvider: the sessions of a provider's session end, and those that it named no session for; a sign-in that
// began before somebody's end is known as ended, for its own connection alone.
func endedByProvider(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser)
	c, other := f.connection(acme, "One"), f.connection(acme, "Other")
	open := func(u doorward.User, by doorward.Connection, providerSession string) doorward.Session {
		f.Helper()
		s := doorward.Session{
			ID: f.id("ses_"), UserID: u.ID, TenantID: u.TenantID, CreatedAt: f.clock.read(), LastSeenAt: f.clock.read(), Role: u.Role, JoinedAt: u.CreatedAt,
			Assurance: doorward.Assurance{Issuer: doorward.Issuer(by.ID), AAL: 1, AMR: []string{doorward.MethodFederated}, ProvedAt: f.clock.read(), ProviderSession: providerSession},
		}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertSession(ctx, s, hashOf(s))) })
		return s
	}
	first, second, named, unnamed, elsewhere := open(ann, c, "s"), open(ann, c, "s"), open(ann, c, "t"), open(ann, c, ""), open(ann, other, "s")
	own, ofBob, third := f.session(ann), open(bob, c, ""), open(ann, c, "r")
	all := []doorward.Session{first, second, named, unnamed, elsewhere, own, ofBob, third}
	f.write(func(tx *store.Tx) {
		named.ProviderSession = "" // a step-up whose answer named none leaves it
		f.wantChange(tx.RenewSession(ctx, named, hashOf(named)))
		for _, by := range []string{"u", "u", "v"} {
			second.ProviderSession = by
			f.wantChange(tx.RenewSession(ctx, second, hashOf(second)))
		}
		third.ProviderSession = "u"
		f.wantChange(tx.RenewSession(ctx, third, hashOf(third)))
	})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.EndProviderSession(ctx, aDay, c, "none")), map[string]int64{})
		equal(f, f.value(tx.EndProviderSession(ctx, aDay, c, "s")), map[string]int64{ann.ID: 2}) // second's before its step-up, too
		equal(f, f.value(tx.EndProviderSession(ctx, aDay, c, "t")), map[string]int64{ann.ID: 1})
	})
	equal(f, f.live(all...), []string{unnamed.ID, elsewhere.ID, own.ID, ofBob.ID, third.ID})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.EndUnnamedSessions(ctx, aDay, c, ann.ID)), map[string]int64{ann.ID: 1})
	})
	equal(f, f.live(all...), []string{elsewhere.ID, own.ID, ofBob.ID, third.ID})
	f.clock.move(2 * day)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.EndProviderSession(ctx, aDay, c, "u")), map[string]int64{ann.ID: 0}) // it had expired
	})

	f.wantEndedSignIns(c, other)
}

func (f *fixture) wantEndedSignIns(c, other doorward.Connection) {
	f.Helper()
	ctx, began, who := f.Context(), f.clock.read(), doorward.EndedUser("usr_1")
	ended := func(c doorward.Connection, who string, begun time.Time) any {
		f.Helper()
		return f.value(f.Read().SignInsEnded(ctx, c.ID, who, begun))
	}
	equal(f, ended(c, who, began), false)
	f.write(func(tx *store.Tx) { noError(f, tx.EndSignIns(ctx, c.ID, who)) })
	for _, w := range []struct {
		c     doorward.Connection
		who   string
		begun time.Time
		want  bool
	}{
		{c, who, began, true},
		{c, who, time.Time{}, true},
		{c, who, began.Add(time.Microsecond), false},
		{c, doorward.EndedSession("usr_1"), began, false},
		{other, who, began, false},
	} {
		equal(f, ended(w.c, w.who, w.begun), w.want)
	}
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		noError(f, tx.EndSignIns(ctx, c.ID, who))
		noError(f, tx.EndSignIns(ctx, other.ID, who))
	})
	equal(f, ended(c, who, began.Add(time.Minute)), true)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteEndedSignIns(ctx, began, 10)), int64(0))
		equal(f, f.value(tx.DeleteEndedSignIns(ctx, f.clock.read(), 10)), int64(2))
	})

	hash := []byte(fmt.Sprint("token of ", c.ID))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.UseState(ctx, hash, began))
		noError(f, tx.ReleaseState(ctx, hash))
		f.wantChange(tx.UseState(ctx, hash, began))
	})
}
