package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// connection adds a draft with parameters that are complete.
func (f *fixture) connection(t doorward.Tenant, name string) doorward.Connection {
	f.Helper()
	c := doorward.Connection{
		ID: f.id(doorward.PrefixConnection), TenantID: t.ID, Type: doorward.OpenIDConnect, Name: name, Product: doorward.Okta,
		Status: doorward.ConnectionDraft, CreatedAt: f.clock.read(),
		InForce: doorward.ConnectionParameters{Issuer: "https://idp.example/ß", ClientID: "client", ClientAuth: doorward.SecretBasic, EmailFrom: "email"},
		JIT:     doorward.JITInvited, JITRole: doorward.RoleUser, Outside: doorward.OutsideInvite, GroupsFrom: "groups", FactorACR: []string{"phr", "phrh"}, TrustFactor: true,
		Ends:     doorward.EndsTenant,
		Mappings: []doorward.GroupMapping{{Group: "Ops  team", Role: doorward.RoleAdmin}, {Group: "ops  team", Role: doorward.RoleViewer}},
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertConnection(f.Context(), c)) })
	c.InForce.Revision = f.stored(c).InForce.Revision
	return c
}

// stored returns the connection as it is in the database.
func (f *fixture) stored(c doorward.Connection) doorward.Connection {
	f.Helper()
	got, err := f.Read().Connection(f.Context(), c.ID)
	noError(f, err)
	return got
}

func connections(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	first := f.connection(acme, "First")
	f.clock.move(time.Second)
	second := f.connection(acme, "Second")
	other := f.connection(zeta, "Other")
	f.wantNone(f.Read().Connection(ctx, "con_none"))
	equal(f, f.stored(first), first)
	equal(f, f.value(f.Read().ConnectionsOf(ctx, acme.ID)), []doorward.Connection{first, second})
	equal(f, len(f.value(f.Read().ConnectionsOf(ctx, "tnt_none")).([]doorward.Connection)), 0)
	page, err := f.Read().ConnectionPage(ctx, acme.ID, doorward.Window{Limit: 1})
	noError(f, err)
	equal(f, page.Items, []doorward.Connection{first})
	equal(f, f.value(f.Read().CountConnections(ctx, acme.ID)), 2)
	equal(f, f.value(f.Read().CountConnectionsGiving(ctx, acme.ID, doorward.RoleAdmin)), 2)
	equal(f, f.value(f.Read().CountConnectionsGiving(ctx, acme.ID, doorward.RoleUser)), 2)
	equal(f, f.value(f.Read().CountConnectionsGiving(ctx, acme.ID, "desk")), 0)

	equal(f, f.value(f.Read().HasActiveConnection(ctx, acme.ID)), false)
	f.write(func(tx *store.Tx) {
		const noGroups, groups = false, true
		f.wantNoChange(tx.SignInByConnection(ctx, first.ID, groups)) // a draft
		f.wantChange(tx.SetConnectionStatus(ctx, first.ID, doorward.ConnectionActive))
		f.wantNoChange(tx.SetConnectionStatus(ctx, first.ID, doorward.ConnectionActive))
		f.wantChange(tx.SignInByConnection(ctx, first.ID, groups))
		f.wantChange(tx.SignInByConnection(ctx, first.ID, noGroups))
		f.wantChange(tx.MarkClientNotice(ctx, first.ID, day))
		f.wantNoChange(tx.MarkClientNotice(ctx, first.ID, day))
		noError(f, tx.ClearClientNotice(ctx, first.ID))
		f.wantChange(tx.MarkClientNotice(ctx, first.ID, day))
	})
	equal(f, f.value(f.Read().HasActiveConnection(ctx, acme.ID)), true)
	equal(f, f.value(f.Read().HasActiveConnection(ctx, zeta.ID)), false)
	first.Status, first.LastSignInAt, first.GroupsSeen = doorward.ConnectionActive, pointerTo(f.clock.read()), true
	equal(f, f.stored(first), first)
	first.Name, first.JIT, first.JITRole, first.FactorACR, first.TrustFactor = "1st", doorward.JITOff, "desk", []string{}, false
	first.Ends, first.EndsKeys = doorward.EndsConnection, true
	first.Mappings = []doorward.GroupMapping{{Group: "All", Role: "desk"}}
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateConnection(ctx, first)) })
	equal(f, f.stored(first), first)
	equal(f, f.value(f.Read().CountConnectionsGiving(ctx, acme.ID, "desk")), 1)
	first.GroupsFrom, first.GroupsSeen = "roles", false
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateConnection(ctx, first)) })
	equal(f, f.stored(first), first)

	f.write(func(tx *store.Tx) {
		_, err := tx.SetConnectionStatus(ctx, other.ID, doorward.ConnectionActive)
		noError(f, err)
		equal(f, f.value(tx.DisableAllConnections(ctx)), []store.ConnectionName{{ID: first.ID, TenantID: acme.ID}, {ID: other.ID, TenantID: zeta.ID}})
		f.wantChange(tx.DeleteConnection(ctx, other.ID))
		f.wantNoChange(tx.DeleteConnection(ctx, other.ID))
	})
	equal(f, f.stored(first).Status, doorward.ConnectionDisabled)
	equal(f, f.stored(second).Status, doorward.ConnectionDraft)
	f.wantNone(f.Read().Connection(ctx, other.ID))
}

