package registry

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// daily are limits that these tests never reach.
var daily = doorward.SessionLimits{Idle: time.Hour, Absolute: 24 * time.Hour}

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

func entryOf(c store.Credential, l doorward.SessionLimits, mark uint64) *Entry {
	return NewEntry(doorward.PrincipalOf(c.User, c.Session), c.Session.CreatedAt, c.Session.Tenant.Tighten(l), c.Session.LastSeenAt, mark)
}

// TestForget: a change invalidates the entries it names and no others.
func TestForget(t *testing.T) {
	h1, c1 := sample(1)
	h2, c2 := sample(2)
	for _, c := range []struct {
		name         string
		change       func(r *Registry)
		first, other bool // whether they are still valid
	}{
		{"session", func(r *Registry) {
			r.Forget(store.Change{Kind: store.ChangeSession, Subject: store.SessionSubject(h1[:])})
		}, false, true},
		{"user", func(r *Registry) { r.Forget(store.Change{Kind: store.ChangeUser, Subject: c1.User.ID}) }, false, true},
		{"tenant", func(r *Registry) { r.Forget(store.Change{Kind: store.ChangeTenant, Subject: c1.User.TenantID}) }, false, true},
		{"request of a flush", func(r *Registry) {
			r.Forget(store.Change{Kind: store.ChangeFlush, Subject: store.SessionSubject(h1[:])})
		}, true, true},
		{"everything", func(r *Registry) { r.Reset() }, false, false},
		{"kind of a newer version", func(r *Registry) {
			r.Forget(store.Change{Kind: "device", Subject: "dev_1"})
		}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New(1000)
			r.Put(h1, entryOf(c1, daily, r.Mark()))
			r.Put(h2, entryOf(c2, daily, r.Mark()))
			c.change(r)
			if got := r.Get(h1) != nil; got != c.first {
				t.Errorf("the session it names is valid: %v, want %v", got, c.first)
			}
			if got := r.Get(h2) != nil; got != c.other {
				t.Errorf("another session is valid: %v, want %v", got, c.other)
			}
			r.Put(h1, entryOf(c1, daily, r.Mark()))
			if r.Get(h1) == nil {
				t.Error("a value read after the change is not valid")
			}
		})
	}
}

// TestRule5 (docs/lease.md): a value read before a change is invalid after it, at whatever
// moment of the reading the change arrives.
func TestRule5(t *testing.T) {
	h, c := sample(1)
	for _, change := range []store.Change{
		{Kind: store.ChangeSession, Subject: store.SessionSubject(h[:])},
		{Kind: store.ChangeUser, Subject: c.User.ID},
		{Kind: store.ChangeTenant, Subject: c.User.TenantID},
	} {
		for at := range 4 {
			r, ended := New(1000), false
			arriveAt := func(moment int) {
				if at == moment {
					ended = true // committed, and then applied
					r.Forget(change)
				}
			}
			arriveAt(0)
			mark := r.Mark()
			arriveAt(1)
			alive := !ended // in the database
			arriveAt(2)
			if alive {
				r.Put(h, entryOf(c, daily, mark))
			}
			arriveAt(3)
			if r.Get(h) != nil {
				t.Errorf("%s at moment %d: an ended session is valid", change.Kind, at)
			}
		}
	}
}

// TestRaceRule5: readers, revokers and the sweep run at once; the database is a
// variable. A check that begins after the revocation was applied never finds the
// session. A reader that takes its mark too late is caught, which proves that the
// race happens.
func TestRaceRule5(t *testing.T) {
	markAfterRead := func(r *Registry, read func() bool) (uint64, bool) {
		before, alive := r.Mark(), read()
		for range 1000 { // a slow query
			if r.Mark() != before {
				break
			}
			runtime.Gosched()
		}
		return r.Mark(), alive
	}
	markBeforeRead := func(r *Registry, read func() bool) (uint64, bool) { mark := r.Mark(); return mark, read() }
	if n := race(5000, markBeforeRead); n > 0 {
		t.Errorf("an ended session was still valid in round %d", n)
	}
	if n := race(20000, markAfterRead); n == 0 {
		t.Error("readers that take their mark after they have read were never caught: this test proves nothing")
	}
}

