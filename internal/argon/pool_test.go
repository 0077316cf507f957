package argon

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/waittest"
)

func TestHashAndVerify(t *testing.T) {
	pool := NewPool(cheap, Options{})
	first, err := pool.Hash(t.Context(), staple)
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^\$argon2id\$v=19\$m=1024,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`)
	if !form.MatchString(first) {
		t.Errorf("Hash made %q, want the form %s", first, form)
	}
	if second, _ := pool.Hash(t.Context(), staple); second == first {
		t.Error("two hashes of one password are the same: the salt is not random")
	}
	for password, want := range map[string]Result{staple: {OK: true}, staple + " ": {}, "": {}} {
		if got, err := pool.Verify(t.Context(), first, password); err != nil || got != want {
			t.Errorf("Verify(%q) = %+v, %v, want %+v", password, got, err, want)
		}
	}
}

// TestUnknownNameCostsOneHash compares the number and the parameters of the hashes for an
// unknown name with those for a known one.
func TestUnknownNameCostsOneHash(t *testing.T) {
	pool := NewPool(Default, Options{})
	phc, err := pool.Hash(t.Context(), staple)
	if err != nil {
		t.Fatal(err)
	}
	for name, stored := range map[string]string{"known": phc, "unknown": ""} {
		before := pool.Stats().Hashes
		got, err := pool.Verify(t.Context(), stored, staple)
		if err != nil || got.OK != (stored != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if n := pool.Stats().Hashes - before; n != 1 {
			t.Errorf("%s: %d hashes, want exactly 1", name, n)
		}
	}
	known, err := parse(phc)
	if err != nil {
		t.Fatal(err)
	}
	if known.cost != pool.dummy.cost || len(known.salt) != len(pool.dummy.salt) || len(known.tag) != len(pool.dummy.tag) {
		t.Errorf("an unknown name costs %+v, a known one %+v", pool.dummy.cost, known.cost)
	}
}

// TestDefaults: each worker has its own memory, so a process limited to one core, such
// as a container, has one worker.
func TestDefaults(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	got := Options{Workers: -1}.withDefaults()
	if got.Workers != 1 || got.Queue != 64 || got.Wait != 2*time.Second || got.Yield() {
		t.Errorf("defaults: %d workers, queue %d, wait %v, yield %v; want one worker per core that may be used, 64, 2s and no yielding",
			got.Workers, got.Queue, got.Wait, got.Yield())
	}
}

// TestYield: while others need a core one slot is left free, but work always proceeds,
// however many slots it needs.
func TestYield(t *testing.T) {
	var yield atomic.Bool
	s := slots{queue: 8, wait: time.Minute, total: 2, free: 2, yield: yield.Load}
	startsAtOnce := func(need int) bool {
		place, err := s.join(need)
		if err != nil {
			t.Fatal(err)
		}
		if place != nil {
			s.waiting.Remove(place)
		}
		return place == nil
	}
	yield.Store(true)
	if !startsAtOnce(1) {
		t.Fatal("work has to wait although nothing runs")
	}
	if startsAtOnce(1) {
		t.Error("the slot that should be left to others was taken")
	}
	yield.Store(false)
	if !startsAtOnce(1) {
		t.Error("work waits for a free slot that nobody else needs")
	}
	s.give(2)
	yield.Store(true)
	if !startsAtOnce(2) {
		t.Error("work that needs every slot starves while others need one")
	}
}

// hold takes all of the pool's slots, with one caller each, until release.
func hold(t *testing.T, pool *Pool) (release func()) {
	t.Helper()
	var begun, ended sync.WaitGroup
	free := make(chan struct{})
	for range pool.workers {
		begun.Add(1)
		ended.Go(func() {
			if err := pool.run(t.Context(), pool.params, func() { begun.Done(); <-free }); err != nil {
				t.Error(err)
				begun.Done()
			}
		})
	}
	begun.Wait()
	return sync.OnceFunc(func() { close(free); ended.Wait() })
}

func TestRaceFullQueueIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(cheap, Options{Workers: 2})
		release := hold(t, pool)
		var served sync.WaitGroup
		for range 64 {
			served.Go(func() {
				if _, err := pool.Hash(t.Context(), staple); err != nil {
					t.Errorf("one of 64 in the queue: %v", err)
				}
			})
		}
		synctest.Wait()
		asked := time.Now()
		if _, err := pool.Hash(t.Context(), staple); !errors.Is(err, ErrBusy) {
			t.Errorf("caller 2 + 64 + 1: %v, want ErrBusy", err)
		}
		if waited := time.Since(asked); waited != 0 {
			t.Errorf("with the queue full ErrBusy took %v, want no wait", waited)
		}
		want := Stats{Workers: 2, Busy: 2, Queued: 64, Hashes: 2, Refused: 1}
		if diff := cmp.Diff(want, pool.Stats()); diff != "" {
			t.Errorf("stats while full (-want +got):\n%s", diff)
		}
		release()
		served.Wait()
		want = Stats{Workers: 2, Hashes: 66, Refused: 1}
		if diff := cmp.Diff(want, pool.Stats()); diff != "" {
			t.Errorf("stats after (-want +got):\n%s", diff)
		}
	})
}

func TestLongWaitIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(cheap, Options{Workers: 1})
		defer hold(t, pool)()
		asked := time.Now()
		if _, err := pool.Verify(t.Context(), "", staple); !errors.Is(err, ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
		if waited := time.Since(asked); waited != 2*time.Second {
			t.Errorf("waited %v, want 2s", waited)
		}
		want := Stats{Workers: 1, Busy: 1, Hashes: 1, Refused: 1}
		if diff := cmp.Diff(want, pool.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

func TestRaceCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(cheap, Options{Workers: 1})
		defer hold(t, pool)()
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error)
		go func() {
			_, err := pool.Hash(ctx, staple)
			answer <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
		want := Stats{Workers: 1, Busy: 1, Hashes: 1}
		if diff := cmp.Diff(want, pool.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

func TestCancelledBeforehandDoesNoWork(t *testing.T) {
	pool := NewPool(cheap, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pool.Hash(ctx, staple); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if n := pool.Stats().Hashes; n != 0 {
		t.Errorf("%d hashes for a cancelled caller", n)
	}
}

func TestRaceFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(cheap, Options{Workers: 1})
		release := hold(t, pool)
		var served []int // appended to in the pool's only slot
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if err := pool.run(t.Context(), cheap, func() { served = append(served, i) }); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		release()
		all.Wait()
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, served); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestSlotsFor(t *testing.T) {
	pool := NewPool(Default, Options{Workers: 4})
	for _, test := range []struct {
		cost Params
		want int
	}{
		{Default, 1},
		{foreignCost(0), 1},
		{Params{1024, 1, 1}, 1},
		{Params{19457, 1, 1}, 2},
		{Params{19456, 1, 3}, 3},
		{Params{65536, 3, 1}, 4},
		{Params{1 << 20, 4, 1}, 4},
	} {
		if got := pool.slotsFor(test.cost); got != test.want {
			t.Errorf("slotsFor(%+v) = %d of 4 slots, want %d", test.cost, got, test.want)
		}
	}
}

// TestRaceHeavyIsNotOvertaken: a hash that needs every slot waits for all of them, and no later
// one overtakes it. If it gives up, those behind it proceed.
func TestRaceHeavyIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(cheap, Options{Workers: 2, Wait: time.Hour})
		free := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			if err := pool.run(t.Context(), cheap, func() { <-free }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()

		heavy := Params{MemoryKiB: 1 << 20, Time: 1, Parallelism: 1}
		ctx, giveUp := context.WithCancel(t.Context())
		all.Go(func() {
			if err := pool.run(ctx, heavy, func() {}); !errors.Is(err, context.Canceled) {
				t.Errorf("heavy: %v, want context.Canceled", err)
			}
		})
		synctest.Wait()

		light := make(chan struct{})
		all.Go(func() {
			if err := pool.run(t.Context(), cheap, func() { close(light) }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		select {
		case <-light:
			t.Error("a light hash overtook the heavy one")
		default:
		}

		giveUp()
		<-light // if it hangs, synctest reports it
		close(free)
		all.Wait()
	})
}

func TestPanicGivesTheSlotBack(t *testing.T) {
	pool := NewPool(cheap, Options{Workers: 1})
	func() {
		defer func() { _ = recover() }()
		_ = pool.run(t.Context(), cheap, func() { panic("in the middle of a hash") })
	}()
	if busy := pool.Stats().Busy; busy != 0 {
		t.Errorf("%d slots lost by a panic", busy)
	}
}

// TestRaceCancelledCallersKeepNoSlot cancels callers while they wait and while they hash, and then
// counts the slots.
func TestRaceCancelledCallersKeepNoSlot(t *testing.T) {
	pool := NewPool(cheap, Options{Workers: 3, Queue: 20, Wait: 3 * time.Millisecond})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := waittest.Interrupt(t.Context(), time.Duration(i%7)*time.Millisecond)
			defer cancel()
			_, err := pool.Verify(ctx, "", staple)
			if err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s := pool.Stats(); s.Busy != 0 || s.Queued != 0 {
		t.Errorf("after all callers returned: %+v", s)
	}
	if err := pool.run(t.Context(), Params{MemoryKiB: 1 << 20, Time: 1, Parallelism: 1}, func() {}); err != nil {
		t.Errorf("taking all three slots: %v", err)
	}
}

// BenchmarkHash is one hash with the default parameters in an idle pool.
func BenchmarkHash(b *testing.B) {
	pool := NewPool(Default, Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pool.Hash(b.Context(), staple); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPool is the time between two answers while 16 callers per core keep all slots
// taken; none is refused.
func BenchmarkPool(b *testing.B) {
	pool := NewPool(Default, Options{Queue: 1 << 20, Wait: time.Hour})
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := pool.Verify(b.Context(), "", staple); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkSlot is the overhead of the pool: taking and releasing a slot.
func BenchmarkSlot(b *testing.B) {
	pool := NewPool(Default, Options{Workers: 1})
	for b.Loop() {
		if err := pool.run(b.Context(), Default, func() {}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse parses a stored hash.
func BenchmarkParse(b *testing.B) {
	for _, v := range vectors {
		b.Run(v.name, func(b *testing.B) {
			for b.Loop() {
				if err := CheckHash(v.phc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
