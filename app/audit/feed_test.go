package audit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// newTrail returns a Trail of another node. keep is how long events are kept; 0: for ever.
func (r *fixture) newTrail(keep time.Duration) *audit.Trail {
	r.Helper()
	db := r.open()
	return audit.New(db, func(context.Context) {}).WithRetention(access.New(db, lease.New(db, time.Second)), keep)
}

// serviceFor returns a service that covers these tenants; none: all.
func serviceFor(tenants ...string) doorward.Caller {
	k := doorward.ServiceKey{ID: "key_1", May: []doorward.Action{doorward.ServiceEventsRead}, Tenants: tenants}
	return doorward.Caller{Principal: doorward.PrincipalOfService(k)}
}

// eventNumbers returns tenant and number of each event, such as "tnt_a 3".
func eventNumbers(events []doorward.Event) (all []string) {
	for _, e := range events {
		all = append(all, fmt.Sprint(e.Target.TenantID, " ", e.Seq))
	}
	return all
}

// follower reads the feed to its end, in pages.
type follower struct {
	*audit.Trail
	by    doorward.Caller
	at    doorward.Position
	limit int
}

func (f *follower) read(ctx context.Context) (all []doorward.Event, err error) {
	for {
		events, next, err := f.FeedAll(ctx, f.by, f.at, "", f.limit)
		if err != nil {
			return all, err
		}
		f.at = next
		if all = append(all, events...); len(events) < f.limit {
			return all, nil
		}
	}
}

// Each follower gets each event once, in the order of the numbers within a tenant. There are several
// nodes and many writers, and some writers commit long after others that began later.
func TestFollowersMissNothing(t *testing.T) {
	onBoth(t, func(r *fixture) {
		const writers, each, tenants = 12, 20, 5
		ctx := r.Context()
		nodes := []*store.DB{r.db, r.open()}
		var errs [writers]error
		var writing, following sync.WaitGroup
		var isWritten atomic.Bool
		for w := range writers {
			writing.Go(func() {
				for n := range each {
					_, err := nodes[w%2].Write(ctx, func(tx *store.Tx) error {
						if w%3 == 0 {
							// Changes are written last: when this waits for their lock, the events
							// are written.
							tx.AnnounceNodes()
						}
						return errors.Join(tx.InsertEvent(ctx, event(fmt.Sprint("tnt_", rand.IntN(tenants)), w*1000+n)),
							tx.InsertEvent(ctx, event(fmt.Sprint("tnt_x", rand.IntN(tenants)), w*1000+n)))
					})
					errs[w] = errors.Join(errs[w], err)
				}
			})
		}
		release := r.blockChanges()
		seen := make([][]doorward.Event, 3)
		failed := make([]error, len(seen))
		for i := range seen {
			f := follower{Trail: r.newTrail(0), by: serviceFor(), limit: []int{1, 7, 200}[i]}
			following.Go(func() {
				for last := false; failed[i] == nil; {
					events, err := f.read(ctx)
					seen[i], failed[i] = append(seen[i], events...), err
					if len(seen[i]) > writers*each/2 { // the writers held back commit after later ones
						release()
					}
					if last {
						return
					}
					last = isWritten.Load() // the next round has everything that was committed before
				}
			})
		}
		writing.Wait()
		isWritten.Store(true)
		following.Wait()
		r.noError(errors.Join(append(errs[:], failed...)...))
		for i, events := range seen {
			if missed := disorder(events); len(events) != 2*writers*each || missed != "" {
				r.Errorf("follower %d has %d events of %d, and %s", i, len(events), 2*writers*each, missed)
			}
		}
	})
}

// disorder names the first event whose number doesn't follow the previous one of its trail.
func disorder(events []doorward.Event) string {
	last := map[string]int64{}
	for _, e := range events {
		id := e.Target.TenantID
		if last[id]++; e.Seq != last[id] {
			return fmt.Sprintf("event %d of %s where %d should be", e.Seq, id, last[id])
		}
	}
	return ""
}

