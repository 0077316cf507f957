package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// domain adds a pending domain of the tenant.
func (f *fixture) domain(tenantID, name string) doorward.Domain {
	f.Helper()
	d := doorward.Domain{ID: f.id(doorward.PrefixDomain), TenantID: tenantID, Name: name, Status: doorward.DomainPending, CreatedAt: f.clock.read()}
	d.Token = "token of " + d.ID
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertDomain(f.Context(), d)) })
	return d
}

func domains(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	first := f.domain(acme.ID, "acme.example")
	f.clock.move(time.Second)
	second := f.domain(acme.ID, "xn--bcher-kva.example")
	f.domain(zeta.ID, "acme.example")
	f.wantNone(f.Read().Domain(ctx, "dom_none"))
	equal(f, f.value(f.Read().Domain(ctx, first.ID)), first)
	page, err := f.Read().DomainPage(ctx, acme.ID, doorward.Window{Limit: 1})
	noError(f, err)
	equal(f, page.Items, []doorward.Domain{second})
	equal(f, f.value(f.Read().Domains(ctx, acme.ID)), []doorward.Domain{first, second})
	equal(f, f.value(f.Read().CountDomains(ctx, acme.ID)), 2)
	f.write(func(tx *store.Tx) {
		again := first
		again.ID, again.Token = "dom_again", "another"
		f.wantNoChange(tx.InsertDomain(ctx, again))
	})

	con := f.connection(acme, "Okta").ID
	equal(f, f.value(f.Read().ConnectionIn(ctx, acme.ID, con)), true)
	equal(f, f.value(f.Read().ConnectionIn(ctx, zeta.ID, con)), false)
	equal(f, f.value(f.Read().ConnectionIn(ctx, acme.ID, "con_none")), false)
	f.write(func(tx *store.Tx) { noError(f, tx.SetDomainConnection(ctx, first.ID, con)) })
	first.ConnectionID = con
	equal(f, f.value(f.Read().Domain(ctx, first.ID)), first)
	equal(f, f.value(f.Read().VerifiedDomainsOf(ctx, con)), []doorward.Domain(nil))
	f.write(func(tx *store.Tx) { noError(f, tx.MarkDomainChecked(ctx, first.ID)) })
	checked := f.clock.read()
	first.CheckedAt = &checked
	equal(f, f.value(f.Read().Domain(ctx, first.ID)), first)
	now := f.clock.move(time.Second)
	f.write(func(tx *store.Tx) { noError(f, tx.VerifyDomain(ctx, first.ID, now.Add(time.Hour))) })
	first.Status, first.VerifiedAt, first.CheckedAt = doorward.DomainVerified, &now, &now
	equal(f, f.value(f.Read().VerifiedDomainsOf(ctx, con)), []doorward.Domain{first})
	f.write(func(tx *store.Tx) { noError(f, tx.SetDomainConnection(ctx, first.ID, "")) })
	first.ConnectionID = ""
	equal(f, f.value(f.Read().Domain(ctx, first.ID)), first)
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteDomain(ctx, first.ID)) })
	f.wantNone(f.Read().Domain(ctx, first.ID))
}

