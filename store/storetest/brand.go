package storetest

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// brands: a tenant's accent and logo, with and without each, and the image by
// its hash for as long as somebody has it.
func brands(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	image, other := []byte{0x89, 'P', 'N', 'G', 0, 0xff, '\''}, []byte("another")
	logo := doorward.Logo{Hash: doorward.HashLogo(image), Width: 320, Height: 64, Ground: "light"}
	plain := doorward.Logo{Hash: doorward.HashLogo(other), Width: 1, Height: 2}

	none(w)(w.Read().LogoImage(ctx, logo.Hash))
	acme.Brand = doorward.Brand{Accent: "#ffd400", Logo: logo}
	w.write(func(tx *store.Tx) {
		ok(w, tx.EditTenant(ctx, acme))
		ok(w, tx.PutLogo(ctx, acme.ID, plain, other))
		ok(w, tx.PutLogo(ctx, acme.ID, logo, image))
		ok(w, tx.PutLogo(ctx, zeta.ID, logo, image))
	})
	zeta.Brand.Logo = logo
	same(w, []doorward.Tenant{acme, zeta})(w.Read().Tenants(ctx))
	same(w, acme)(w.Read().Tenant(ctx, acme.ID))
	same(w, image)(w.Read().LogoImage(ctx, logo.Hash))
	none(w)(w.Read().LogoImage(ctx, plain.Hash))

	w.write(func(tx *store.Tx) {
		yes(w)(tx.DeleteLogo(ctx, zeta.ID))
		no(w)(tx.DeleteLogo(ctx, zeta.ID))
		no(w)(tx.DeleteLogo(ctx, "tnt_none"))
	})
	same(w, image)(w.Read().LogoImage(ctx, logo.Hash)) // Acme has it still
	acme.Brand.Accent = ""
	w.write(func(tx *store.Tx) { ok(w, tx.EditTenant(ctx, acme)) })
	same(w, acme)(w.Read().Tenant(ctx, acme.ID))

	// As the version before does it, which knows of no logos.
	w.write(func(tx *store.Tx) { yes(w)(tx.DeleteTenant(ctx, acme.ID)) })
	none(w)(w.Read().LogoImage(ctx, logo.Hash))
}