// blockChanges keeps transactions that announce changes from committing until release is called or a
// second has passed. On PostgreSQL they have already written their events by then.
func (r *fixture) blockChanges() (release func()) {
	r.Helper()
	if r.db.Engine() == "sqlite" {
		return func() {} // it has one writer at a time
	}
	tx, err := r.raw.Begin()
	r.noError(err)
	_, err = tx.Exec(`SELECT last FROM change_position WHERE id = 1 FOR UPDATE`)
	r.noError(err)
	release = sync.OnceFunc(func() { _ = tx.Rollback() })
	time.AfterFunc(time.Second, release)
	r.Cleanup(release)
	return release
}

func TestFeedOfATenant(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		ctx := r.Context()
		by := doorward.Caller{}.As(doorward.User{TenantID: "tnt_a"})
		feed := func(after int64, types string, limit int) string {
			events, last, err := r.Feed(ctx, by, &after, types, limit)
			if err != nil {
				return code(err)
			}
			return fmt.Sprint(eventNumbers(events), " ", last)
		}
		if got := feed(0, "", 10); got != "[] 0" {
			r.Errorf("without events: %s", got)
		}
		r.writeEvents("tnt_a", 1, 3)
		r.writeEvents("tnt_b", 1, 1)
		for want, got := range map[string]string{
			"[tnt_a 1 tnt_a 2 tnt_a 3] 3": feed(0, "", 10),
			"[tnt_a 1 tnt_a 2] 2":         feed(0, "", 2),
			"[tnt_a 3] 3":                 feed(2, "user.*", 2),
			"[] 3":                        feed(0, "session.*,user.invite", 1),
			"events_gone":                 feed(4, "", 2), // beyond the end: a backup seems to have been restored
			"validation_failed":           feed(0, "user.*,users.*", 2),
		} {
			if got != want {
				r.Errorf("got %s, want %s", got, want)
			}
		}
		if events, last, err := r.Feed(ctx, by, nil, "*", 10); len(events) != 3 || last != 3 || err != nil {
			r.Errorf("from the beginning: %v, %d, %v", eventNumbers(events), last, err)
		}
	})
}

func code(err error) string {
	var e *doorward.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return fmt.Sprint(err)
}

// A service gets the events of the tenants that it covers, and the installation's events about them.
func TestFeedOfServices(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		ctx := r.Context()
		r.writeEvents("tnt_a", 1, 2)
		r.writeEvents("tnt_b", 1, 1)
		own := event("", 1)
		about := event("", 2)
		about.Target = doorward.Object{Type: "tenant", ID: "tnt_c"}
		_, err := r.db.Write(ctx, func(tx *store.Tx) error { return errors.Join(tx.InsertEvent(ctx, own), tx.InsertEvent(ctx, about)) })
		r.noError(err)
		trail := r.newTrail(0)
		for _, c := range []struct {
			by   doorward.Caller
			want []string
		}{
			{serviceFor(), []string{" 2", "tnt_a 1", "tnt_a 2", "tnt_b 1"}},
			{serviceFor("tnt_b"), []string{"tnt_b 1"}},
			{serviceFor("tnt_c", "tnt_b"), []string{" 2", "tnt_b 1"}},
		} {
			f := follower{Trail: trail, by: c.by, limit: 1}
			all, err := f.read(ctx)
			r.noError(err)
			for i := 0; i < 5; i++ { // further pages contain only what the service doesn't cover
				more, err := f.read(ctx)
				r.noError(err)
				all = append(all, more...)
			}
			if diff := cmp.Diff(c.want, eventNumbers(all)); diff != "" {
				r.Errorf("%v (-want +got):\n%s", c.by.Service.Tenants, diff)
			}
		}
	})
}

