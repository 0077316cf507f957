package storetest

import (
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// samlConnection adds an active connection whose provider's metadata are read at an address.
func (f *fixture) samlConnection(t doorward.Tenant) doorward.Connection {
	f.Helper()
	c := doorward.Connection{
		ID: f.id(doorward.PrefixConnection), TenantID: t.ID, Type: doorward.SAML, Name: "SAML", Product: doorward.Okta,
		Status: doorward.ConnectionActive, CreatedAt: f.clock.read(),
		InForce: doorward.ConnectionParameters{Issuer: "https://idp.example/ß", EmailFrom: "email", MetadataURL: "https://idp.example/metadata", SubjectFrom: "uid"},
		JIT:     doorward.JITOff, JITRole: doorward.RoleUser, Outside: doorward.OutsideInvite, Ends: doorward.EndsTenant, FactorACR: []string{},
		Mappings: []doorward.GroupMapping{}, SignRequests: true,
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertConnection(f.Context(), c)) })
	c.InForce.Revision = f.stored(c).InForce.Revision
	return c
}

// metadataOfConnections: what is read at an address is kept for all that has it; certificates that were taken away stay
// away until the parameters say otherwise; the end of the last one has its notices once.
func metadataOfConnections(f *fixture) {
	ctx := f.Context()
	const inForce, pending = false, true
	c := f.samlConnection(f.tenant("Acme"))
	equal(f, f.stored(c), c)
	c.SignRequests, c.Encrypt = false, true
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateConnection(ctx, c)) })
	equal(f, f.stored(c), c)
	kept := func(isPending bool) string {
		return f.value(f.Read().KeptDiscovery(ctx, c.ID, isPending)).(store.KeptDiscovery).Text
	}
	next := c.InForce
	next.SubjectFrom, next.RemovedCertificates = "employee", []string{"aa", "bb"}
	f.write(func(tx *store.Tx) {
		noError(f, tx.SetConnectionParameters(ctx, c.ID, pending, next))
		equal(f, f.value(tx.KeepMetadata(ctx, c.ID, inForce, "https://other.example", c.InForce.MetadataURL, "{}")), []store.KeptMetadata(nil))
		equal(f, f.value(tx.KeepMetadata(ctx, c.ID, inForce, c.InForce.Issuer, "https://idp.example/other", "{}")), []store.KeptMetadata(nil))
		all, err := tx.KeepMetadata(ctx, c.ID, inForce, c.InForce.Issuer, c.InForce.MetadataURL, "{}")
		noError(f, err)
		if len(all) == 2 && all[0].Pending {
			all[0], all[1] = all[1], all[0]
		}
		equal(f, all, []store.KeptMetadata{{}, {Pending: true, Removed: []string{"aa", "bb"}}})
	})
	equal(f, []string{kept(inForce), kept(pending)}, []string{"{}", "{}"})
	next.Revision = f.stored(c).Pending.Revision
	equal(f, *f.stored(c).Pending, next)

	f.write(func(tx *store.Tx) { // a text is that of one
		next.MetadataURL = ""
		noError(f, tx.SetConnectionParameters(ctx, c.ID, pending, next))
		equal(f, f.value(tx.KeepMetadata(ctx, c.ID, pending, next.Issuer, "", "[]")), []store.KeptMetadata{{Pending: true, Removed: []string{"aa", "bb"}}})
		noError(f, tx.RemoveCertificates(ctx, c.ID, inForce, []string{"cc"}))
	})
	equal(f, []string{kept(inForce), kept(pending)}, []string{"{}", "[]"})
	equal(f, f.stored(c).InForce.RemovedCertificates, []string{"cc"})
	equal(f, f.stored(c).Pending.RemovedCertificates, []string{"aa", "bb"})

	due := func() int {
		return len(f.value(f.Read().DiscoveryDue(ctx, f.clock.read().Add(-day), 10)).([]store.KeptDiscovery))
	}
	f.clock.move(day)
	equal(f, due(), 1) // not the text's
	f.write(func(tx *store.Tx) { f.wantChange(tx.SwitchConnection(ctx, c.ID, false)) })
	f.clock.move(day)
	equal(f, due(), 0)
	endsOfCertificates(f, c)
}

func endsOfCertificates(f *fixture, c doorward.Connection) {
	ctx := f.Context()
	const inForce, pending = false, true
	until := f.clock.read().Add(20 * day)
	ending := func(within time.Duration, notices int) []store.EndingCertificates {
		return f.value(f.Read().EndingCertificates(ctx, f.clock.read(), f.clock.read().Add(within), notices, 10)).([]store.EndingCertificates)
	}
	equal(f, len(ending(30*day, 1)), 0)
	f.write(func(tx *store.Tx) {
		noError(f, tx.SetCertificatesEnd(ctx, c.ID, pending, until.Add(-day)))
		noError(f, tx.SetCertificatesEnd(ctx, c.ID, inForce, until))
	})
	want := store.EndingCertificates{ConnectionID: c.ID, TenantID: c.TenantID, ConnectionName: c.Name, Until: until}
	equal(f, ending(30*day, 1), []store.EndingCertificates{want})
	equal(f, len(ending(7*day, 2)), 0)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.MarkCertificateNotice(ctx, want, 1))
		f.wantNoChange(tx.MarkCertificateNotice(ctx, want, 1))
		noError(f, tx.SetCertificatesEnd(ctx, c.ID, inForce, until)) // read again: the same
	})
	equal(f, len(ending(30*day, 1)), 0)
	f.write(func(tx *store.Tx) {
		noError(f, tx.SetCertificatesEnd(ctx, c.ID, inForce, until.Add(day)))
		f.wantNoChange(tx.MarkCertificateNotice(ctx, want, 2)) // there is another one by now
	})
	equal(f, len(ending(30*day, 1)), 1)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SetConnectionStatus(ctx, c.ID, doorward.ConnectionDisabled))
	})
	equal(f, len(ending(30*day, 1)), 0)
}

func samlKeys(f *fixture) {
	ctx := f.Context()
	c := f.samlConnection(f.tenant("Acme"))
	f.wantNone(f.Read().SAMLKey(ctx, c.ID, store.SAMLSign))
	signs := store.SAMLKey{ID: "one", ConnectionID: c.ID, Purpose: store.SAMLSign, Sealed: []byte("sealed"), CreatedAt: f.clock.read()}
	decrypts := store.SAMLKey{ID: "two", ConnectionID: c.ID, Purpose: store.SAMLDecrypt, Sealed: []byte("sealed"), CreatedAt: f.clock.read()}
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.InsertSAMLKey(ctx, signs))
		f.wantChange(tx.InsertSAMLKey(ctx, decrypts))
		third := signs
		third.ID = "three"
		f.wantNoChange(tx.InsertSAMLKey(ctx, third))
	})
	equal(f, f.value(f.Read().SAMLKey(ctx, c.ID, store.SAMLSign)), signs)
	equal(f, f.value(f.Read().SAMLKey(ctx, c.ID, store.SAMLDecrypt)), decrypts)
}

// oneSAMLKey: of several nodes that make a key at the same time, one does.
func oneSAMLKey(f *fixture) {
	c := f.samlConnection(f.tenant("Acme"))
	f.onlyOne(4, func(tx *store.Tx, i int) (bool, error) {
		return tx.InsertSAMLKey(f.Context(), store.SAMLKey{ID: fmt.Sprint("key", i), ConnectionID: c.ID, Purpose: store.SAMLSign, Sealed: []byte("sealed")})
	})
}
