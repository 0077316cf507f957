package storetest

import (
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// futureSignOn: what was written of connections, identities and demands while the clock was ahead becomes now, and
// what was to come keeps its distance; other times stay.
func futureSignOn(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	before, con := f.active(acme, "Before"), f.active(acme, "Ahead")
	old := f.identity(before, ann)
	f.useAll(before, "before")
	was := f.stored(before)
	f.clock.move(time.Second)

	f.clock.move(50 * day)
	ahead := f.identity(con, ann)
	f.useAll(con, "ahead")
	confirmBy := f.clock.read().Add(time.Hour)
	f.write(func(tx *store.Tx) {
		noError(f, tx.EndSignIns(ctx, con.ID, doorward.EndedUser(ann.ID)))
		noError(f, tx.SetSSOPolicy(ctx, doorward.SSOPolicy{TenantID: acme.ID, Mode: doorward.SSORequired, ChangedAt: f.clock.read(), ConfirmBy: &confirmBy, BeforeMode: doorward.SSOOff}))
	})
	run := f.run(con)
	expires := f.clock.read().Add(day)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertSCIMSecret(ctx, doorward.SCIMSecret{ID: "scs_1", ConnectionID: con.ID, Hint: "dwc_", CreatedAt: f.clock.read(), ExpiresAt: &expires}, []byte("12345678901234567890123456789012")))
	})
	now := f.clock.move(-50 * day)
	f.write(func(tx *store.Tx) {
		_, err := tx.ClampFuture(ctx)
		noError(f, err)
	})

	equal(f, f.stored(before), was)
	equal(f, f.value(f.Read().SignInsEnded(ctx, con.ID, doorward.EndedUser(ann.ID), now)), true)
	equal(f, f.value(f.Read().SignInsEnded(ctx, con.ID, doorward.EndedUser(ann.ID), now.Add(time.Microsecond))), false)
	got := f.stored(con)
	equal(f, []time.Time{*got.LastSignInAt, got.SwitchedAt}, []time.Time{now, now.Add(-time.Microsecond)})
	all := f.value(f.Read().IdentitiesOf(ctx, ann.ID)).([]doorward.Identity)
	equal(f, []time.Time{all[0].LastUsedAt, all[1].CreatedAt, all[1].LastUsedAt}, []time.Time{old.LastUsedAt, now, now})
	equal(f, all[1].ID, ahead.ID)
	kept := f.value(f.Read().KeptDiscovery(ctx, con.ID, false)).(store.KeptDiscovery)
	equal(f, []time.Time{kept.At, kept.AskedAt, kept.FailedAt, kept.FailingSince, kept.Unknown.At}, []time.Time{now, now, now, now, now})
	equal(f, len(f.value(f.Read().DiscoveryRetriesDue(ctx, now, 10)).([]store.KeptDiscovery)), 1)
	secret := f.value(f.Read().ConnectionSecrets(ctx, con.ID)).([]store.SealedConnectionSecret)[0]
	equal(f, []time.Time{secret.CreatedAt, *secret.LastUsedAt}, []time.Time{now, now})
	keys := f.value(f.Read().ConnectionKeys(ctx, con.ID)).([]store.ConnectionKey)
	equal(f, []time.Time{keys[0].CreatedAt, keys[0].SignsFrom, *keys[0].EndsAt}, []time.Time{now, now.Add(day), now.Add(2 * day)})
	test := f.value(f.Read().ConnectionTest(ctx, doorward.PrefixTest+"ahead")).(doorward.ConnectionTest)
	equal(f, test.CreatedAt, now)
	entry := f.value(f.Read().LastAttempt(ctx, con.ID, doorward.AttemptSignIn)).(doorward.Attempt)
	equal(f, entry.At, now)
	policy := f.value(f.Read().SSOPolicy(ctx, acme.ID, now)).(doorward.SSOPolicy)
	equal(f, []time.Time{policy.ChangedAt, *policy.ConfirmBy}, []time.Time{now, now.Add(time.Hour)})
	scim := f.value(f.Read().SCIMSecrets(ctx, con.ID)).([]doorward.SCIMSecret)[0]
	equal(f, []time.Time{scim.CreatedAt, *scim.ExpiresAt}, []time.Time{now, now.Add(day)})
	clamped := f.value(f.Read().DirectoryRun(ctx, con.ID, run.ID)).(doorward.DirectoryRun)
	equal(f, []time.Time{clamped.From, clamped.Last}, []time.Time{now, now})
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		_, err := tx.UseSAMLAssertion(ctx, con.ID, []byte("assertion ahead"))
		equal(f, errors.Is(err, store.ErrNone), true)
	})
	f.clock.move(10 * time.Minute)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteUsedStates(ctx, 10)), int64(2)) })
	f.clock.move(4 * time.Minute)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteSAMLAssertions(ctx, 10)), int64(2)) })
	f.clock.move(day)
	f.write(func(tx *store.Tx) { f.wantChange(tx.MarkClientNotice(ctx, con.ID, day)) })
}

// useAll writes each time that a connection has, with the suffix in ids.
func (f *fixture) useAll(c doorward.Connection, suffix string) {
	f.Helper()
	ctx, at := f.Context(), f.clock.read()
	const inForce, groups = false, false
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SignInByConnection(ctx, c.ID, groups))
		f.wantChange(tx.MarkClientNotice(ctx, c.ID, day))
		f.wantChange(tx.UseState(ctx, []byte("state "+suffix), at.Add(11*time.Minute)))
		f.wantChange(tx.InsertSAMLAssertion(ctx, store.SAMLAssertion{Hash: []byte("assertion " + suffix), ConnectionID: c.ID, Said: []byte("sealed"), WaitsUntil: at.Add(time.Minute), EndsAt: at.Add(15 * time.Minute)}))
		noError(f, tx.MarkConnectionSwitched(ctx, c.ID))
		f.wantChange(tx.KeepDiscovery(ctx, c.ID, inForce, c.InForce.Issuer, "{}"))
		asked, err := tx.KeptDiscovery(ctx, c.ID, inForce)
		noError(f, err)
		f.wantChange(tx.AskForUnknown(ctx, asked, ""))
		f.wantChange(tx.FailDiscovery(ctx, asked, at.Add(time.Hour)))
		secretID, keyID := doorward.PrefixClientSecret+suffix, "key_"+suffix
		noError(f, tx.InsertConnectionSecret(ctx, store.SealedConnectionSecret{
			ConnectionSecret: doorward.ConnectionSecret{ID: secretID, ConnectionID: c.ID, CreatedAt: at}, Sealed: []byte("sealed"),
		}))
		noError(f, tx.TouchConnectionSecret(ctx, secretID, time.Hour))
		noError(f, tx.InsertConnectionKey(ctx, store.ConnectionKey{ID: keyID, ConnectionID: c.ID, Public: "{}", Sealed: []byte("sealed"), CreatedAt: at, SignsFrom: at.Add(day)}))
		f.wantChange(tx.ReplaceConnectionKey(ctx, keyID, at.Add(2*day)))
		noError(f, tx.InsertConnectionTest(ctx, doorward.ConnectionTest{
			ID: doorward.PrefixTest + suffix, ConnectionID: c.ID, BrowserHash: []byte("hash"), Fingerprint: []byte("print"), Status: doorward.TestWaiting, CreatedAt: at,
		}))
		noError(f, tx.InsertAttemptEntry(ctx, doorward.Attempt{ID: "sat_" + suffix, ConnectionID: c.ID, Kind: doorward.AttemptSignIn, At: at, Outcome: doorward.AttemptSignedIn, Count: 1}))
	})
}
