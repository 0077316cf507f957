package domain_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// Of many tenants that prove a domain at once, on several nodes, one holds it, and each of the others is told that
// it is taken: when nobody held it before, and when all take it over from an earlier holder.
func TestRaceProofs(t *testing.T) {
	const tenants = 6
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, first := f.Tenant()
		var owners []apptest.Person
		for range tenants {
			_, owner := f.Tenant()
			owners = append(owners, owner)
		}
		for round, hasHolder := range []bool{false, true} {
			name := fmt.Sprintf("n%d.example", round)
			if hasHolder {
				proved(f, first, name)
				f.NoError(apptest.ErrorOf(f.Node(0).Domains.Release(f.Context(), apptest.Operator, name)))
			}
			entries, values := make([]doorward.Domain, tenants), make([]string, tenants)
			for i, owner := range owners {
				entries[i] = add(f, owner, name)
				_, values[i] = entries[i].Record()
			}
			f.DNS.TXT("_doorward."+name, values...)
			errs := make([]error, tenants)
			done := make(chan struct{}, tenants)
			for i := range errs {
				go func() {
					_, errs[i] = f.Node(i).Domains.Verify(f.Context(), owners[i].Caller, entries[i].ID)
					done <- struct{}{}
				}()
			}
			for range errs {
				<-done
			}
			winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeDomainTaken: tenants - 1})
			holder, err := f.DB.Read().DomainHolder(f.Context(), name)
			f.NoError(err)
			wantEqual(f, holder.ID, entries[winner].ID)
		}
	})
}

// Two transactions that have both seen no holder: the index lets one be it, and the other is run again.
func TestRaceProofsInTurn(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	_, other := f.Tenant()
	mine, theirs := add(f, owner, "acme.example"), add(f, other, "acme.example")
	publish(f, theirs)
	refused := make(chan error, 1)
	f.WhileLocked(func(tx *store.Tx) error { return tx.VerifyDomain(f.Context(), mine.ID, tx.Now.Add(time.Hour)) }, func(waitFor func(int, <-chan struct{})) {
		go func() {
			_, err := f.Node(1).Domains.Verify(f.Context(), other.Caller, theirs.ID)
			refused <- err
		}()
		waitFor(1, nil)
	})
	wantCode(f, <-refused, doorward.CodeDomainTaken)
}

// Of several nodes that look for due domains at once, one looks at each.
func TestRaceWatch(t *testing.T) {
	const domains, nodes = 20, 4
	for _, e := range apptest.Engines {
		e.Nodes = nodes
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			clock := apptest.NewStoppedClock()
			f := apptest.New(t, e, apptest.NoLimits, clock.Now)
			_, owner := f.Tenant()
			var all []doorward.Domain
			for i := range domains {
				all = append(all, proved(f, owner, fmt.Sprintf("n%d.example", i)))
			}
			clock.Move(24 * time.Hour)
			errs := make(chan error, nodes)
			for i := range nodes {
				go func() { errs <- f.Node(i).Domains.Watch(f.Context()) }()
			}
			for range nodes {
				f.NoError(<-errs)
			}
			for _, d := range all {
				name, _ := d.Record()
				wantEqual(f, f.DNS.Asked(name), 2) // with the proof
			}
		})
	}
}

// Two nodes that have both seen that a domain is due: one looks at it.
func TestRaceClaims(t *testing.T) {
	t.Parallel()
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, clock.Now)
	_, owner := f.Tenant()
	proved(f, owner, "acme.example")
	asked := f.DNS.Asked(record)
	clock.Move(24 * time.Hour)
	looked := make(chan error, 1)
	claim := func(tx *store.Tx) error {
		claimed, err := tx.ClaimDomains(f.Context(), tx.Now.Add(time.Hour), 10)
		if len(claimed) != 1 {
			f.Errorf("%d domains are due", len(claimed))
		}
		return err
	}
	f.WhileLocked(claim, func(waitFor func(int, <-chan struct{})) {
		go func() { looked <- f.Node(1).Domains.Watch(f.Context()) }()
		waitFor(1, nil)
	})
	f.NoError(<-looked)
	wantEqual(f, f.DNS.Asked(record), asked)
}

// A caller who gives up while a name server is silent changes nothing.
func TestRaceSilence(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		d := proved(f, owner, "acme.example")
		f.DNS.Silence(record, true)
		before, asked := get(f, d), f.DNS.Asked(record)
		ctx, cancel := context.WithCancel(f.Context())
		refused := make(chan error, 1)
		go func() {
			_, err := f.Node(0).Domains.Verify(ctx, owner.Caller, d.ID)
			refused <- err
		}()
		f.Until("the question", func() bool { return f.DNS.Asked(record) > asked })
		cancel()
		wantCode(f, <-refused, doorward.CodeProviderUnavailable)
		wantEqual(f, get(f, d), before)
	})
}