// looksAtDomains: a held domain is claimed once when its look is due, lapses after its record has been missing
// long enough, and is not looked at once it is released.
func looksAtDomains(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	d := f.domain(acme.ID, "acme.example")
	claimed := func() (ids []string) {
		isDue := f.value(f.Read().IsDomainDue(ctx, f.clock.read()))
		defer func() { equal(f, isDue, len(ids) > 0) }()
		f.write(func(tx *store.Tx) {
			ids = nil
			all, err := tx.ClaimDomains(ctx, tx.Now.Add(time.Hour), 10)
			noError(f, err)
			for _, c := range all {
				ids = append(ids, c.ID)
			}
		})
		return ids
	}
	equal(f, claimed(), []string(nil)) // pending
	verified := f.clock.read()
	f.write(func(tx *store.Tx) { noError(f, tx.VerifyDomain(ctx, d.ID, tx.Now.Add(24*time.Hour))) })
	equal(f, claimed(), []string(nil)) // not due
	f.clock.move(24 * time.Hour)
	equal(f, claimed(), []string{d.ID})
	equal(f, claimed(), []string(nil)) // claimed
	f.clock.move(time.Hour)
	equal(f, claimed(), []string{d.ID}) // the first look has ended without a result

	missing := f.clock.move(time.Second)
	look := func(found bool) {
		f.write(func(tx *store.Tx) { noError(f, tx.RecordDomainLook(ctx, d.ID, found, tx.Now.Add(24*time.Hour))) })
	}
	look(false)
	now := f.clock.move(time.Second)
	look(false)
	d.Status, d.VerifiedAt, d.CheckedAt, d.MissingSince = doorward.DomainVerified, &verified, &now, &missing
	equal(f, f.value(f.Read().Domain(ctx, d.ID)), d)
	now = f.clock.move(time.Second)
	look(true)
	d.CheckedAt, d.MissingSince = &now, nil
	equal(f, f.value(f.Read().Domain(ctx, d.ID)), d)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.LapseDomain(ctx, d.ID, now, now)) })
	look(false)
	lapsed := f.clock.move(time.Second)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.LapseDomain(ctx, d.ID, now.Add(-time.Second), lapsed))
		f.wantChange(tx.LapseDomain(ctx, d.ID, now, lapsed))
		f.wantNoChange(tx.LapseDomain(ctx, d.ID, now, lapsed))
	})
	d.Status, d.CheckedAt, d.MissingSince, d.LapsedAt = doorward.DomainLapsed, &lapsed, &now, &lapsed
	equal(f, f.value(f.Read().Domain(ctx, d.ID)), d)
	equal(f, claimed(), []string{d.ID}) // a lapsed one is looked at, too
	look(true)                          // a proof of a lapsed one is VerifyDomain
	equal(f, f.value(f.Read().Domain(ctx, d.ID)), d)
	again := f.clock.move(time.Second)
	f.write(func(tx *store.Tx) { noError(f, tx.VerifyDomain(ctx, d.ID, tx.Now)) })
	d.Status, d.VerifiedAt, d.CheckedAt, d.MissingSince, d.LapsedAt = doorward.DomainVerified, &again, &again, nil, nil
	equal(f, f.value(f.Read().Domain(ctx, d.ID)), d)

	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ReleaseDomain(ctx, d.ID))
		f.wantNoChange(tx.ReleaseDomain(ctx, d.ID))
	})
	d.Status, d.LapsedAt, d.Released = doorward.DomainLapsed, &again, true
	look(false)
	d.MissingSince = &again
	equal(f, f.value(f.Read().Domain(ctx, d.ID)), d)
	f.clock.move(48 * time.Hour)
	equal(f, claimed(), []string(nil))
}

func holderOfADomain(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	name := "acme.example"
	first, second := f.domain(acme.ID, name), f.domain(zeta.ID, name)
	f.wantNone(f.Read().DomainHolder(ctx, name))
	equal(f, f.value(f.Read().HeldDomains(ctx)), []store.HeldDomain(nil))
	verify := func(d doorward.Domain) {
		f.write(func(tx *store.Tx) { noError(f, tx.VerifyDomain(ctx, d.ID, tx.Now)) })
	}
	verify(first)
	held := f.value(f.Read().DomainHolder(ctx, name)).(doorward.Domain)
	equal(f, held.ID, first.ID)
	f.wantNone(f.Read().DomainHolder(ctx, "sub."+name))
	equal(f, f.value(f.Read().HeldDomains(ctx)), []store.HeldDomain{{Domain: held, TenantName: "Acme"}})
	free := func(before time.Duration, want bool) {
		f.Helper()
		f.write(func(tx *store.Tx) {
			got, err := tx.DeleteFreeDomain(ctx, first.ID, tx.Now.Add(-before))
			noError(f, err)
			equal(f, got, want)
		})
	}
	equal(f, errors.Is(f.try(ctx, func(tx *store.Tx) error { return tx.VerifyDomain(ctx, second.ID, tx.Now) }), store.ErrHeld), true)
	free(0, false)
	f.write(func(tx *store.Tx) {
		noError(f, tx.RecordDomainLook(ctx, first.ID, false, tx.Now))
		f.wantChange(tx.LapseDomain(ctx, first.ID, tx.Now, tx.Now))
	})
	free(time.Second, false)
	f.clock.move(time.Second)
	free(time.Second, true)
	verify(second)
	equal(f, f.value(f.Read().DomainHolder(ctx, name)).(doorward.Domain).ID, second.ID)

	third := f.domain(acme.ID, name)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.ReleaseDomain(ctx, third.ID)) }) // pending
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ReleaseDomain(ctx, second.ID))
		f.wantChange(tx.DeleteFreeDomain(ctx, second.ID, tx.Now.Add(-time.Hour)))
	})
}

