package decisionlog

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// refused is a decision that another role could change.
var refused = decide.Decision{Reason: decide.ReasonRole}

// fixture is a log over a tenant's database, and a principal whose decisions it keeps for an hour.
type fixture struct {
	*testing.T
	*Log
	db    *store.DB
	owner doorward.Principal
}

const tenantID = "tnt_acme"

// newFixture returns a fixture whose clock returns *now.
func newFixture(t *testing.T, dsn string) (f *fixture, now *time.Time) {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f = &fixture{T: t, db: db, owner: doorward.PrincipalOf(doorward.User{ID: "usr_owner", Role: doorward.RoleOwner, Status: doorward.UserActive, TenantID: tenantID, TenantStatus: doorward.TenantActive}, doorward.Session{})}
	now = new(time.Time)
	*now = time.Now().Truncate(time.Second)
	f.Log = New(func() time.Time { return *now }, f.write, f.inBatches)
	f.KeepFor(time.Hour)
	f.prepare(func(tx *store.Tx) error {
		return tx.InsertTenant(t.Context(), doorward.Tenant{ID: tenantID, Name: "Acme", Status: doorward.TenantActive})
	})
	return f, now
}

func (f *fixture) write(ctx context.Context, fn func(*store.Tx) error) error {
	_, err := f.db.Write(ctx, fn)
	return err
}

func (f *fixture) inBatches(ctx context.Context, batch func(*store.Tx, int) (int64, error)) error {
	return f.write(ctx, func(tx *store.Tx) error {
		_, err := batch(tx, 500)
		return err
	})
}

func (f *fixture) prepare(fn func(*store.Tx) error) {
	f.Helper()
	if err := f.write(f.Context(), fn); err != nil {
		f.Fatal(err)
	}
}

// record records the decision this many times, as each check does.
func (f *fixture) record(times int, d decide.Decision) {
	for range times {
		if due := f.Due(&f.owner, d); due.Any() {
			f.Record(due, &f.owner, doorward.UserRead, "", &doorward.Request{At: f.now()}, d)
		}
	}
}

func (f *fixture) keptIDs() (ids []string) {
	f.Helper()
	if err := f.Flush(f.Context()); err != nil {
		f.Fatal(err)
	}
	all, err := f.db.Read().Decisions(f.Context(), tenantID, time.Time{}, doorward.Position{At: 1 << 62}, 10_000)
	if err != nil {
		f.Fatal(err)
	}
	for _, k := range all {
		ids = append(ids, k.ID)
	}
	return ids
}

// At most a hundred decisions of a second are kept, and at most three hundred wait.
func TestKeptDecisionsAreBounded(t *testing.T) {
	f, now := newFixture(t, dbtest.SQLite(t))
	f.record(1000, refused)
	if n := len(f.keptIDs()); n != maxKeptPerSecond {
		t.Errorf("%d decisions of one second are kept, want %d", n, maxKeptPerSecond)
	}
	for range 5 {
		*now = now.Add(time.Second)
		f.record(1000, refused)
	}
	if n, dropped := len(f.keptIDs()), f.Dropped(); n != maxKeptPerSecond+maxQueued || dropped != 200 {
		t.Errorf("%d decisions are kept, and %d were dropped", n, dropped)
	}
}

// One in 1,024 permits is kept, and every refusal by a role, rank, key, tenant or policy.
func TestWhichDecisionsAreKept(t *testing.T) {
	f, now := newFixture(t, dbtest.SQLite(t))
	for range 50 {
		f.record(4096, decide.Decision{Allowed: true, Reason: decide.ReasonRole})
		f.keptIDs()
		*now = now.Add(time.Second)
	}
	if n := len(f.keptIDs()); n < 100 || n > 300 { // expected 200, standard deviation 14
		t.Errorf("of %d permits %d are kept", 50*4096, n)
	}
	for reason, want := range map[decide.Reason]int{decide.ReasonRole: 1, decide.ReasonKey: 1, decide.ReasonRank: 1, decide.ReasonTenant: 1, decide.ReasonPolicy: 1, decide.ReasonForeign: 0, decide.ReasonUnknown: 0} {
		before := len(f.keptIDs())
		f.record(1, decide.Decision{Reason: reason})
		if n := len(f.keptIDs()) - before; n != want {
			t.Errorf("%d refusals for the reason %s are kept, want %d", n, reason, want)
		}
	}
	f.KeepFor(0) // between decisions: nothing runs concurrently here
	before := len(f.keptIDs())
	if f.record(10, refused); len(f.keptIDs()) != before {
		t.Error("decisions are kept although none should be")
	}
}

