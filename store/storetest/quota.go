package storetest

import (
	"errors"
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

	use := func(t doorward.Tenant, at time.Time, most int64) store.TenantUse {
		found, err := f.Read().TenantUse(ctx, t.ID, at, most)
		noError(f, err)
		return found
	}
	f.write(func(tx *store.Tx) { noError(f, insertEvents(f, tx, acme.ID, 2, 1)) })
	equal(f, use(acme, f.clock.read(), 100), store.TenantUse{Members: 2, Invited: 1, Events: 2})
	equal(f, use(acme, f.clock.read(), 1), store.TenantUse{Members: 1, Invited: 1, Events: 2})
	equal(f, use(zeta, f.clock.read(), 100), store.TenantUse{Members: 1})
}

// Events count by tenant and day of UTC. Nothing beyond the quota is committed. Events that
// don't count are never refused.
func eventsPerDay(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	three := int64(3)
	write := func(t doorward.Tenant, counted, others int) bool {
		err := f.try(ctx, func(tx *store.Tx) error { return insertEvents(f, tx, t.ID, counted, others) })
		if err != nil && !doorward.HasCode(err, doorward.CodeQuotaExceeded) {
			f.Fatal(err)
		}
		return err == nil
	}
	counted := func(t doorward.Tenant) int64 {
		n, err := f.Read().CountedEvents(ctx, t.ID, f.clock.read())
		noError(f, err)
		return n
	}
	equal(f, counted(acme), int64(0))
	equal(f, []bool{write(acme, 2, 1), write(zeta, 5, 0)}, []bool{true, true})
	equal(f, []int64{counted(acme), counted(zeta)}, []int64{2, 5})
	f.write(func(tx *store.Tx) {
		noError(f, tx.SetQuotas(ctx, acme.ID, doorward.Quotas{EventsPerDay: &three}))
	})
	equal(f, []bool{write(acme, 2, 0), write(acme, 1, 0), write(acme, 1, 1), write(acme, 0, 9), write(zeta, 9, 0)}, []bool{false, true, false, true, true})
	chain, err := f.Read().Chain(ctx, acme.ID)
	noError(f, err)
	equal(f, []int64{counted(acme), chain.Last}, []int64{3, 13})

	f.clock.move(day)
	equal(f, counted(acme), int64(0))
	equal(f, write(acme, 2, 0), true)
	f.clock.move(-day) // another node is a little behind at midnight
	equal(f, []bool{write(acme, 1, 0), write(acme, 1, 0)}, []bool{true, false})
	f.clock.move(day)
	equal(f, counted(acme), int64(3))
}

func insertEvents(f *fixture, tx *store.Tx, tenantID string, counted, others int) error {
	before, err := tx.CountedEvents(f.Context(), tenantID)
	for n := range counted + others {
		insert := tx.InsertEvent
		if n < counted {
			insert = tx.InsertCountedEvent
		}
		err = errors.Join(err, insert(f.Context(), doorward.Event{ID: f.id("evt_"), Target: doorward.Object{TenantID: tenantID}, Changes: []doorward.Change{}}))
	}
	after, failed := tx.CountedEvents(f.Context(), tenantID)
	equal(f, after, before+int64(counted))
	return errors.Join(err, failed)
}
