package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// readingsOfMetadata: what the last reading said, when it is due again after a failure, and of which OWNERs are told; and
// readings for unknown certificates, which one node begins at a time.
func readingsOfMetadata(f *fixture) {
	ctx := f.Context()
	c := f.samlConnection(f.tenant("Acme"))
	kept := func() store.KeptDiscovery {
		return f.value(f.Read().KeptDiscovery(ctx, c.ID, false)).(store.KeptDiscovery)
	}
	due := func() int {
		return len(f.value(f.Read().DiscoveryRetriesDue(ctx, f.clock.read(), 10)).([]store.KeptDiscovery))
	}
	unread := func() []store.UnreadProvider {
		return f.value(f.Read().UnreadProviders(ctx, f.clock.read().Add(-day), 10)).([]store.UnreadProvider)
	}
	keep := func() {
		f.write(func(tx *store.Tx) {
			_, err := tx.KeepMetadata(ctx, c.ID, false, c.InForce.Issuer, c.InForce.MetadataURL, "{}")
			noError(f, err)
		})
	}
	keep()
	f.clock.move(time.Hour)
	first := f.clock.read()
	fail := func() {
		f.write(func(tx *store.Tx) { f.wantChange(tx.FailDiscovery(ctx, kept(), f.clock.read().Add(time.Hour))) })
	}
	fail()
	f.write(func(tx *store.Tx) {
		other := kept()
		other.MetadataURL = "https://other.example"
		f.wantNoChange(tx.FailDiscovery(ctx, other, f.clock.read()))
	})
	equal(f, due(), 0)
	f.clock.move(time.Hour)
	equal(f, due(), 1)
	f.write(func(tx *store.Tx) { f.wantChange(tx.AskDiscovery(ctx, kept())) })
	equal(f, due(), 0) // another node reads
	fail()
	equal(f, []time.Time{kept().FailedAt, kept().FailingSince}, []time.Time{f.clock.read(), first})
	equal(f, len(unread()), 0)
	failing := func(tenantID string) map[string]time.Time {
		return f.value(f.Read().ReadingsFailing(ctx, tenantID)).(map[string]time.Time)
	}
	equal(f, []map[string]time.Time{failing(c.TenantID), failing(f.tenant("Globex").ID)}, []map[string]time.Time{{c.ID: first}, {}})
	f.clock.move(day)
	equal(f, unread(), []store.UnreadProvider{{ConnectionID: c.ID, TenantID: c.TenantID, Since: first}})
	f.write(func(tx *store.Tx) { noError(f, tx.SetCertificatesEnd(ctx, c.ID, false, f.clock.read().Add(7*day))) })
	vitals := f.value(f.Read().Vitals(ctx, f.clock.read())).(store.Vitals)
	equal(f, []int{vitals.CertificatesEnd, vitals.ProvidersUnread}, []int{1, 1})
	vitals = f.value(f.Read().Vitals(ctx, f.clock.read().Add(-time.Hour))).(store.Vitals)
	equal(f, []int{vitals.CertificatesEnd, vitals.ProvidersUnread}, []int{0, 1})
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.MarkUnreadNotice(ctx, c.ID, first))
		f.wantNoChange(tx.MarkUnreadNotice(ctx, c.ID, first))
	})
	equal(f, len(unread()), 0)
	keep()
	equal(f, []time.Time{kept().FailedAt, kept().FailingSince}, []time.Time{{}, {}})
	equal(f, []int{due(), len(failing(c.TenantID))}, []int{0, 0})
	fail()
	f.clock.move(day)
	equal(f, []int{due(), len(unread())}, []int{1, 1}) // another failure has a notice of its own
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SetConnectionStatus(ctx, c.ID, doorward.ConnectionDisabled))
	})
	equal(f, []int{due(), len(unread())}, []int{0, 0})
	c.InForce.Issuer = "https://other.example"
	f.write(func(tx *store.Tx) { noError(f, tx.SetConnectionParameters(ctx, c.ID, false, c.InForce)) })
	equal(f, []time.Time{kept().FailedAt, kept().FailingSince}, []time.Time{{}, {}})
	readingsForUnknown(f)
}

func readingsForUnknown(f *fixture) {
	ctx := f.Context()
	c := f.samlConnection(f.tenant("Globex"))
	kept := func() store.KeptDiscovery {
		return f.value(f.Read().KeptDiscovery(ctx, c.ID, false)).(store.KeptDiscovery)
	}
	was := kept()
	f.onlyOne(4, func(tx *store.Tx, _ int) (bool, error) { return tx.AskForUnknown(ctx, was, "aa") })
	equal(f, kept().Unknown, store.UnknownReading{At: f.clock.read(), Signer: "aa", Count: 1})
	for _, step := range []struct {
		signer string
		count  int
	}{{"aa", 2}, {"bb", 1}, {"", 1}, {"", 2}} {
		f.clock.move(time.Minute)
		f.write(func(tx *store.Tx) { f.wantChange(tx.AskForUnknown(ctx, kept(), step.signer)) })
		equal(f, kept().Unknown, store.UnknownReading{At: f.clock.read(), Signer: step.signer, Count: step.count})
	}
	equal(f, kept().AskedAt, f.clock.read())
}