// parametersOfConnections: a change has a new revision, is tested anew, and takes nothing from what is in
// force until it is switched.
func parametersOfConnections(f *fixture) {
	ctx := f.Context()
	const inForce, pending = false, true
	c := f.connection(f.tenant("Acme"), "One")
	revisionOf := func() int64 { return f.stored(c).InForce.Revision }
	first := revisionOf()
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.MarkConnectionTested(ctx, c.ID, inForce, first+1))
		f.wantNoChange(tx.MarkConnectionTested(ctx, c.ID, pending, first))
		f.wantChange(tx.MarkConnectionTested(ctx, c.ID, inForce, first))
	})
	equal(f, f.stored(c).InForce.TestedAt, pointerTo(f.clock.read()))
	f.write(func(tx *store.Tx) { noError(f, tx.SetConnectionParameters(ctx, c.ID, inForce, c.InForce)) })
	equal(f, f.stored(c).InForce.TestedAt, (*time.Time)(nil))
	equal(f, revisionOf() != first, true)

	f.write(func(tx *store.Tx) {
		f.wantChange(tx.MarkConnectionTested(ctx, c.ID, inForce, revisionOf()))
		noError(f, tx.VoidTestsOfSecrets(ctx, c.ID))
	})
	equal(f, f.stored(c).InForce.TestedAt, (*time.Time)(nil))

	next := doorward.ConnectionParameters{Issuer: "https://other.example", ClientID: "next", ClientAuth: doorward.PrivateKeyJWT, EmailFrom: "upn"}
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.SwitchConnection(ctx, c.ID, true))
		f.wantNoChange(tx.DeletePendingParameters(ctx, c.ID))
		noError(f, tx.SetConnectionParameters(ctx, c.ID, pending, next))
		f.wantChange(tx.DeletePendingParameters(ctx, c.ID))
		noError(f, tx.SetConnectionParameters(ctx, c.ID, pending, next))
		noError(f, tx.SetConnectionParameters(ctx, c.ID, pending, next))
	})
	next.Revision = f.stored(c).Pending.Revision
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.MarkConnectionTested(ctx, c.ID, pending, next.Revision))
		noError(f, tx.VoidTestsOfSecrets(ctx, c.ID)) // it uses a key
	})
	next.TestedAt = pointerTo(f.clock.read())
	equal(f, *f.stored(c).Pending, next)
	equal(f, f.stored(c).InForce.Issuer, c.InForce.Issuer)
	f.write(func(tx *store.Tx) { f.wantChange(tx.SwitchConnection(ctx, c.ID, false)) })
	equal(f, f.stored(c).InForce, next)
	equal(f, f.stored(c).Pending, (*doorward.ConnectionParameters)(nil))
	equal(f, f.stored(c).SwitchedAt, time.Time{})
	f.write(func(tx *store.Tx) {
		noError(f, tx.SetConnectionParameters(ctx, c.ID, pending, next))
		f.wantChange(tx.SwitchConnection(ctx, c.ID, true))
	})
	equal(f, f.stored(c).SwitchedAt, f.clock.read())
}