// Events that were kept long enough are deleted from the beginning of each trail. Verify finds no fault
// in the remaining events, and a follower that has missed events gets events_gone.
func TestOldEventsAreDeleted(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		ctx := r.Context()
		r.writeEvents("tnt_a", 1, 1200)
		r.writeEvents("tnt_b", 1, 3)
		idle := &follower{Trail: r.newTrail(0), by: serviceFor("tnt_a"), limit: 200}
		_, err := idle.read(ctx)
		r.noError(err)
		slow := &follower{Trail: idle.Trail, by: serviceFor(), limit: 10}
		_, slow.at, err = slow.FeedAll(ctx, slow.by, slow.at, "", 10)
		r.noError(err)
		r.writeEvents("tnt_a", 1201, 1210)
		keep := time.Hour
		r.age("tnt_a", 1200, 2*keep)
		r.age("tnt_b", 3, 2*keep)
		first, newest := r.links("tnt_a", 1)[0], r.mark("tnt_a")
		r.noError(r.newTrail(0).Sweep(ctx)) // deletes nothing
		r.noError(r.newTrail(keep).Sweep(ctx))
		if links := r.links("tnt_a", 2); links[0].Seq != 1201 {
			r.Errorf("the trail begins at %d, want 1201", links[0].Seq)
		}
		if m := r.mark("tnt_a"); m.Seq != 1210 || r.mark("tnt_b").Seq != 3 {
			r.Errorf("the trails end at %d and %d", m.Seq, r.mark("tnt_b").Seq)
		}
		// The first event was deleted because of its age: ContainsMark is true for it, too.
		for _, m := range []audit.Mark{newest, {TenantID: "tnt_a", Seq: first.Seq, Hash: first.Hash}} {
			if holds, err := r.ContainsMark(ctx, m); !holds || err != nil {
				r.Errorf("the mark of %d: %v, %v", m.Seq, holds, err)
			}
		}
		if intact, err := r.RecentIntact(ctx, "tnt_a", 100); !intact || err != nil {
			r.Errorf("the end is intact: %v, %v", intact, err)
		}

		r.checkFollowersAfterTrim(idle, slow)
		r.tamper("DELETE FROM events WHERE tenant_id = 'tnt_a' AND seq = 1201")
		if diff := cmp.Diff([]string{"deleted 1201"}, r.verdict("tnt_a")); diff != "" {
			r.Errorf("without the first event that was kept (-want +got):\n%s", diff)
		}
	})
}

// A tenant may keep its events for a shorter time than the installation, never for a longer one.
func TestTrailsOfTenantsThatKeepLess(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		const day = 24 * time.Hour
		for tenant, days := range map[string]int{"tnt_a": 30, "tnt_b": 365, "tnt_c": 0} {
			r.writeEvents(tenant, 1, 20)
			r.tamper(fmt.Sprintf("INSERT INTO tenants (id, name, status, created_at, keep_events_days) VALUES ('%s', 'Acme', 'active', 1, nullif(%d, 0))", tenant, days))
			r.age(tenant, 10, 31*day)
		}
		for _, c := range []struct {
			keep time.Duration // of the installation; 0: for ever
			want map[string]int64
		}{
			{0, map[string]int64{"tnt_a": 11, "tnt_b": 1, "tnt_c": 1}},
			{32 * day, map[string]int64{"tnt_a": 11, "tnt_b": 1, "tnt_c": 1}},
			{20 * day, map[string]int64{"tnt_a": 11, "tnt_b": 11, "tnt_c": 11}},
		} {
			r.noError(r.newTrail(c.keep).Sweep(r.Context()))
			for tenant, want := range c.want {
				if first := r.links(tenant, 1)[0].Seq; first != want {
					r.Errorf("kept for %v: the trail of %s begins at %d, want %d", c.keep, tenant, first, want)
				}
			}
		}
	})
}

