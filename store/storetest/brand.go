package storetest

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// brands: a tenant has an accent and a logo, both, one or none. An image is kept while a
// tenant uses its hash.
func brands(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	image, other := []byte{0x89, 'P', 'N', 'G', 0, 0xff, '\''}, []byte("another")
	logo := doorward.Logo{Hash: doorward.HashLogo(image), Width: 320, Height: 64, Background: "light"}
	plain := doorward.Logo{Hash: doorward.HashLogo(other), Width: 1, Height: 2}

	f.wantNone(f.Read().LogoImage(ctx, logo.Hash))
	acme.Brand = doorward.Brand{Accent: "#ffd400", Logo: logo}
	f.write(func(tx *store.Tx) {
		noError(f, tx.EditTenant(ctx, acme))
		noError(f, tx.PutLogo(ctx, acme.ID, plain, other))
		noError(f, tx.PutLogo(ctx, acme.ID, logo, image))
		noError(f, tx.PutLogo(ctx, zeta.ID, logo, image))
	})
	zeta.Brand.Logo = logo
	equal(f, f.value(allTenants(ctx, f.Read())), []doorward.Tenant{acme, zeta})
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), acme)
	equal(f, f.value(f.Read().LogoImage(ctx, logo.Hash)), image)
	f.wantNone(f.Read().LogoImage(ctx, plain.Hash))

	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteLogo(ctx, zeta.ID))
		f.wantNoChange(tx.DeleteLogo(ctx, zeta.ID))
		f.wantNoChange(tx.DeleteLogo(ctx, "tnt_none"))
	})
	equal(f, f.value(f.Read().LogoImage(ctx, logo.Hash)), image) // Acme still has it
	acme.Brand.Accent = ""
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, acme)) })
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), acme)

	// A logo is deleted with its tenant.
	f.write(func(tx *store.Tx) { f.wantChange(tx.DeleteTenant(ctx, acme.ID)) })
	f.wantNone(f.Read().LogoImage(ctx, logo.Hash))
}
