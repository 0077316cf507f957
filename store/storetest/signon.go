package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// removedMembers: who was removed from a tenant is remembered there, by the address, until that is forgotten.
func removedMembers(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	was := func(tenantID, address string) any { return f.value(f.Read().WasRemoved(ctx, tenantID, address)) }
	f.write(func(tx *store.Tx) {
		noError(f, tx.RememberUndone(ctx, acme.ID, "ann@acme.example"))
	})
	equal(f, f.value(f.Read().WasRemoved(ctx, acme.ID, "ann@acme.example")), true)
	equal(f, f.value(f.Read().RemovedSince(ctx, acme.ID, "ann@acme.example", time.UnixMicro(1))), false)
	f.write(func(tx *store.Tx) {
		noError(f, tx.RememberRemoval(ctx, acme.ID, "ann@acme.example"))
		noError(f, tx.RememberRemoval(ctx, acme.ID, "ann@acme.example"))
	})
	equal(f, f.value(f.Read().RemovedSince(ctx, acme.ID, "ann@acme.example", time.UnixMicro(1))), true)
	equal(f, []any{was(acme.ID, "ann@acme.example"), was(acme.ID, "ben@acme.example"), was(zeta.ID, "ann@acme.example")}, []any{true, false, false})
	f.write(func(tx *store.Tx) {
		noError(f, tx.ForgetRemoval(ctx, zeta.ID, "ann@acme.example"))
		noError(f, tx.ForgetRemoval(ctx, acme.ID, "ben@acme.example"))
	})
	equal(f, was(acme.ID, "ann@acme.example"), any(true))
	f.write(func(tx *store.Tx) { noError(f, tx.ForgetRemoval(ctx, acme.ID, "ann@acme.example")) })
	equal(f, was(acme.ID, "ann@acme.example"), any(false))
}

// rolesByHand: the role that was given by hand is a column of its own, of one membership, and follows a role
// that is replaced.
func rolesByHand(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	ben := f.member(acme, "ben@acme.example", doorward.RoleUser)
	floor := func(id string) any { return f.value(f.Read().RoleFloor(ctx, acme.ID, id)) }
	equal(f, floor(ann.ID), any(doorward.RoleUser)) // of before
	f.write(func(tx *store.Tx) {
		noError(f, tx.EndOldRoleFloor(ctx, acme.ID, ann.ID))
		noError(f, tx.SetRoleFloor(ctx, acme.ID, ben.ID, ""))
	})
	equal(f, floor(ann.ID), any(doorward.Role("")))
	f.write(func(tx *store.Tx) { noError(f, tx.SetRoleFloor(ctx, acme.ID, ann.ID, doorward.RoleAdmin)) })
	equal(f, []any{floor(ann.ID), floor(ben.ID)}, []any{doorward.RoleAdmin, doorward.Role("")})
	f.write(func(tx *store.Tx) { noError(f, tx.MoveRole(ctx, acme.ID, doorward.RoleAdmin, doorward.RoleViewer)) })
	equal(f, floor(ann.ID), any(doorward.RoleViewer))
	f.write(func(tx *store.Tx) { noError(f, tx.EndOldRoleFloor(ctx, acme.ID, ann.ID)) })
	equal(f, floor(ann.ID), any(doorward.RoleViewer))
	_, err := f.Read().RoleFloor(ctx, acme.ID, "usr_none")
	equal(f, err == store.ErrNone, true)
}