func (r *fixture) checkFollowersAfterTrim(idle, slow *follower) {
	r.Helper()
	ctx := r.Context()
	if events, err := idle.read(ctx); len(events) != 10 || err != nil {
		r.Errorf("a follower who had read the deleted events gets %d events, %v", len(events), err)
	}
	if _, err := slow.read(ctx); code(err) != "events_gone" {
		r.Errorf("a follower who has missed events gets %v", err)
	}
	fresh := follower{Trail: idle.Trail, by: serviceFor(), limit: 3}
	events, err := fresh.read(ctx)
	r.noError(err)
	if len(events) != 10 || events[0].Seq != 1201 {
		r.Errorf("a follower who begins now gets %v", eventNumbers(events))
	}
	by := doorward.Caller{}.As(doorward.User{TenantID: "tnt_a"})
	for after, want := range map[int64]string{0: "events_gone", 1199: "events_gone", 1200: "<nil>", 1210: "<nil>"} {
		if _, _, err := r.Feed(ctx, by, &after, "", 100); code(err) != want {
			r.Errorf("after %d: %v, want %s", after, err, want)
		}
	}
	if events, last, err := r.Feed(ctx, by, nil, "", 100); len(events) != 10 || last != 1210 || err != nil {
		r.Errorf("from the oldest kept: %d, %d, %v", len(events), last, err)
	}
}

// age makes the events of a trail older, up to the number seq, and recomputes all hashes.
func (r *fixture) age(tenantID string, seq int64, by time.Duration) {
	r.Helper()
	chain, err := r.db.Read().Chain(r.Context(), tenantID)
	r.noError(err)
	head := chain.Genesis()
	tx, err := r.raw.Begin()
	r.noError(err)
	for _, l := range r.links(tenantID, int(chain.Last)) {
		if l.Seq <= seq {
			l.At = l.At.Add(-by)
		}
		head = l.Sum(head)
		_, err := tx.Exec(`UPDATE events SET at = $1, hash = $2 WHERE id = $3`, l.At.UnixMicro(), head, l.ID)
		r.noError(err)
	}
	_, err = tx.Exec(`UPDATE audit_chains SET head = $1 WHERE tenant_id = $2`, head, tenantID)
	r.noError(err)
	r.noError(tx.Commit())
}

func (r *fixture) links(tenantID string, n int) []store.Link {
	r.Helper()
	all, err := r.db.Read().Links(r.Context(), tenantID, doorward.Position{}, n)
	r.noError(err)
	return all
}

// A trail can be verified while its beginning is deleted.
func TestVerifyingWhileEventsAreDeleted(t *testing.T) {
	onBoth(t, func(r *fixture) {
		ctx := r.Context()
		_, err := r.db.Write(ctx, func(tx *store.Tx) error {
			var errs []error
			for n := range 3000 {
				errs = append(errs, tx.InsertEvent(ctx, event("tnt_a", n)))
			}
			return errors.Join(errs...)
		})
		r.noError(err)
		r.age("tnt_a", 2900, 2*time.Hour)
		var sweeping sync.WaitGroup
		var swept error
		sweeping.Go(func() { swept = r.newTrail(time.Hour).Sweep(ctx) })
		for range 20 {
			r.mark("tnt_a") // fails the test if Verify finds a fault
			if intact, err := r.RecentIntact(ctx, "tnt_a", 50); !intact || err != nil {
				r.Errorf("the end is intact: %v, %v", intact, err)
			}
		}
		sweeping.Wait()
		r.noError(swept)
		if first := r.links("tnt_a", 1)[0].Seq; first != 2901 {
			r.Errorf("the trail begins at %d, want 2901", first)
		}
	})
}

// A sweep that can't trim one trail trims the others, and its error names that trail.
func TestSweepPassesFailingTrails(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		for _, tenantID := range []string{"tnt_a", "tnt_b", "tnt_c"} {
			r.writeEvents(tenantID, 1, 3)
			r.age(tenantID, 3, 2*time.Hour)
		}
		_, err := r.raw.Exec(`CREATE TRIGGER fail BEFORE DELETE ON events WHEN old.tenant_id = 'tnt_a' BEGIN SELECT RAISE(ABORT, 'this row is broken'); END`)
		r.noError(err)
		if err := r.newTrail(time.Hour).Sweep(r.Context()); err == nil || !strings.Contains(err.Error(), "tnt_a") {
			r.Errorf("the sweep ends with %v, want the error of tnt_a", err)
		}
		if a, b, c := len(r.links("tnt_a", 9)), len(r.links("tnt_b", 9)), len(r.links("tnt_c", 9)); a != 3 || b+c != 0 {
			r.Errorf("%d, %d and %d events are left", a, b, c)
		}
	})
}