func discoveries(f *fixture) {
	ctx := f.Context()
	const inForce, pending = false, true
	acme := f.tenant("Acme")
	c := f.connection(acme, "One")
	f.connection(acme, "Draft")
	kept := func() store.KeptDiscovery {
		return f.value(f.Read().KeptDiscovery(ctx, c.ID, inForce)).(store.KeptDiscovery)
	}
	due := func() int {
		return len(f.value(f.Read().DiscoveryDue(ctx, f.clock.read().Add(-day), 10)).([]store.KeptDiscovery))
	}
	f.wantNone(f.Read().KeptDiscovery(ctx, c.ID, pending))
	equal(f, kept(), store.KeptDiscovery{ConnectionID: c.ID, Type: c.Type, Issuer: c.InForce.Issuer})
	equal(f, due(), 0)
	was := kept()
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SetConnectionStatus(ctx, c.ID, doorward.ConnectionActive))
	})
	equal(f, due(), 1)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.AskDiscovery(ctx, was))
		f.wantNoChange(tx.AskDiscovery(ctx, was))
		f.wantNoChange(tx.KeepDiscovery(ctx, c.ID, inForce, "https://other.example", "{}"))
	})
	equal(f, due(), 0)
	f.write(func(tx *store.Tx) { f.wantChange(tx.KeepDiscovery(ctx, c.ID, inForce, c.InForce.Issuer, "{}")) })
	equal(f, kept().Text, "{}")
	equal(f, kept().At, f.clock.read())
	f.write(func(tx *store.Tx) { noError(f, tx.SetConnectionParameters(ctx, c.ID, inForce, c.InForce)) })
	equal(f, kept().Text, "{}") // of the same issuer
	f.clock.move(day)
	equal(f, due(), 1)
	c.InForce.Issuer = "https://other.example"
	f.write(func(tx *store.Tx) { noError(f, tx.SetConnectionParameters(ctx, c.ID, inForce, c.InForce)) })
	equal(f, kept(), store.KeptDiscovery{ConnectionID: c.ID, Type: c.Type, Issuer: c.InForce.Issuer})
}

func secretsOfConnections(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	c := f.connection(acme, "One")
	ends := f.clock.read().Add(20 * day)
	old := store.SealedConnectionSecret{
		ConnectionSecret: doorward.ConnectionSecret{ID: f.id(doorward.PrefixClientSecret), ConnectionID: c.ID, Hint: "wxyz", CreatedAt: f.clock.read(), ExpiresAt: &ends}, Sealed: []byte("sealed"),
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertConnectionSecret(ctx, old)) })
	f.clock.move(time.Hour)
	fresh := old
	fresh.ID, fresh.CreatedAt, fresh.ExpiresAt = f.id(doorward.PrefixClientSecret), f.clock.read(), nil
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertConnectionSecret(ctx, fresh))
		noError(f, tx.TouchConnectionSecret(ctx, fresh.ID, time.Minute))
	})
	fresh.LastUsedAt = pointerTo(f.clock.read())
	f.clock.move(30 * time.Second)
	f.write(func(tx *store.Tx) { noError(f, tx.TouchConnectionSecret(ctx, fresh.ID, time.Minute)) })
	equal(f, f.value(f.Read().ConnectionSecrets(ctx, c.ID)), []store.SealedConnectionSecret{fresh, old})
	equal(f, f.value(f.Read().ConnectionSecretsOf(ctx, acme.ID)), []store.SealedConnectionSecret{fresh, old})

	expiring := func(until time.Duration, notices int) any {
		return f.value(f.Read().ExpiringSecrets(ctx, f.clock.read(), f.clock.read().Add(until), notices, 10))
	}
	equal(f, expiring(30*day, 1), []store.ExpiringSecret{{ConnectionSecret: old.ConnectionSecret, TenantID: acme.ID, ConnectionName: "One"}})
	equal(f, expiring(7*day, 2), []store.ExpiringSecret(nil))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.MarkSecretNotice(ctx, old.ID, 1))
		f.wantNoChange(tx.MarkSecretNotice(ctx, old.ID, 1))
	})
	equal(f, expiring(30*day, 1), []store.ExpiringSecret(nil))
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.DeleteConnectionSecret(ctx, "con_none", old.ID))
		f.wantChange(tx.DeleteConnectionSecret(ctx, c.ID, old.ID))
	})
	equal(f, f.value(f.Read().ConnectionSecrets(ctx, c.ID)), []store.SealedConnectionSecret{fresh})
}

