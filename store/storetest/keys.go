package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func operatorKeys(f *fixture) {
	ctx := f.Context()
	k := store.OperatorKey{ID: "key_1", Name: "deployment", CreatedAt: noon, May: []doorward.Action{}}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertOperatorKey(ctx, k, []byte{0, 1, 255})) })

	equal(f, f.value(f.Read().OperatorKey(ctx, []byte{0, 1, 255})), k)
	f.wantNone(f.Read().OperatorKey(ctx, []byte{0, 1}))
	f.wantNone(f.Read().OperatorKey(ctx, nil))

	later := store.OperatorKey{ID: "key_0", Name: "signup", CreatedAt: noon.Add(time.Second), ExpiresAt: pointerTo(noon.Add(day)), May: []doorward.Action{"tenant.create", "tenant.list"}}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertOperatorKey(ctx, later, []byte{1})) })
	equal(f, f.value(f.Read().OperatorKeys(ctx)), []store.OperatorKey{k, later})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.LockOperatorKey(ctx, later.ID)), later)
		f.wantChange(tx.DeleteOperatorKey(ctx, k.ID))
		f.wantNone(tx.LockOperatorKey(ctx, k.ID))
		f.wantNoChange(tx.DeleteOperatorKey(ctx, k.ID))
	})
	equal(f, f.value(f.Read().OperatorKeys(ctx)), []store.OperatorKey{later})
	f.wantNone(f.Read().OperatorKey(ctx, []byte{0, 1, 255}))
}

func serviceKeys(f *fixture) {
	ctx := f.Context()
	k := doorward.ServiceKey{ID: "key_1", Name: "router", May: []doorward.Action{"tenant.list", "user.read"}, Tenants: []string{"tnt_1", "tnt_2"}, CreatedAt: noon}
	later := doorward.ServiceKey{ID: "key_0", Name: "router", May: []doorward.Action{"user.invite"}, Tenants: []string{}, CreatedAt: noon.Add(time.Second)}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertServiceKey(ctx, later, []byte{1}))
		noError(f, tx.InsertServiceKey(ctx, k, []byte{0, 1, 255}))
	})
	equal(f, f.value(f.Read().ServiceKeyByHash(ctx, []byte{0, 1, 255})), k)
	f.wantNone(f.Read().ServiceKeyByHash(ctx, []byte{0, 1}))
	f.wantNone(f.Read().ServiceKey(ctx, "key_2"))
	equal(f, f.value(f.Read().ServiceKeys(ctx)), []doorward.ServiceKey{k, later})

	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.EnableServiceKey(ctx, k.ID))
		disabled, err := tx.DisableAllServiceKeys(ctx)
		k.Disabled, later.Disabled = true, true
		equal(f, f.value(disabled, err), []doorward.ServiceKey{k, later})
		f.wantChange(tx.EnableServiceKey(ctx, later.ID))
		later.Disabled = false
	})
	equal(f, f.value(f.Read().ServiceKeys(ctx)), []doorward.ServiceKey{k, later})
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteServiceKey(ctx, k.ID))
		f.wantNoChange(tx.DeleteServiceKey(ctx, k.ID))
	})
	f.wantNone(f.Read().ServiceKey(ctx, k.ID))
	equal(f, f.value(f.Read().ServiceKey(ctx, later.ID)), later)
}

// invitationsOfServices: the end of a service key ends its pending invitations, in all
// tenants, and no others.
func invitationsOfServices(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	invite := func(key string, t doorward.Tenant, email string) doorward.Invitation {
		i := f.draft(t, email)
		i.ServiceKeyID = key
		f.write(func(tx *store.Tx) { f.wantChange(tx.InsertInvitation(ctx, i)) })
		return i
	}
	used := invite("key_1", acme, "used@acme.example")
	f.write(func(tx *store.Tx) { f.wantChange(tx.AcceptInvitation(ctx, used.ID)) })
	invite("key_1", acme, "one@acme.example")
	invite("key_1", acme, "two@acme.example")
	invite("key_1", zeta, "one@acme.example")
	other, none := invite("key_2", zeta, "two@acme.example"), f.invitation(acme, "none@acme.example")
	want := []store.RevokedInvitations{{TenantID: acme.ID, Invitations: 2}, {TenantID: zeta.ID, Invitations: 1}}
	slices.SortFunc(want, func(a, b store.RevokedInvitations) int { return strings.Compare(a.TenantID, b.TenantID) })
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.RevokeInvitationsOfService(ctx, "key_1")), want) })
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.RevokeInvitationsOfService(ctx, "key_1")), []store.RevokedInvitations(nil))
	})
	for _, i := range []doorward.Invitation{other, none} {
		equal(f, f.value(f.Read().Invitation(ctx, i.ID)), i)
	}
}

func sharedSecrets(f *fixture) {
	ctx := f.Context()
	f.wantNone(f.Read().SharedSecret(ctx, "cursors"))
	got := make([][]byte, 8)
	errs := together(len(got), func(i int) error {
		return f.try(ctx, func(tx *store.Tx) (err error) {
			got[i], err = tx.MakeSharedSecret(ctx, "cursors", []byte{0, byte(i)})
			return err
		})
	})
	noError(f, errors.Join(errs...))
	for _, secret := range got {
		equal(f, secret, got[0])
	}
	equal(f, f.value(f.Read().SharedSecret(ctx, "cursors")), got[0])
	f.wantNone(f.Read().SharedSecret(ctx, "Cursors"))
}
