package store_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// trail writes events whose times are not in order.
type trail struct {
	*testing.T
	db    *store.DB
	write *sql.DB // for statements of the test's own
	rand  *rand.Rand
	now   time.Time
	n     int // events made
}

func newTrail(t *testing.T, dsn string) *trail {
	tr := &trail{T: t, rand: rand.New(rand.NewPCG(1, 2)), now: time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)}
	tr.db = storetest.Migrated(t, dsn, func() time.Time { return tr.now })
	tr.write, _ = store.Pools(tr.db)
	return tr
}

// add writes transactions with up to three events each, some of them late. The clock runs,
// stands, and is set back.
func (t *trail) add(transactions int) {
	t.Helper()
	for range transactions {
		t.now = t.now.Add([]time.Duration{0, time.Second, time.Second, 2 * time.Second, 3 * time.Second, -4 * time.Second}[t.rand.IntN(6)])
		_, err := t.db.Write(t.Context(), func(tx *store.Tx) error {
			for range 1 + t.rand.IntN(3) {
				e := t.event()
				if t.rand.IntN(4) == 0 {
					e.At = tx.Now.Add(-time.Duration(t.rand.IntN(6)) * time.Second)
					tx.InsertPastEvent(e)
				} else if err := tx.InsertEvent(t.Context(), e); err != nil {
					return err
				}
			}
			return nil
		})
		ok(t, err)
	}
}

func (t *trail) event() doorward.Event {
	t.n++
	action := []doorward.Action{doorward.UserRole, doorward.SessionOpen}[t.n%2]
	return doorward.Event{ID: fmt.Sprintf("evt_%03d", t.n), Action: action, Outcome: doorward.Done, Target: doorward.Object{TenantID: "tnt_1"}}
}

// wantOrder compares what the chain knows of its order with all its events.
func (t *trail) wantOrder(when string) {
	t.Helper()
	all, err := storetest.Events(t.Context(), t.db.Read(), "tnt_1")
	ok(t, err)
	var latest, disorder int64
	for _, e := range all {
		latest = max(latest, e.At.UnixMicro())
		disorder = max(disorder, latest-e.At.UnixMicro())
	}
	if n := storetest.Query[int](t, t.write, `SELECT count(*) FROM audit_chains WHERE timed = $1 AND latest_at = $2 AND disorder = $3`, len(all), latest, disorder); n != 1 {
		t.Errorf("%s: the chain doesn't have %d events until %d, with a disorder of %d", when, len(all), latest, disorder)
	}
}

// check compares searches by time with the events that they should find.
func (t *trail) check(when string) {
	t.Helper()
	all, err := storetest.Events(t.Context(), t.db.Read(), "tnt_1")
	ok(t, err)
	first := slices.MinFunc(all, func(a, b doorward.Event) int { return a.At.Compare(b.At) }).At
	last := slices.MaxFunc(all, func(a, b doorward.Event) int { return a.At.Compare(b.At) }).At
	step := max(last.Sub(first)/4, time.Second)
	for from := first; from.Before(last.Add(2 * step)); from = from.Add(step) {
		for to := from.Add(-step); to.Before(last.Add(2 * step)); to = to.Add(step) {
			for _, f := range []store.EventFilter{{From: &from, To: &to}, {To: &to}, {From: &from, Action: doorward.UserRole}, {To: &to, Action: doorward.SessionOpen}} {
				t.compare(fmt.Sprintf("%s, %v to %v, action %q", when, f.From, f.To, f.Action), f, all)
			}
		}
	}
}

func (t *trail) compare(name string, f store.EventFilter, all []doorward.Event) {
	t.Helper()
	var want []int64
	for _, e := range all {
		if (f.From == nil || !e.At.Before(*f.From)) && (f.To == nil || e.At.Before(*f.To)) && (f.Action == "" || e.Action == f.Action) {
			want = append(want, e.Seq)
		}
	}
	for _, sort := range []string{"at", "-at"} {
		if got := t.search(name, f, sort, len(want)); !slices.Equal(got, want) {
			t.Fatalf("%s, %s: found %v, want %v", name, sort, got, want)
		}
		slices.Reverse(want)
	}
}

// search reads all pages, and from each page also the one before it.
func (t *trail) search(name string, f store.EventFilter, sort string, total int) (all []int64) {
	t.Helper()
	w := doorward.Window{Limit: 25, Sort: sort, Count: true}
	for {
		page, err := t.db.Read().EventPage(t.Context(), "tnt_1", f, w)
		ok(t, err)
		if page.Total != total {
			t.Fatalf("%s: a total of %d, want %d", name, page.Total, total)
		}
		if page.Prev != nil {
			back, err := t.db.Read().EventPage(t.Context(), "tnt_1", f, doorward.Window{Limit: 25, Sort: sort, Before: *page.Prev})
			ok(t, err)
			if n := len(back.Items); n != 25 || back.Items[n-1].Seq != all[len(all)-1] {
				t.Fatalf("%s: %d events on the page before", name, n)
			}
		}
		for _, e := range page.Items {
			all = append(all, e.Seq)
		}
		if page.Next == nil {
			return all
		}
		w.After = *page.Next
	}
}

// A search by time finds the same events in the same order as one that reads the whole trail,
// also if their times are not in order, and after the oldest were deleted.
func TestSearchesByTimeFindAll(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			tr := newTrail(t, dsn(t))
			tr.add(30)
			tr.check("in any order")
			tr.wantOrder("in any order")
			_, err := tr.db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.TrimTrail(t.Context(), "tnt_1", tr.now.Add(time.Hour), 20)
				return err
			})
			ok(t, err)
			tr.check("without the oldest")
		})
	}
}

// A search by time reads what it finds, and the events within the disorder on either side.
func TestSearchesByTimeReadLittle(t *testing.T) {
	tr := newTrail(t, storetest.Engines["sqlite"](t))
	start := tr.now
	_, err := tr.db.Write(t.Context(), func(tx *store.Tx) error {
		for i := range 1000 {
			e := tr.event()
			e.At = start.Add(time.Duration(i) * time.Second)
			if i == 500 {
				e.At = e.At.Add(-2 * time.Second)
			}
			tx.InsertPastEvent(e)
		}
		return nil
	})
	ok(t, err)
	const disorder = 2 - 1 // an event is set back by 2 s, and is then 1 s before the previous one
	for _, c := range []struct{ from, to, lo, hi int64 }{
		{100, 200, 100 - disorder, 200 + disorder + 1},
		{-50, 2000, 0, 1001},
		{1100, 1200, 1000, 1001},
	} {
		lo, hi, err := store.NumbersOf(t.Context(), tr.db.Read(), "tnt_1", start.Add(time.Duration(c.from)*time.Second), start.Add(time.Duration(c.to)*time.Second))
		ok(t, err)
		if lo != c.lo || hi != c.hi {
			t.Errorf("%d to %d s: numbers between %d and %d, want %d and %d", c.from, c.to, lo, hi, c.lo, c.hi)
		}
	}
}
