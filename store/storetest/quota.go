package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func quotas(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	f.member(acme, "ann@acme.example", doorward.RoleOwner)
	suspended := f.member(acme, "bob@acme.example", doorward.RoleUser)
	f.invitation(acme, "cid@acme.example")
	f.member(zeta, "zoe@zeta.example", doorward.RoleOwner)
	five, none := int64(5), int64(0)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SetUserStatus(ctx, acme.ID, suspended.ID, doorward.UserSuspended))
		noError(f, tx.SetQuotas(ctx, acme.ID, doorward.Quotas{People: &five, APIKeys: &none}))
	})
	found, err := f.Read().Tenant(ctx, acme.ID)
	noError(f, err)
	equal(f, found.Quotas, doorward.Quotas{People: &five, APIKeys: &none})
	found, err = f.Read().Tenant(ctx, zeta.ID)
	noError(f, err)
	equal(f, found.Quotas, doorward.Quotas{})

	counts := func(at time.Time) [2]int64 {
		members, invited, err := f.Read().CountPeople(ctx, acme.ID, at)
		noError(f, err)
		return [2]int64{members, invited}
	}
	equal(f, counts(noon), [2]int64{2, 1})
	equal(f, counts(noon.Add(365*day)), [2]int64{2, 0})
}