// race returns the first round in which an ended session was still valid, or 0,
// and stops there.
func race(rounds int, load func(r *Registry, read func() bool) (mark uint64, alive bool)) int {
	r := New(1000)
	for n := range rounds {
		h, c := sample(n)
		var ended atomic.Bool // the database
		var others, reading sync.WaitGroup
		reading.Add(3)
		for range 3 {
			others.Go(func() {
				reading.Done()
				for range 20 {
					if mark, alive := load(r, func() bool { return !ended.Load() }); alive {
						r.Put(h, entryOf(c, daily, mark))
					}
				}
			})
		}
		others.Go(func() { r.each(func(secret.Hash, *Entry) bool { return true }) })
		reading.Wait()
		ended.Store(true) // committed
		r.Forget(store.Change{Kind: store.ChangeUser, Subject: c.User.ID})
		wrong := r.Get(h) != nil
		others.Wait()
		if wrong || r.Get(h) != nil {
			return n + 1
		}
	}
	return 0
}

// TestRaceUsesWaitUntilWritten: uses are written in batches, each session once, with
// its last use. An unwritten use is still known, and a use during the write of an
// earlier one isn't lost.
func TestRaceUsesWaitUntilWritten(t *testing.T) {
	var d uses
	var first secret.Hash
	for n := range 450 {
		h, _ := sample(n)
		if n == 0 {
			first = h
		}
		d.add(h, 2000)
		d.add(h, 1000)
	}
	var sizes []int
	written := map[secret.Hash]int{}
	for batch := d.batch(flushBatch); len(batch) > 0; batch = d.batch(flushBatch) {
		sizes = append(sizes, len(batch))
		for _, u := range batch {
			if written[u.Hash]++; u.At.UnixMicro() != 2000 || d.unwritten(u.Hash) != 2000 {
				t.Fatalf("a use at %d, known as %d; want 2000", u.At.UnixMicro(), d.unwritten(u.Hash))
			}
		}
		d.removeWritten(batch)
	}
	if diff := cmp.Diff([]int{200, 200, 50}, sizes); diff != "" || len(written) != 450 || d.unwritten(first) != 0 {
		t.Errorf("%d sessions written, the first is queued at %d, in batches (-want +got):\n%s", len(written), d.unwritten(first), diff)
	}
	d.add(first, 3000)
	batch := d.batch(flushBatch)
	d.add(first, 4000)
	d.removeWritten(batch)
	if at := d.unwritten(first); at != 4000 {
		t.Errorf("the last use is %d, want 4000", at)
	}
}

// TestMaxEntries: the registry keeps its limit, evicts only sessions whose last use
// is written, and keeps a known use over a new read.
func TestMaxEntries(t *testing.T) {
	const limit = shards * 4
	r := New(limit)
	var unwritten []secret.Hash
	for n := range 10 * limit {
		h, c := sample(n)
		r.Put(h, entryOf(c, daily, r.Mark()))
		if n < shards/2 {
			r.Known(h).seen.Add(1)
			unwritten = append(unwritten, h)
		}
	}
	if n := r.Len(); n > limit+len(unwritten) {
		t.Errorf("%d sessions in a registry for %d and %d that have to be written first", n, limit, len(unwritten))
	}
	for _, h := range unwritten {
		if r.Known(h) == nil {
			t.Fatal("a session was evicted before its last use was written")
		}
	}
	h, c := sample(0)
	r.Put(h, entryOf(c, daily, r.Mark()))
	later := r.Known(h).seen.Add(1000)
	r.Put(h, entryOf(c, daily, r.Mark()))
	if got := r.Known(h).seen.Load(); got != later {
		t.Errorf("the last use is %d, and was %d", got, later)
	}
}