func keysOfConnections(f *fixture) {
	ctx := f.Context()
	c := f.connection(f.tenant("Acme"), "One")
	now := f.clock.read()
	first := store.ConnectionKey{ID: "kid1", ConnectionID: c.ID, Public: "{}", Sealed: []byte("sealed"), CreatedAt: now, SignsFrom: now}
	next := store.ConnectionKey{ID: "kid0", ConnectionID: c.ID, Public: "{}", Sealed: []byte("sealed"), CreatedAt: now.Add(time.Second), SignsFrom: now.Add(day)}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertConnectionKey(ctx, first)) })
	equal(f, f.value(f.Read().ConnectionKeysSigningSince(ctx, now, 10)), []store.ConnectionKey{first})
	equal(f, f.value(f.Read().ConnectionKeysSigningSince(ctx, now.Add(-1), 10)), []store.ConnectionKey(nil))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ReplaceConnectionKey(ctx, first.ID, now.Add(2*day)))
		f.wantNoChange(tx.ReplaceConnectionKey(ctx, first.ID, now.Add(3*day)))
		noError(f, tx.InsertConnectionKey(ctx, next))
	})
	first.EndsAt = pointerTo(now.Add(2 * day))
	equal(f, f.value(f.Read().ConnectionKeys(ctx, c.ID)), []store.ConnectionKey{first, next})
	equal(f, f.value(f.Read().ConnectionKeysSigningSince(ctx, now, 10)), []store.ConnectionKey(nil))
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteEndedConnectionKeys(ctx)), int64(0)) })
	f.clock.move(2 * day)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteEndedConnectionKeys(ctx)), int64(1)) })
	equal(f, f.value(f.Read().ConnectionKeys(ctx, c.ID)), []store.ConnectionKey{next})
}

func testsOfConnections(f *fixture) {
	ctx := f.Context()
	c := f.connection(f.tenant("Acme"), "One")
	made := doorward.ConnectionTest{
		ID: f.id(doorward.PrefixTest), ConnectionID: c.ID, Pending: true, BrowserHash: []byte("browser"), Fingerprint: []byte("what"),
		Status: doorward.TestWaiting, CreatedAt: f.clock.read(),
	}
	late := made
	late.ID = f.id(doorward.PrefixTest)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertConnectionTest(ctx, made))
		noError(f, tx.InsertConnectionTest(ctx, late))
	})
	f.wantNone(f.Read().ConnectionTest(ctx, "tst_none"))
	equal(f, f.value(f.Read().ConnectionTest(ctx, made.ID)), made)
	f.wantNone(f.Read().NewestConnectionTest(ctx, "con_none"))
	older, newest := made, made
	older.ID, newest.ID = f.id(doorward.PrefixTest), f.id(doorward.PrefixTest)
	older.ConnectionID = f.connection(f.tenant("Other"), "Two").ID
	newest.ConnectionID = older.ConnectionID
	older.CreatedAt, newest.CreatedAt = made.CreatedAt.Add(time.Second), made.CreatedAt.Add(time.Minute)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertConnectionTest(ctx, newest))
		noError(f, tx.InsertConnectionTest(ctx, older))
	})
	equal(f, f.value(f.Read().NewestConnectionTest(ctx, newest.ConnectionID)), newest)
	checks := []doorward.TestCheck{{Name: "iss", OK: true}, {Name: "email", Seen: "é", Wanted: "x", Advice: "email_claim"}}
	claims := json.RawMessage(`{"sub":"7"}`)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.BeginConnectionTest(ctx, made.ID))
		f.wantNoChange(tx.BeginConnectionTest(ctx, made.ID))
		f.wantChange(tx.EndConnectionTest(ctx, made.ID, doorward.TestFailed, claims, checks))
		f.wantNoChange(tx.EndConnectionTest(ctx, made.ID, doorward.TestPassed, claims, checks))
	})
	made.Status, made.Claims, made.Checks = doorward.TestFailed, claims, checks
	made.BegunAt, made.EndedAt = pointerTo(f.clock.read()), pointerTo(f.clock.read())
	equal(f, f.value(f.Read().ConnectionTest(ctx, made.ID)), made)
	f.clock.move(doorward.TestLife)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.BeginConnectionTest(ctx, late.ID))
		f.wantNoChange(tx.EndConnectionTest(ctx, late.ID, doorward.TestPassed, claims, checks))
		equal(f, f.value(tx.DeleteOldTests(ctx, made.CreatedAt.Add(-1), 10)), int64(0))
		equal(f, f.value(tx.DeleteOldTests(ctx, made.CreatedAt, 1)), int64(1))
		equal(f, f.value(tx.DeleteOldTests(ctx, made.CreatedAt, 10)), int64(1))
	})

	ends := f.clock.read().Add(time.Minute)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.UseState(ctx, []byte("state"), ends))
		f.wantNoChange(tx.UseState(ctx, []byte("state"), ends))
		equal(f, f.value(tx.DeleteUsedStates(ctx, 10)), int64(0))
	})
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteUsedStates(ctx, 10)), int64(1)) })
}

