package access

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// refused is a decision that another role could change.
var refused = decide.Decision{Reason: decide.ReasonRole}

// newKeepingFixture returns a fixture that keeps decisions for an hour. Its clock returns *now.
func newKeepingFixture(t *testing.T) (h *fixture, now *time.Time) {
	t.Helper()
	h, now = newFixture(t), new(time.Time)
	*now = time.Now().Truncate(time.Second)
	h.Writer = New(h.db, h.lease) // without decisions: KeepFor must be called before the first
	h.decisions.KeepFor(time.Hour)
	h.decisions.now = func() time.Time { return *now }
	return h, now
}

// record records the decision this many times, as each check does.
func (h *fixture) record(times int, d decide.Decision) {
	for range times {
		if due := h.decisions.Due(&h.owner.Principal, d); due.Any() {
			h.decisions.Record(due, &h.owner.Principal, doorward.UserRead, &doorward.Request{At: h.decisions.now()}, d)
		}
	}
}

func (h *fixture) keptIDs() (ids []string) {
	h.Helper()
	if err := h.decisions.Flush(h.Context()); err != nil {
		h.Fatal(err)
	}
	all, err := h.db.Read().Decisions(h.Context(), tenantID, time.Time{}, doorward.Position{At: 1 << 62}, 10_000)
	if err != nil {
		h.Fatal(err)
	}
	for _, k := range all {
		ids = append(ids, k.ID)
	}
	return ids
}

// At most a hundred decisions of a second are kept, and at most three hundred wait.
func TestKeptDecisionsAreBounded(t *testing.T) {
	h, now := newKeepingFixture(t)
	h.record(1000, refused)
	if n := len(h.keptIDs()); n != maxKeptPerSecond {
		t.Errorf("%d decisions of one second are kept, want %d", n, maxKeptPerSecond)
	}
	for range 5 {
		*now = now.Add(time.Second)
		h.record(1000, refused)
	}
	if n, dropped := len(h.keptIDs()), h.decisions.Dropped(); n != maxKeptPerSecond+maxQueued || dropped != 200 {
		t.Errorf("%d decisions are kept, and %d were dropped", n, dropped)
	}
}

// One in 1,024 permits is kept, and every refusal by a role, rank, key, tenant or policy.
func TestWhichDecisionsAreKept(t *testing.T) {
	h, now := newKeepingFixture(t)
	for range 50 {
		h.record(4096, decide.Decision{Allowed: true, Reason: decide.ReasonRole})
		h.keptIDs()
		*now = now.Add(time.Second)
	}
	if n := len(h.keptIDs()); n < 100 || n > 300 { // expected 200, standard deviation 14
		t.Errorf("of %d permits %d are kept", 50*4096, n)
	}
	for reason, want := range map[decide.Reason]int{decide.ReasonRole: 1, decide.ReasonKey: 1, decide.ReasonRank: 1, decide.ReasonTenant: 1, decide.ReasonPolicy: 1, decide.ReasonForeign: 0, decide.ReasonUnknown: 0} {
		before := len(h.keptIDs())
		h.record(1, decide.Decision{Reason: reason})
		if n := len(h.keptIDs()) - before; n != want {
			t.Errorf("%d refusals for the reason %s are kept, want %d", n, reason, want)
		}
	}
	h.decisions.KeepFor(0) // between decisions: nothing runs concurrently here
	before := len(h.keptIDs())
	if h.record(10, refused); len(h.keptIDs()) != before {
		t.Error("decisions are kept although none should be")
	}
}

// A decision about a resource whose attributes are too large is dropped before it is in memory.
func TestLargeDecisionsAreNotKept(t *testing.T) {
	h, _ := newKeepingFixture(t)
	for _, size := range []int{1, store.DecisionBytesMax} {
		r := &doorward.Request{Resource: &doorward.Resource{Type: "invoice", ID: "1", Attributes: map[string]any{"text": strings.Repeat("x", size)}}}
		d := refused
		h.decisions.Record(h.decisions.Due(&h.owner.Principal, d), &h.owner.Principal, doorward.UserRead, r, d)
	}
	if waiting := len(h.decisions.queue.waiting); waiting != 1 || h.decisions.Dropped() != 1 {
		t.Errorf("%d wait, and %d were dropped", waiting, h.decisions.Dropped())
	}
}

// Decisions that can't be written wait for the next flush; written ones are deleted when they
// are older than KeepFor allows, or lie in the future because the clock was ahead.
func TestKeptDecisionsAreRetriedAndSwept(t *testing.T) {
	h, _ := newKeepingFixture(t)
	h.record(3, refused)
	all := h.decisions.queue.take()
	if dropped := h.decisions.queue.giveBack(all); dropped != 0 {
		t.Errorf("%d were dropped", dropped)
	}
	kept := h.keptIDs()
	if len(kept) != 3 {
		t.Fatalf("%d are kept", len(kept))
	}
	if err := h.decisions.Sweep(h.Context()); err != nil || !slices.Equal(h.keptIDs(), kept) {
		t.Errorf("within their time a sweep leaves %d of 3, %v", len(h.keptIDs()), err)
	}
	_, err := h.db.Write(h.Context(), func(tx *store.Tx) error {
		for n, age := range []time.Duration{2 * time.Hour, -time.Hour} {
			k := store.KeptDecision{ID: []string{"dec_old", "dec_ahead"}[n], TenantID: tenantID, At: tx.Now.Add(-age)}
			if fits, err := tx.KeepDecision(h.Context(), k); err != nil || !fits {
				return err
			}
		}
		return nil
	})
	if err != nil || len(h.keptIDs()) != 5 {
		t.Fatal(err, len(h.keptIDs()))
	}
	if err := h.decisions.Sweep(h.Context()); err != nil || !slices.Equal(h.keptIDs(), kept) {
		t.Errorf("a sweep leaves %d, want the 3 that are not too old or in the future; %v", len(h.keptIDs()), err)
	}
}
