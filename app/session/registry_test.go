package session

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// sample is a session of its own user in one of a hundred tenants.
func sample(n int) (secret.Hash, store.Credential) {
	now := time.Now()
	u := doorward.User{
		ID: fmt.Sprintf("usr_%026d", n), Email: fmt.Sprintf("user%08d@acme.example", n), Role: doorward.RoleUser,
		TenantID: fmt.Sprintf("tnt_%026d", n%100), Status: doorward.UserActive, TenantStatus: doorward.TenantActive,
	}
	s := doorward.Session{ID: fmt.Sprintf("ses_%026d", n), UserID: u.ID, TenantID: u.TenantID, CreatedAt: now, LastSeenAt: now}
	return secret.New().Hash(), store.Credential{Session: s, User: u}
}

// TestForget: a change ends what it names and nothing else.
func TestForget(t *testing.T) {
	h1, c1 := sample(1)
	h2, c2 := sample(2)
	for _, c := range []struct {
		name         string
		change       func(r *registry)
		first, other bool // whether they are still good
	}{
		{"session", func(r *registry) {
			r.forget(store.Change{Kind: store.ChangeSession, Subject: store.SessionSubject(h1[:])})
		}, false, true},
		{"user", func(r *registry) { r.forget(store.Change{Kind: store.ChangeUser, Subject: c1.User.ID}) }, false, true},
		{"tenant", func(r *registry) { r.forget(store.Change{Kind: store.ChangeTenant, Subject: c1.User.TenantID}) }, false, true},
		{"question", func(r *registry) {
			r.forget(store.Change{Kind: store.ChangeFlush, Subject: store.SessionSubject(h1[:])})
		}, true, true},
		{"everything", func(r *registry) { r.reset() }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegistry(1000)
			r.put(h1, c1, r.mark())
			r.put(h2, c2, r.mark())
			c.change(r)
			if got := r.get(h1) != nil; got != c.first {
				t.Errorf("the session it names is good: %v, want %v", got, c.first)
			}
			if got := r.get(h2) != nil; got != c.other {
				t.Errorf("another session is good: %v, want %v", got, c.other)
			}
			r.put(h1, c1, r.mark())
			if r.get(h1) == nil {
				t.Error("what is read after the change is not good")
			}
		})
	}
}

// TestRule5: what was read before a change is no good after it, whenever it is
// put.
func TestRule5(t *testing.T) {
	h, c := sample(1)
	for _, change := range []store.Change{
		{Kind: store.ChangeSession, Subject: store.SessionSubject(h[:])},
		{Kind: store.ChangeUser, Subject: c.User.ID},
		{Kind: store.ChangeTenant, Subject: c.User.TenantID},
	} {
		r := newRegistry(1000)
		mark := r.mark() // the reading begins
		r.forget(change) // and is overtaken
		r.put(h, c, mark)
		if r.get(h) != nil {
			t.Errorf("%s: a value that its revocation has overtaken is good", change.Kind)
		}
	}
}

// TestRule5Raced: readers and revokers at once; the database is a variable. A
// check that begins after the revocation has been applied never finds the
// session.
func TestRule5Raced(t *testing.T) {
	for n := range 2000 {
		r := newRegistry(1000)
		h, c := sample(n)
		var ended sync.Map // the database
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				for range 20 {
					mark := r.mark()
					if _, over := ended.Load("session"); !over {
						r.put(h, c, mark)
					}
				}
			})
		}
		ended.Store("session", true) // committed
		r.forget(store.Change{Kind: store.ChangeUser, Subject: c.User.ID})
		if r.get(h) != nil {
			t.Fatalf("round %d: an ended session is good right after its end was applied", n)
		}
		readers.Wait()
		if r.get(h) != nil {
			t.Fatalf("round %d: an ended session is good again", n)
		}
	}
}

// TestBounded: the registry keeps to its size, lets go only of sessions whose
// last use is written, and a use that is known survives a new reading.
func TestBounded(t *testing.T) {
	const limit = shards * 4
	r := newRegistry(limit)
	var unwritten []secret.Hash
	for n := range 10 * limit {
		h, c := sample(n)
		r.put(h, c, r.mark())
		if n < shards/2 {
			r.remembered(h).seen.Add(1)
			unwritten = append(unwritten, h)
		}
	}
	if n := r.len(); n > limit {
		t.Errorf("%d sessions in a registry for %d", n, limit)
	}
	for _, h := range unwritten {
		if r.remembered(h) == nil {
			t.Fatal("a session was let go whose last use nobody has written")
		}
	}
	h, c := sample(0)
	r.put(h, c, r.mark())
	later := r.remembered(h).seen.Add(1000)
	r.put(h, c, r.mark())
	if got := r.remembered(h).seen.Load(); got != later {
		t.Errorf("the last use went back to %d from %d", got, later)
	}
}

// BenchmarkRegistry shows what one session takes in memory, all text included,
// each with a user of its own, and what finding one costs.
func BenchmarkRegistry(b *testing.B) {
	for _, count := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			r := newRegistry(2 * count)
			before := heap()
			hashes := make([]secret.Hash, 0, 1024)
			for n := range count {
				h, c := sample(n)
				r.put(h, c, r.mark())
				if len(hashes) < cap(hashes) {
					hashes = append(hashes, h)
				}
			}
			perSession := float64(heap()-before) / float64(count)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if r.get(hashes[n%len(hashes)]) == nil {
					b.Fatal("lost")
				}
				n++
			}
			b.ReportMetric(perSession, "B/session")
			runtime.KeepAlive(r)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