// BenchmarkRegistry measures the memory of one session with all its text, each
// with its own user, and the cost of a lookup.
func BenchmarkRegistry(b *testing.B) {
	for _, count := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			r := New(2 * count)
			before := heap()
			hashes := make([]secret.Hash, 0, 1024)
			for n := range count {
				h, c := sample(n)
				r.Put(h, entryOf(c, daily, r.Mark()))
				if len(hashes) < cap(hashes) {
					hashes = append(hashes, h)
				}
			}
			perSession := float64(heap()-before) / float64(count)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if r.Get(hashes[n%len(hashes)]) == nil {
					b.Fatal("the session isn't in memory")
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

// TestEntryKeepsThePrincipal: each entry returns its own text and limits, although
// entries share common values.
func TestEntryKeepsThePrincipal(t *testing.T) {
	r := New(10_000)
	hashes, want := map[int]secret.Hash{}, map[int]doorward.Principal{}
	for n := range 500 {
		h, c := sample(n)
		c.Session.CreatedAt = doorward.Instant(c.Session.CreatedAt.Add(time.Duration(n) * time.Second))
		c.User.Role = doorward.Roles[n%4]
		if n%7 == 0 {
			c.User.TenantStatus, c.Session.Tenant.SessionIdle = doorward.TenantClosing, time.Minute
		}
		if n%5 == 0 {
			c.User.Factors, c.User.Passkeys, c.User.DisabledPasskeys, c.Session.Tenant.SecondFactor.Since = 1+n%2, n%3%2, n%3%2*(n/10%2), c.Session.CreatedAt
			c.Session.Assurance = doorward.Assurance{
				Issuer: doorward.Issuer(fmt.Sprint("con_", n%2)), AAL: 2, ProvedAt: c.Session.CreatedAt.Add(time.Duration(n) * time.Second), FactorAt: c.Session.CreatedAt.Add(time.Duration(n%3) * time.Second),
			}
		}
		r.Put(h, entryOf(c, daily, r.Mark()))
		hashes[n], want[n] = h, doorward.PrincipalOf(c.User, c.Session)
	}
	for n, h := range hashes {
		e := r.Get(h)
		s := e.shared.Value()
		if diff := cmp.Diff(want[n], e.principal(&s)); diff != "" {
			t.Fatalf("principal %d (-want +got):\n%s", n, diff)
		}
		idle := time.Hour
		if n%7 == 0 {
			idle = time.Minute
		}
		if s.idle != idle.Microseconds() || s.absolute != daily.Absolute.Microseconds() {
			t.Errorf("entry %d may idle for %d and live for %d microseconds", n, s.idle, s.absolute)
		}
	}
}

// TestEntryHasWholePrincipal: no field of a session's principal is lost in memory, also one that a later
// version adds.
func TestEntryHasWholePrincipal(t *testing.T) {
	// Of keys, operators and their pages, set-up links and directories, and what a decision reads anew.
	ofOthers := map[string]bool{"OwnerID": true, "ConnectionID": true, "IsDraft": true, "SeesNobody": true, "Service": true, "Limits": true, "IsPage": true, "HasNoOwnSession": true}
	var p doorward.Principal
	for i := range reflect.TypeFor[doorward.Principal]().NumField() {
		if field := reflect.ValueOf(&p).Elem().Field(i); !ofOthers[reflect.TypeFor[doorward.Principal]().Field(i).Name] {
			fill(t, field)
		}
	}
	p.Kind = doorward.ByUser
	e := NewEntry(p, p.AuthAt, daily, p.AuthAt, 0)
	s := e.shared.Value()
	if diff := cmp.Diff(p, e.principal(&s), cmp.Comparer(func(a, b *doorward.Rules) bool { return a == b }), cmp.Comparer(func(a, b *doorward.Permissions) bool { return a == b })); diff != "" {
		t.Errorf("the principal in memory is another one (-want +got):\n%s", diff)
	}
}

// fill sets the value to one that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("value")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(time.Second))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Interface:
		v.Set(reflect.ValueOf(noPolicies{}))
	case reflect.Struct:
		v.Set(reflect.ValueOf(doorward.Instant(time.Unix(1e9, 0))))
	default:
		t.Fatalf("no value of the kind %s", v.Kind())
	}
}

type noPolicies struct{ doorward.PrincipalPolicies }

// TestEntryIsSmall: a registry has up to a million entries. Data of only some
// credentials belongs outside the registry.
func TestEntryIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size > 64 {
		t.Errorf("an entry has %d bytes, want 64 at most", size)
	}
}