// manyProofsOfADomain: of many tenants that prove a domain at once, one becomes its holder.
func manyProofsOfADomain(f *fixture) {
	const tenants = 20
	entries := make([]doorward.Domain, tenants)
	for i := range entries {
		entries[i] = f.domain(f.tenant("Tenant").ID, "acme.example")
	}
	errs := together(tenants, func(i int) error {
		return f.try(f.Context(), func(tx *store.Tx) error { return tx.VerifyDomain(f.Context(), entries[i].ID, tx.Now) })
	})
	holders := 0
	for _, err := range errs {
		if err == nil {
			holders++
		} else if !errors.Is(err, store.ErrHeld) {
			f.Error(err)
		}
	}
	equal(f, holders, 1)
}

// futureDomains: what was written of domains while the clock was ahead becomes now, and their looks are due a day
// from now; other times stay.
func futureDomains(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	day := 24 * time.Hour
	verify := func(d doorward.Domain) {
		f.write(func(tx *store.Tx) { noError(f, tx.VerifyDomain(ctx, d.ID, tx.Now.Add(day))) })
	}
	missing := func(d doorward.Domain) {
		f.write(func(tx *store.Tx) { noError(f, tx.RecordDomainLook(ctx, d.ID, false, tx.Now.Add(day))) })
	}
	before, ahead, lapsed := f.domain(acme.ID, "a.example"), f.domain(acme.ID, "b.example"), f.domain(acme.ID, "c.example")
	verify(before)
	missing(before)
	verify(ahead)
	verify(lapsed)
	was := f.value(f.Read().Domain(ctx, before.ID))
	f.clock.move(50 * day)
	missing(ahead)
	missing(lapsed)
	f.write(func(tx *store.Tx) { f.wantChange(tx.LapseDomain(ctx, lapsed.ID, tx.Now, tx.Now.Add(day))) })
	now := f.clock.move(-50*day + time.Second)
	f.write(func(tx *store.Tx) {
		_, err := tx.ClampFuture(ctx)
		noError(f, err)
	})
	equal(f, f.value(f.Read().Domain(ctx, before.ID)), was)
	got := f.value(f.Read().Domain(ctx, ahead.ID)).(doorward.Domain)
	equal(f, []time.Time{*got.CheckedAt, *got.MissingSince}, []time.Time{now, now})
	got = f.value(f.Read().Domain(ctx, lapsed.ID)).(doorward.Domain)
	equal(f, []time.Time{*got.CheckedAt, *got.MissingSince, *got.LapsedAt}, []time.Time{now, now, now})
	f.clock.move(day)
	f.write(func(tx *store.Tx) {
		due, err := tx.ClaimDomains(ctx, tx.Now.Add(day), 10)
		noError(f, err)
		equal(f, len(due), 3)
	})
}

// ordersOfDomains: the list is read forward and back, with its total, also where times are equal.
func ordersOfDomains(f *fixture) {
	acme := f.tenant("Acme")
	for i := range 4 {
		f.domain(acme.ID, fmt.Sprintf("%c.example", 'a'+i))
		if i != 1 {
			f.clock.move(time.Second)
		}
	}
	read := f.Read()
	wantOrders(f, "createdAt", 4, func(d doorward.Domain) string { return d.ID }, func(w doorward.Window) (doorward.Page[doorward.Domain], error) {
		return read.DomainPage(f.Context(), acme.ID, w)
	})
}
