package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// setupLinks: a connection has one link at most, which one browser begins, and which goes with its maker or its
// connection.
func setupLinks(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, ben := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(acme, "ben@acme.example", doorward.RoleOwner)
	okta, entra := f.connection(acme, "Okta"), f.connection(acme, "Entra")
	link := func(id string, con doorward.Connection, maker doorward.User) doorward.SetupLink {
		now := f.clock.read()
		l := doorward.SetupLink{
			ID: id, TenantID: acme.ID, ConnectionID: con.ID, MakerID: maker.ID, CreatedAt: now, EndsAt: now.Add(time.Hour),
			MakerEmail: maker.Email, TenantName: acme.Name,
		}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertSetupLink(ctx, l, []byte("token of "+id))) })
		return l
	}
	first := link("stl_1", okta, ann)
	f.clock.move(time.Minute)
	second := link("stl_2", entra, ben)
	isRead := func(l doorward.SetupLink) {
		f.Helper()
		equal(f, f.value(f.Read().SetupLink(ctx, l.ID)), l)
		equal(f, f.value(f.Read().SetupLinkByToken(ctx, []byte("token of "+l.ID))), l)
		equal(f, f.value(f.Read().SetupLinkOfConnection(ctx, l.ConnectionID)), l)
	}
	isRead(first)
	isRead(second)
	f.wantNone(f.Read().SetupLinkByToken(ctx, []byte("another")))
	f.wantNone(f.Read().SetupLinkByBrowser(ctx, []byte("browser")))
	f.write(func(tx *store.Tx) { f.wantChange(tx.BeginSetupLink(ctx, first.ID, []byte("browser"))) })
	now := f.clock.read()
	first.BegunAt = &now
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.BeginSetupLink(ctx, first.ID, []byte("another browser"))) })
	isRead(first)
	equal(f, f.value(f.Read().SetupLinkByBrowser(ctx, []byte("browser"))), first)
	equal(f, f.value(f.Read().SetupLinksIn(ctx, acme.ID)), []doorward.SetupLink{first, second})
	equal(f, f.value(f.Read().SetupLinksMadeBy(ctx, ben.ID)), []doorward.SetupLink{second})

	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteSetupLinksOf(ctx, zeta.ID, ann.ID)), []doorward.SetupLink(nil))
		equal(f, f.value(tx.DeleteSetupLinksOf(ctx, acme.ID, ann.ID)), []doorward.SetupLink{first})
		f.wantNoChange(tx.DeleteSetupLink(ctx, first.ID))
		f.wantChange(tx.DeleteSetupLink(ctx, second.ID))
	})
	third := link("stl_3", okta, ann)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldSetupLinks(ctx, third.EndsAt.Add(-time.Second), 10)), int64(0))
		equal(f, f.value(tx.DeleteOldSetupLinks(ctx, third.EndsAt, 10)), int64(1))
	})
	link("stl_4", okta, ann)
	f.write(func(tx *store.Tx) { f.wantChange(tx.DeleteConnection(ctx, okta.ID)) })
	f.wantNone(f.Read().SetupLink(ctx, "stl_4"))
	link("stl_5", entra, ann)
	f.write(func(tx *store.Tx) { noError(f, tx.EndAllTrust(ctx)) })
	f.wantNone(f.Read().SetupLink(ctx, "stl_5"))

	ahead := doorward.SetupLink{ID: "stl_6", TenantID: acme.ID, ConnectionID: entra.ID, MakerID: ann.ID, CreatedAt: f.clock.read().Add(time.Hour), EndsAt: f.clock.read().Add(3 * time.Hour)}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertSetupLink(ctx, ahead, []byte("token"))) })
	f.write(func(tx *store.Tx) { f.value(tx.ClampFuture(ctx)) })
	equal(f, f.value(f.Read().SetupLink(ctx, ahead.ID)).(doorward.SetupLink).EndsAt, f.clock.read().Add(2*time.Hour))
}