// usedState: of many callbacks with one state, one uses it up.
func usedState(f *fixture) {
	f.onlyOne(8, func(tx *store.Tx, _ int) (bool, error) {
		return tx.UseState(f.Context(), []byte("state"), noon.Add(time.Minute))
	})
}

func attemptsAtConnections(f *fixture) {
	ctx := f.Context()
	c := f.connection(f.tenant("Acme"), "One")
	f.wantNone(f.Read().LastAttempt(ctx, c.ID, doorward.AttemptSignIn))
	entry := func(kind doorward.AttemptKind) doorward.Attempt {
		a := doorward.Attempt{
			ID: f.id("a"), ConnectionID: c.ID, Kind: kind, At: f.clock.read(), Outcome: doorward.AttemptRefused, Check: "aud",
			Seen: "ß", Advice: "client_id", Subject: "7", UserID: "usr_1", Count: 1, RequestIDs: []string{"req_1"},
		}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertAttemptEntry(ctx, a)) })
		return a
	}
	first := entry(doorward.AttemptSignIn)
	f.clock.move(time.Second)
	tested := entry(doorward.AttemptTest)
	equal(f, f.value(f.Read().LastAttempt(ctx, c.ID, doorward.AttemptSignIn)), first)
	equal(f, f.value(f.Read().SameAttempt(ctx, tested)), tested)
	other := tested
	other.Subject = "8"
	f.wantNone(f.Read().SameAttempt(ctx, other))
	f.clock.move(time.Second)
	again := first
	again.At = f.clock.read()
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.MergeAttemptEntry(ctx, first, again, []string{"req_1", "req_2"}))
		f.wantNoChange(tx.MergeAttemptEntry(ctx, first, again, []string{"req_1", "req_3"})) // counted since
	})
	first.At, first.Count, first.RequestIDs = again.At, 2, []string{"req_1", "req_2"}
	page, err := f.Read().AttemptPage(ctx, c.ID, doorward.Window{Limit: 10})
	noError(f, err)
	equal(f, page.Items, []doorward.Attempt{first, tested})

	f.write(func(tx *store.Tx) {
		gone := first
		gone.ID, gone.ConnectionID = f.id("a"), "con_none"
		noError(f, tx.InsertAttemptEntry(ctx, gone))
	})
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteEntriesAbout(ctx, "usr_other")) })
	f.clock.move(time.Hour)
	for range doorward.AttemptsMax {
		entry(doorward.AttemptTest)
	}
	page, err = f.Read().AttemptPage(ctx, c.ID, doorward.Window{Limit: 500})
	noError(f, err)
	equal(f, len(page.Items), doorward.AttemptsMax+1) // those of the other kind stay
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldAttempts(ctx, first.At.Add(-1), 10)), int64(0))
		equal(f, f.value(tx.DeleteOldAttempts(ctx, first.At, 10)), int64(1))
		noError(f, tx.DeleteEntriesAbout(ctx, first.UserID))
		f.wantNone(tx.LastAttempt(ctx, c.ID, doorward.AttemptTest))
	})
	f.write(func(tx *store.Tx) { // of an address without an account
		for id, address := range map[string]string{"hers": "ann@old.example", "others": "ben@old.example"} {
			noError(f, tx.InsertAttemptEntry(ctx, doorward.Attempt{ID: id, ConnectionID: c.ID, Kind: doorward.AttemptTest, At: tx.Now, Seen: address, Address: address, Count: 1, RequestIDs: []string{"req_1"}}))
		}
		noError(f, tx.ForgetAddress(ctx, "ann@old.example"))
		page, err := tx.AttemptPage(ctx, c.ID, doorward.Window{Limit: 10})
		noError(f, err)
		equal(f, len(page.Items), 1)
		equal(f, page.Items[0].Address, "ben@old.example")
		noError(f, tx.ForgetAddress(ctx, "ben@old.example"))
	})
	ann := f.member(f.tenant("Zeta"), "ann@zeta.example", doorward.RoleUser)
	f.write(func(tx *store.Tx) { // of a subject that is the person's
		noError(f, tx.InsertAttemptEntry(ctx, doorward.Attempt{ID: "mine", ConnectionID: c.ID, Kind: doorward.AttemptTest, At: tx.Now, Subject: "7", Count: 1}))
		f.wantChange(tx.InsertIdentity(ctx, doorward.Identity{ID: "idn_mine", ConnectionID: c.ID, TenantID: c.TenantID, Subject: "7", UserID: ann.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now}))
		noError(f, tx.DeleteEntriesAbout(ctx, ann.ID))
		f.wantNone(tx.LastAttempt(ctx, c.ID, doorward.AttemptTest))
	})
}

