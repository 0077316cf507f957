package lease_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/faultproxy"
	"github.com/doorward/doorward/internal/gcra"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// sharedLimit is one limit that several nodes divide, and the instants of everything granted.
type sharedLimit struct {
	testing.TB
	perSecond int
	origin    time.Time
	stop      chan struct{}
	callers   sync.WaitGroup

	mu      sync.Mutex
	granted []time.Duration
}

func newSharedLimit(t testing.TB, perSecond int) *sharedLimit {
	l := &sharedLimit{TB: t, perSecond: perSecond, origin: time.Now(), stop: make(chan struct{})}
	t.Cleanup(l.end)
	return l
}

func (l *sharedLimit) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.callers.Wait()
}

// exhaust takes all that a node grants until the end, also while the node is cut off.
func (l *sharedLimit) exhaust(node *lease.Lease) {
	l.callers.Go(func() {
		var limiter gcra.Limiter
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case <-tick.C:
				l.try(node, &limiter)
			}
		}
	})
}

// try takes events until none is granted. Each counts at an instant before it was granted.
func (l *sharedLimit) try(node *lease.Lease, limiter *gcra.Limiter) {
	for {
		now := time.Since(l.origin)
		share, known := node.Share(l.perSecond)
		if !known || limiter.Take(now, share) > 0 {
			return
		}
		l.mu.Lock()
		l.granted = append(l.granted, now)
		l.mu.Unlock()
	}
}

// follow starts a node whose share is exhausted from the start.
func (l *sharedLimit) follow(d database) *follower {
	l.Helper()
	f := follow(l.TB, d.open(), short)
	l.exhaust(f.Lease)
	return f
}

// expectShares waits until the shares of the nodes that know theirs are these, in ascending order.
func (l *sharedLimit) expectShares(nodes []*follower, want ...int) {
	l.Helper()
	storetest.Until(l.TB, fmt.Sprintf("the shares %v", want), func() bool {
		var got []int
		for _, n := range nodes {
			if share, known := n.Share(l.perSecond); known {
				got = append(got, share)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// expectBound ends the attempts and checks that no interval between two grants had more than
// limit × (t + 1) of them: f(k) = k - limit × t(k) may rise by less than the limit.
func (l *sharedLimit) expectBound() {
	l.Helper()
	l.end()
	slices.Sort(l.granted)
	lowest, at := 0.0, 0
	for k, t := range l.granted {
		f := float64(k) - float64(l.perSecond)*t.Seconds()
		if k == 0 || f < lowest {
			lowest, at = f, k
		}
		if f-lowest+1 > float64(l.perSecond) {
			l.Fatalf("%d events in %v: more than %d × (t + 1)", k-at+1, t-l.granted[at], l.perSecond)
		}
	}
}

// expectMost waits until at least 80 % of the limit is granted for half a second.
func (l *sharedLimit) expectMost() {
	l.Helper()
	count := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.granted) }
	storetest.Until(l.TB, "most of the limit to be granted", func() bool {
		before, began := count(), time.Now()
		<-time.After(500 * time.Millisecond)
		granted := float64(count() - before)
		return granted >= 0.8*float64(l.perSecond)*time.Since(began).Seconds()
	})
}

// TestRaceShares: three nodes that join, leave, are paused and come back never grant more
// than the limit in all, and soon all of it again.
func TestRaceShares(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		l := newSharedLimit(t, 100)
		a := l.follow(d)
		l.expectShares([]*follower{a}, 100)
		b, c := l.follow(d), l.follow(d)
		l.expectShares([]*follower{a, b, c}, 33, 33, 34)
		l.expectMost()

		b.stop()
		l.expectShares([]*follower{a, b, c}, 50, 50)
		b = l.follow(d)
		l.expectShares([]*follower{a, b, c}, 33, 33, 34)

		reached, release := c.block(t)
		commit(t, a.db, "paused")
		<-reached
		l.expectShares([]*follower{a, b, c}, 50, 50)
		l.expectMost()
		release()
		l.expectShares([]*follower{a, b, c}, 33, 33, 34)

		for _, f := range []*follower{a, b, c} {
			f.stop()
		}
		restarted := l.follow(d)
		l.expectShares([]*follower{a, b, c, restarted}, 100)
		l.expectMost()
		l.expectBound()
	})
}

// TestSharesOfACutOffNode: one node loses the database and keeps its memory, others take
// over its share, and it comes back.
func TestSharesOfACutOffNode(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	d := migrated(t, server.DSN(t))
	host, rest, _ := strings.Cut(d.dsn[strings.Index(d.dsn, "@")+1:], "/")
	proxy, err := faultproxy.New(host)
	ok(t, err)
	t.Cleanup(proxy.Close)
	cut := database{t, d.dsn[:strings.Index(d.dsn, "@")+1] + proxy.Addr() + "/" + rest, d.raw}

	l := newSharedLimit(t, 100)
	a, b, c := l.follow(d), l.follow(d), l.follow(cut)
	for range 2 {
		l.expectShares([]*follower{a, b, c}, 33, 33, 34)
		proxy.Drop()
		l.expectShares([]*follower{a, b, c}, 50, 50)
		proxy.Heal()
	}
	l.expectShares([]*follower{a, b, c}, 33, 33, 34)
	server.Pause(t)
	l.expectShares([]*follower{a, b, c})
	server.Resume(t)
	l.expectShares([]*follower{a, b, c}, 33, 33, 34)
	l.expectBound()
}

// TestSharesChangeHandsAfterASecond: a node uses up its share and leaves. The node that takes
// the share over, one that was idle or one that starts, may use it a second later.
func TestSharesChangeHandsAfterASecond(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		l := newSharedLimit(t, 100)
		var limiterA, limiterB, limiterC gcra.Limiter
		a, b := follow(t, d.open(), longest), follow(t, d.open(), longest)
		l.expectShares([]*follower{a, b}, 50, 50)
		l.try(b.Lease, &limiterB)
		b.stop()
		l.expectShares([]*follower{a}, 100)
		l.try(a.Lease, &limiterA)
		a.stop()
		c := follow(t, d.open(), longest)
		l.expectShares([]*follower{c}, 100)
		l.try(c.Lease, &limiterC)
		if n := len(l.granted); n < 250 {
			t.Errorf("%d events were granted, want two times the limit and half of it", n)
		}
		l.expectBound()
	})
}