// A decision about a resource whose attributes are too large is dropped before it is in memory.
func TestLargeDecisionsAreNotKept(t *testing.T) {
	f, _ := newFixture(t, dbtest.SQLite(t))
	for _, size := range []int{1, store.DecisionBytesMax} {
		r := &doorward.Request{Resource: &doorward.Resource{Type: "invoice", ID: "1", Attributes: map[string]any{"text": strings.Repeat("x", size)}}}
		d := refused
		f.Record(f.Due(&f.owner, d), &f.owner, doorward.UserRead, "", r, d)
	}
	if waiting := len(f.queue.waiting); waiting != 1 || f.Dropped() != 1 {
		t.Errorf("%d wait, and %d were dropped", waiting, f.Dropped())
	}
}

// Decisions that can't be written wait for the next flush; written ones are deleted when they
// are older than KeepFor allows, or lie in the future because the clock was ahead.
func TestKeptDecisionsAreRetriedAndSwept(t *testing.T) {
	f, _ := newFixture(t, dbtest.SQLite(t))
	f.record(3, refused)
	all := f.queue.take()
	if dropped := f.queue.giveBack(all); dropped != 0 {
		t.Errorf("%d were dropped", dropped)
	}
	kept := f.keptIDs()
	if len(kept) != 3 {
		t.Fatalf("%d are kept", len(kept))
	}
	if err := f.Sweep(f.Context()); err != nil || !slices.Equal(f.keptIDs(), kept) {
		t.Errorf("within their time a sweep leaves %d of 3, %v", len(f.keptIDs()), err)
	}
	err := f.write(f.Context(), func(tx *store.Tx) error {
		for n, age := range []time.Duration{2 * time.Hour, -time.Hour} {
			k := store.KeptDecision{ID: []string{"dec_old", "dec_ahead"}[n], TenantID: tenantID, At: tx.Now.Add(-age)}
			if fits, err := tx.KeepDecision(f.Context(), k); err != nil || !fits {
				return err
			}
		}
		return nil
	})
	if err != nil || len(f.keptIDs()) != 5 {
		t.Fatal(err, len(f.keptIDs()))
	}
	if err := f.Sweep(f.Context()); err != nil || !slices.Equal(f.keptIDs(), kept) {
		t.Errorf("a sweep leaves %d, want the 3 that are not too old or in the future; %v", len(f.keptIDs()), err)
	}
}

// When PostgreSQL refuses a value, only its row is lost.
func TestRefusedValuesHoldNothingBack(t *testing.T) {
	f, _ := newFixture(t, dbtest.Postgres(t))
	f.prepare(func(tx *store.Tx) error {
		return tx.InsertPolicy(f.Context(), store.PolicyVersion{TenantID: tenantID, Version: 1, Mode: store.PolicyObserves})
	})
	for _, id := range []string{"a", "b\x00", "c", "d" + manyDigits(), "e"} {
		f.add(store.ObservedPolicy{TenantID: tenantID, Version: 1, PolicyID: id}, 2)
	}
	if err := f.Flush(f.Context()); err != nil {
		t.Fatal(err)
	}
	observed, err := f.db.Read().ObservedCounts(f.Context(), tenantID, 1)
	if err != nil || !maps.Equal(observed, map[string]int64{"a": 2, "c": 2, "e": 2}) || f.Dropped() != 4 {
		t.Errorf("observed %v, %d dropped, %v", observed, f.Dropped(), err)
	}
}

// manyDigits returns a text that is too long for an index, however it is compressed.
func manyDigits() string {
	var b strings.Builder
	for range 10_000 {
		b.WriteByte('0' + byte(rand.IntN(10)))
	}
	return b.String()
}