func identities(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	c, spare := f.connection(acme, "One"), f.connection(acme, "Two")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser)
	identity := func(c doorward.Connection, subject string, u doorward.User) doorward.Identity {
		i := doorward.Identity{
			ID: f.id(doorward.PrefixIdentity), ConnectionID: c.ID, TenantID: acme.ID, Issuer: "https://idp.example", Subject: subject, UserID: u.ID,
			CreatedAt: f.clock.read(), LastUsedAt: f.clock.read(),
		}
		f.write(func(tx *store.Tx) {
			f.wantChange(tx.InsertIdentity(ctx, i))
			twice := i
			twice.ID = f.id(doorward.PrefixIdentity)
			f.wantNoChange(tx.InsertIdentity(ctx, twice))
		})
		return i
	}
	lower, upper := identity(c, "a", ann), identity(c, "A", bob) // letter case counts
	f.wantNone(f.Read().Identity(ctx, c.ID, "https://idp.example", "b"))
	f.wantNone(f.Read().Identity(ctx, spare.ID, "https://idp.example", "a"))
	equal(f, f.value(f.Read().Identity(ctx, c.ID, "https://idp.example", "A")), upper)
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.TouchIdentity(ctx, lower.ID))
		f.wantNoChange(tx.TouchIdentity(ctx, "idn_none"))
	})
	lower.LastUsedAt = f.clock.read()
	equal(f, f.value(f.Read().IdentityByID(ctx, lower.ID)), lower)
	f.wantNone(f.Read().IdentityByID(ctx, "idn_none"))
	equal(f, f.value(f.Read().IdentitiesOf(ctx, ann.ID)), []doorward.Identity{lower})
	page, err := f.Read().IdentityPage(ctx, c.ID, doorward.Window{Limit: 10})
	noError(f, err)
	equal(f, page.Items, []store.LinkedIdentity{{Identity: upper, Email: bob.Email}, {Identity: lower, Email: ann.Email}})

	equal(f, f.value(f.Read().CountManagedBy(ctx, c.ID)), 0)
	other := identity(spare, "a", ann)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteIdentity(ctx, other.ID))
		f.wantNoChange(tx.DeleteIdentity(ctx, other.ID))
	})
	f.clock.move(time.Minute)
	identity(spare, "z", ann)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteIdentitiesSince(ctx, ann.ID, f.clock.read())), int64(1))
		equal(f, f.value(tx.DeleteIdentitiesSince(ctx, bob.ID, f.clock.read())), int64(0))
	})
	identity(spare, "a", ann)
	f.write(func(tx *store.Tx) { // with the connection, and with the account
		f.wantChange(tx.DeleteConnection(ctx, spare.ID))
	})
	equal(f, f.value(f.Read().IdentitiesOf(ctx, ann.ID)), []doorward.Identity{lower})
}