// TestJoinWaitsForLeases: a node that reads no changes keeps its share until its lease
// ends, and one that joins has its own a second later.
func TestJoinWaitsForLeases(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		a := follow(t, d.open(), longest)
		reached, _ := a.block(t)
		commit(t, a.db, "paused")
		<-reached
		b, last := follow(t, d.open(), longest), time.Now()
		for known := false; !known; {
			now := time.Now()
			if share, known := a.Share(100); known && share > 50 {
				last = now
			}
			_, known = b.Share(100)
			<-time.After(time.Millisecond)
		}
		if since := time.Since(last); since < time.Second {
			t.Errorf("the node that joined has a share %v after the other one had all of it", since)
		}
	})
}

// TestSharesBelowTheNumberOfNodes: a limit of one belongs to one node, and all shares of
// any limit add up to it.
func TestSharesBelowTheNumberOfNodes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, dbtest.SQLite(t))
	l := newSharedLimit(t, 1)
	nodes := []*follower{l.follow(d), l.follow(d), l.follow(d)}
	l.expectShares(nodes, 0, 0, 1)
	for _, limit := range []int{0, 1, 2, 3, 4, 5, 100, 9_999, 10_000} {
		sum := 0
		for _, n := range nodes {
			share, known := n.Share(limit)
			if sum += share; !known {
				t.Error("a share isn't known")
			}
		}
		if sum != limit {
			t.Errorf("the shares of %d add up to %d", limit, sum)
		}
	}
	l.expectBound()
}

func BenchmarkShare(b *testing.B) {
	d := newDatabase(b, dbtest.SQLite(b))
	l := lease.New(d.open(), longest)
	ok(b, l.Join(b.Context()))
	l.Begin(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		l.Share(100)
	}
}