// ordersOfConnections: the lists are read forward and back, with their totals, also where times are equal.
func ordersOfConnections(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	c := f.connection(acme, "One")
	for i := range 4 {
		if i > 0 {
			f.connection(acme, "More")
		}
		u := f.member(acme, fmt.Sprintf("%c@acme.example", 'a'+i), doorward.RoleUser)
		now := f.clock.read()
		f.write(func(tx *store.Tx) {
			f.wantChange(tx.InsertIdentity(ctx, doorward.Identity{ID: f.id(doorward.PrefixIdentity), ConnectionID: c.ID, TenantID: acme.ID, Subject: u.ID, UserID: u.ID, CreatedAt: now, LastUsedAt: now}))
			noError(f, tx.InsertAttemptEntry(ctx, doorward.Attempt{ID: f.id("a"), ConnectionID: c.ID, Kind: doorward.AttemptTest, At: now, Count: 1}))
		})
		if i != 1 {
			f.clock.move(time.Second)
		}
	}
	read := f.Read()
	wantOrders(f, "createdAt", 4, func(c doorward.Connection) string { return c.ID }, func(w doorward.Window) (doorward.Page[doorward.Connection], error) {
		return read.ConnectionPage(ctx, acme.ID, w)
	})
	wantOrders(f, "at", 4, func(a doorward.Attempt) string { return a.ID }, func(w doorward.Window) (doorward.Page[doorward.Attempt], error) {
		return read.AttemptPage(ctx, c.ID, w)
	})
	wantOrders(f, "createdAt", 4, func(i store.LinkedIdentity) string { return i.ID }, func(w doorward.Window) (doorward.Page[store.LinkedIdentity], error) {
		return read.IdentityPage(ctx, c.ID, w)
	})
}

// sessionsOfConnections: disabling a connection ends what it has vouched for in its tenant, and nothing
// else.
func sessionsOfConnections(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser)
	life := store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: time.Hour, Absolute: day}}
	session := func(u doorward.User, issuer doorward.Issuer) doorward.Session {
		s := doorward.Session{
			ID: f.id("ses_"), UserID: u.ID, TenantID: u.TenantID, CreatedAt: f.clock.read(), LastSeenAt: f.clock.read(), Role: u.Role, JoinedAt: u.CreatedAt,
			Assurance: doorward.Assurance{Issuer: issuer, AAL: 1, AMR: []string{"fed"}, ProvedAt: f.clock.read()},
		}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertSession(ctx, s, hashOf(s))) })
		return s
	}
	own, ours, theirs, foreign := session(ann, doorward.OwnIssuer), session(ann, "con_1"), session(bob, "con_1"), session(ann, "con_2")
	again := session(bob, "con_1")
	f.write(func(tx *store.Tx) {
		for i, issuer := range []doorward.Issuer{doorward.OwnIssuer, "con_1", "con_2"} {
			noError(f, tx.InsertChallenge(ctx, []byte{byte(i)}, store.Challenge{Purpose: "x", UserID: ann.ID, TenantID: acme.ID, Issuer: issuer, EndsAt: f.clock.read().Add(time.Minute)}))
		}
	})
	challenges := func() int {
		return len(f.value(f.Read().ChallengesOf(ctx, ann.ID, f.clock.read())).([]store.Challenge))
	}
	var whose []store.IssuerSessions
	noError(f, f.Read().EachIssuerSessions(ctx, life, f.clock.read(), acme.ID, "con_1", func(s store.IssuerSessions) error { whose = append(whose, s); return nil }))
	equal(f, whose, []store.IssuerSessions{{UserID: ann.ID, Email: ann.Email, Sessions: 1}, {UserID: bob.ID, Email: bob.Email, Sessions: 2}})
	changed := f.changesOf(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteIssuerSessionsOf(ctx, life, acme.ID, "con_1", bob.ID)), int64(2))
	})
	equal(f, changed, []store.Change{{Kind: store.ChangeUser, Subject: bob.ID}})
	equal(f, f.live(own, ours, theirs, foreign, again), []string{own.ID, ours.ID, foreign.ID})
	changed = f.changesOf(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteIssuerSessions(ctx, life, acme.ID, "con_1")), int64(1))
	})
	equal(f, changed, []store.Change{{Kind: store.ChangeTenant, Subject: acme.ID}})
	equal(f, challenges(), 2) // those of others
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteIssuerSessionsOf(ctx, life, acme.ID, "con_3", ann.ID)), int64(0))
	})
	equal(f, challenges(), 2)
	equal(f, f.live(own, ours, foreign), []string{own.ID, foreign.ID})
}
