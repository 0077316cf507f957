package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
)

// The leases of tests: shorter than what an installation may choose where one
// has to pass, shorter still where only polls are waited for, and the longest
// where none may pass.
const (
	lease    = 400 * time.Millisecond
	quick    = 100 * time.Millisecond
	patience = store.MaxLease
)

// onEngines runs a test on both databases; open opens the same one each time,
// as several processes do.
func onEngines(t *testing.T, test func(t *testing.T, open func() *store.DB)) {
	for name, dsn := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := dsn(t)
			migrated(t, at, time.Now)
			test(t, func() *store.DB { return open(t, at, time.Now) })
		})
	}
}

// follower is a process that answers from memory, and what it has heard.
type follower struct {
	*store.Watch
	db   *store.DB
	stop func()

	mu     sync.Mutex
	heard  []string // subjects, in the order of their coming
	resets int
	hold   func() error // called by each batch
}

// follow starts a follower and waits until its memory is good.
func follow(t *testing.T, db *store.DB, lease time.Duration) *follower {
	t.Helper()
	f := &follower{Watch: db.Watch(lease), db: db, hold: func() error { return nil }}
	f.Follow(f.apply, f.reset)
	f.stop = watch(t, f.Watch)
	return f
}

// watch runs the watch until stop is called, or the test is over.
func watch(t *testing.T, w *store.Watch) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	until(t, "memory to be good", w.Fresh)
	return stop
}

func (f *follower) apply(_ context.Context, changes []store.Change) error {
	f.mu.Lock()
	hold := f.hold
	f.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	err := hold()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		f.heard = append(f.heard, name(c))
	}
	return err
}

func (f *follower) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets++
}

// holdWith has every batch go through fn before it is heard.
func (f *follower) holdWith(fn func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = fn
}

// held stops the follower at the next batch, until the function is called.
func (f *follower) held(t *testing.T) (reached <-chan struct{}, release func()) {
	t.Helper()
	at, gate := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(at) })
	f.holdWith(func() error { first(); <-gate; return nil })
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return at, release
}

func (f *follower) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.heard)
}

func (f *follower) has(subject string) bool { return slices.Contains(f.all(), subject) }

func (f *follower) forgotten() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resets
}

// until waits for something that happens by itself.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// name is what a test calls a change's subject.
func name(c store.Change) string {
	raw, _ := hex.DecodeString(c.Subject)
	return string(raw)
}

// change commits changes of sessions that don't exist, by statements that ask
// nothing of the database.
func change(t testing.TB, db *store.DB, subjects ...string) []store.Change {
	t.Helper()
	changes, err := db.Write(context.Background(), announce(subjects...))
	ok(t, err)
	return changes
}

func announce(subjects ...string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, s := range subjects {
			tx.AskFlush([]byte(s))
		}
		return nil
	}
}

// revocation makes of changes such as end something: a silent node doesn't
// leave these open.
func revocation(changes []store.Change) []store.Change {
	for i := range changes {
		changes[i].Kind = store.ChangeSession
	}
	return changes
}

func writer(db *store.DB) *sql.DB {
	write, _ := store.Pools(db)
	return write
}

func rows(t testing.TB, db *store.DB) int {
	t.Helper()
	_, read := store.Pools(db)
	return ask[int](t, read, `SELECT count(*) FROM nodes`)
}

// Rule 3 and its end: whatever keeps polls from succeeding, memory is good for
// a lease at most, and again without help.
func TestFreshnessEnds(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		at := engines["sqlite"](t)
		f := follow(t, migrated(t, at, time.Now), lease)
		other := open(t, at, time.Now)
		tx, err := writer(other).Begin() // takes the only lock on writing
		ok(t, err)
		// Reading goes on; the beat that is due within a lease does not.
		goesStale(t, f, time.Now().Add(2*lease))
		ok(t, tx.Rollback())
		comesBack(t, f, other)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := pgtest.Start(t)
		f := follow(t, migrated(t, server.DSN(t), time.Now), lease)
		server.Pause(t)
		goesStale(t, f, time.Now().Add(lease))
		settlesUnheard(t, f)
		server.Resume(t)
		comesBack(t, f, f.db)
	})
}

// goesStale wants memory not to be good from an instant on.
func goesStale(t *testing.T, f *follower, from time.Time) {
	t.Helper()
	for f.Fresh() {
		if now := time.Now(); now.After(from) && f.Fresh() {
			t.Fatalf("memory is still good %v after it had to end", now.Sub(from))
		}
		<-time.After(time.Millisecond)
	}
	for checked := 0; time.Now().Before(from.Add(lease)); checked++ {
		if f.Fresh() {
			t.Fatalf("memory is good again after %d looks, while every poll fails", checked)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func comesBack(t *testing.T, f *follower, db *store.DB) {
	t.Helper()
	until(t, "memory to be good again", f.Fresh)
	settled, err := f.Settle(t.Context(), change(t, db, "later"))
	if err != nil || settled.Nodes != 1 {
		t.Errorf("after the fault: %+v, %v", settled, err)
	}
}

// settlesUnheard: what is committed, and can't be asked about any more, holds
// everywhere when the longest lease has passed.
func settlesUnheard(t *testing.T, f *follower) {
	t.Helper()
	began := time.Now()
	_, err := f.Settle(t.Context(), []store.Change{{Seq: 1, Kind: store.ChangeSession, Subject: "ab"}})
	if took := time.Since(began); err != nil || took < store.MaxLease || took > store.MaxLease+time.Second {
		t.Errorf("settled after %v with %v: want %v and no fault", took, err, store.MaxLease)
	}
}

// TestEarlyDrawLateCommit: one transaction draws its number and commits late,
// another comes meanwhile. A follower that polls all the time misses neither.
func TestEarlyDrawLateCommit(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		f, early, late := follow(t, open(), patience), open(), open() // no beat is due meanwhile: SQLite has one writer
		began := f.forgotten()
		tx, err := writer(early).Begin()
		ok(t, err)
		defer tx.Rollback() //nolint:errcheck // done by then
		var seq int64
		ok(t, tx.QueryRow(`UPDATE change_position SET last = last + 1 WHERE id = 1 RETURNING last`).Scan(&seq))
		_, err = tx.Exec(`INSERT INTO changes (seq, kind, subject, at) VALUES ($1, 'flush', $2, 1)`, seq, hex.EncodeToString([]byte("early")))
		ok(t, err)

		done := make(chan error)
		go func() { _, err := late.Write(context.Background(), announce("late")); done <- err }()
		drawn := time.Now()
		until(t, "a poll to look", func() bool { return f.Age() < time.Since(drawn) })
		select {
		case err := <-done:
			t.Fatalf("the later number was committed before the earlier one (%v)", err)
		default:
		}
		ok(t, tx.Commit())
		ok(t, <-done)
		until(t, "both changes", func() bool { return len(f.all()) >= 2 })
		if got := f.all(); !slices.Equal(got, []string{"early", "late"}) || f.forgotten() != began {
			t.Errorf("heard %q with %d resets: want early and late, in order, and no reset", got, f.forgotten()-began)
		}
	})
}

// TestNoChangeIsMissed: many write at once, some of them nothing in the end,
// and each change comes to the follower once and in the order of its number.
func TestNoChangeIsMissed(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		const writers, each = 8, 60
		f, db := follow(t, open(), quick), open()
		began := f.forgotten()
		var mu sync.Mutex
		var want []store.Change
		var work sync.WaitGroup
		for w := range writers {
			work.Go(func() {
				for i := range each {
					subject := fmt.Sprintf("%d.%d", w, i)
					changes, err := db.Write(context.Background(), func(tx *store.Tx) error {
						_ = announce(subject+"a", subject+"b")(tx)
						if i%5 == 4 {
							return errors.New("rolled back")
						}
						return nil
					})
					if (err == nil) == (i%5 == 4) {
						t.Errorf("write %s: %v", subject, err)
					}
					mu.Lock()
					want = append(want, changes...)
					mu.Unlock()
				}
			})
		}
		work.Wait()
		until(t, "all changes", func() bool { return len(f.all()) >= len(want) })
		slices.SortFunc(want, func(a, b store.Change) int { return int(a.Seq - b.Seq) })
		var names []string
		for _, c := range want {
			names = append(names, name(c))
		}
		if !slices.Equal(f.all(), names) || f.forgotten() != began {
			t.Errorf("heard %d changes with %d resets: want the %d that were committed, in order", len(f.all()), f.forgotten()-began, len(want))
		}
	})
}

// TestGaps: a follower that can't know what it has missed forgets everything,
// and hears of what comes then.
func TestGaps(t *testing.T) {
	sweep := func(t *testing.T, db *store.DB) {
		_, err := db.Write(t.Context(), func(tx *store.Tx) error {
			return tx.DeleteOldChanges(t.Context(), time.Now().Add(time.Hour))
		})
		ok(t, err)
	}
	back := func(t *testing.T, db *store.DB) { // as a restored backup is, or a standby that lacked the end
		run(t, writer(db), `UPDATE change_position SET last = 0 WHERE id = 1`)
		run(t, writer(db), `DELETE FROM changes`)
	}
	cases := map[string]func(t *testing.T, db *store.DB){
		"changes swept unread": func(t *testing.T, db *store.DB) {
			change(t, db, "missed")
			sweep(t, db)
			change(t, db, "next")
		},
		"all changes swept": func(t *testing.T, db *store.DB) {
			change(t, db, "missed")
			sweep(t, db)
		},
		"a change swept between two": func(t *testing.T, db *store.DB) {
			change(t, db, "next")
			seq := change(t, db, "missed")[0].Seq
			change(t, db, "last")
			run(t, writer(db), `DELETE FROM changes WHERE seq = $1`, seq)
		},
		"an older state": back,
		"an older state that has grown to the same number": func(t *testing.T, db *store.DB) {
			back(t, db)
			change(t, db, "missed")
			change(t, db, "missed too")
		},
		"an older state that has grown beyond": func(t *testing.T, db *store.DB) {
			back(t, db)
			change(t, db, "missed", "missed too", "missed as well")
		},
		"another state with the same number, and a leap": func(t *testing.T, db *store.DB) {
			run(t, writer(db), `DELETE FROM changes`)
			_, err := db.Write(t.Context(), func(tx *store.Tx) error { return tx.InvalidateAll(t.Context()) })
			ok(t, err)
		},
	}
	for what, cause := range cases {
		t.Run(what, func(t *testing.T) {
			onEngines(t, func(t *testing.T, open func() *store.DB) {
				f, db := follow(t, open(), quick), open()
				change(t, db, "first")
				until(t, "the first change", func() bool { return f.has("first") })
				began := f.forgotten()
				reached, release := f.held(t)
				change(t, db, "second")
				<-reached // it has read the second one, and nothing beyond
				cause(t, db)
				release()
				until(t, "a reset", func() bool { return f.forgotten() > began })
				f.holdWith(func() error { return nil })
				if settled, err := f.Settle(t.Context(), change(t, db, "afterwards")); err != nil {
					t.Errorf("%+v, %v", settled, err)
				}
				until(t, "the change after the gap, from the log", func() bool { return count(f, "afterwards") == 2 })
			})
		})
	}
}

func count(f *follower, subject string) (n int) {
	for _, s := range f.all() {
		if s == subject {
			n++
		}
	}
	return n
}

// TestTheDeadAreBuried: a process that was killed keeps its row, and everybody
// waits a lease for it, until it has been silent for three. One that lives and
// was taken for dead starts anew.
func TestTheDeadAreBuried(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		f, db := follow(t, open(), lease), open()
		began := time.Now()
		run(t, writer(db), `INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_dead', $1, 0, 7)`, lease.Microseconds())
		settled, err := f.Settle(t.Context(), revocation(change(t, db, "while it counts")))
		if err != nil || settled.Nodes != 1 || settled.Took < lease {
			t.Errorf("%+v, %v: want the one node that lives, after a lease", settled, err)
		}
		until(t, "the burial", func() bool { return rows(t, db) == 1 })
		if after := time.Since(began); after < 3*lease {
			t.Errorf("buried after %v, before three leases", after)
		}
		settled, err = f.Settle(t.Context(), revocation(change(t, db, "afterwards")))
		if err != nil || settled.Took >= lease {
			t.Errorf("%+v, %v: want no waiting for the buried", settled, err)
		}

		resets := f.forgotten()
		run(t, writer(db), `DELETE FROM nodes`)
		until(t, "the row of the living", func() bool { return rows(t, db) == 1 })
		until(t, "its memory to be emptied and good again", func() bool { return f.forgotten() > resets && f.Fresh() })
	})
}

// TestTheLivingAreNotBuried by each other, nor by one that was away itself.
func TestTheLivingAreNotBuried(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	dsn := server.DSN(t)
	migrated(t, dsn, time.Now)
	var all []*follower
	for range 3 {
		all = append(all, follow(t, open(t, dsn, time.Now), lease))
	}
	server.Pause(t)
	<-time.After(4 * lease) // longer than it takes to be buried
	server.Resume(t)
	for _, f := range all {
		until(t, "memory to be good again", f.Fresh)
	}
	settled, err := all[0].Settle(t.Context(), change(t, all[0].db, "a"))
	if err != nil || settled.Nodes != 3 {
		t.Errorf("%+v, %v: want all three", settled, err)
	}
	for i, f := range all {
		if f.forgotten() != 1 {
			t.Errorf("node %d has started %d times: an outage of the database is nobody's death", i, f.forgotten())
		}
	}
}

// TestSettleWaitsForTheSlow as long as they take.
func TestSettleWaitsForTheSlow(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		const slow = 100 * time.Millisecond
		f, other, db := follow(t, open(), patience), follow(t, open(), patience), open()
		other.holdWith(func() error { <-time.After(slow); return nil })
		settled, err := f.Settle(t.Context(), revocation(change(t, db, "slow")))
		if err != nil || settled.Nodes != 2 || settled.Took < slow || !other.has("slow") {
			t.Errorf("%+v, %v: want both nodes, after %v", settled, err, slow)
		}
		other.stop()
		if other.Fresh() {
			t.Error("the memory of a node that has left is good")
		}
		settled, err = f.Settle(t.Context(), revocation(change(t, db, "left")))
		if err != nil || settled.Nodes != 1 || settled.Took >= patience {
			t.Errorf("a node that has left: %+v, %v", settled, err)
		}
	})
}

// TestSettleWaitsForTheStopped for one lease, when their memory is good no more.
// That answers no question, and a request may be over before.
func TestSettleWaitsForTheStopped(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		f, other, db := follow(t, open(), lease), follow(t, open(), lease), open()
		reached, release := other.held(t)
		settled, err := f.Settle(t.Context(), revocation(change(t, db, "stopped")))
		if good := other.Fresh(); err != nil || settled.Nodes != 1 || settled.Took < lease || good {
			t.Errorf("%+v, %v; its memory is good: %v; want one node after %v", settled, err, good, lease)
		}
		<-reached
		_, err = f.Settle(t.Context(), change(t, db, "question"))
		if !doorward.HasCode(err, doorward.CodeUnavailable) {
			t.Errorf("a question that a node has not answered: %v, want unavailable", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), lease/4)
		defer cancel()
		_, err = f.Settle(ctx, revocation(change(t, db, "request over")))
		if !doorward.HasCode(err, doorward.CodeUnavailable) {
			t.Errorf("the request ended before a lease had passed: %v, want unavailable", err)
		}
		release()
		until(t, "its memory to be good again", other.Fresh)
		if settled, err = f.Settle(t.Context(), change(t, db, "question")); err != nil || settled.Nodes != 2 {
			t.Errorf("it goes on: %+v, %v", settled, err)
		}
	})
}

// TestUnansweredIsUnheard: a node that could not do what a change asks doesn't
// say that it has, and does it later.
func TestUnansweredIsUnheard(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		f, other, db := follow(t, open(), lease), follow(t, open(), lease), open()
		other.holdWith(func() error { return errors.New("no") })
		_, err := f.Settle(t.Context(), change(t, db, "a"))
		if !doorward.HasCode(err, doorward.CodeUnavailable) {
			t.Errorf("the other node failed: %v, want unavailable", err)
		}
		until(t, "its memory to end", func() bool { return !other.Fresh() })
		other.holdWith(func() error { return nil })
		until(t, "its memory to be good", other.Fresh)
		if _, err := f.Settle(t.Context(), change(t, db, "b")); err != nil {
			t.Errorf("the other node works again: %v", err)
		}
	})
}

// TestSettleAll: whoever finds something ended waits for it as the one who has
// ended it does, and not when all is settled.
func TestSettleAll(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		f, other, db := follow(t, open(), lease), follow(t, open(), lease), open()
		change(t, db, "by somebody whose commit was answered by silence")
		settled, err := f.SettleAll(t.Context())
		if err != nil || settled.Nodes != 2 || len(f.all()) != 1 || len(other.all()) != 1 {
			t.Errorf("%+v, %v; heard %q and %q: want both nodes to have heard", settled, err, f.all(), other.all())
		}
		reached, _ := other.held(t)
		change(t, db, "by somebody who is still waiting")
		<-reached
		settled, err = f.SettleAll(t.Context())
		if err != nil || settled.Nodes != 1 || settled.Took < lease {
			t.Errorf("%+v, %v: want a lease for the one that is stopped", settled, err)
		}
		command, err := open().Watch(lease).SettleAll(t.Context()) // it has no memory, and waits for the others'
		if err != nil || command.Took < lease {
			t.Errorf("%+v, %v: want a lease for the one that is stopped", command, err)
		}
	})
}

// TestTwoProcesses share a file, with a watch each, and nothing but the file to
// tell each other: no notifications, no common memory.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	at := engines["sqlite"](t)
	f := follow(t, migrated(t, at, time.Now), lease)
	other := exec.Command(os.Args[0], "-test.run=^TestFollowerProcess$", "-test.v")
	other.Env = append(os.Environ(), "DOORWARD_FOLLOW="+at)
	out, err := other.StdoutPipe()
	ok(t, err)
	ok(t, other.Start())
	defer other.Wait() //nolint:errcheck // it is killed
	defer other.Process.Kill()
	var mu sync.Mutex
	var said []string
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			mu.Lock()
			said = append(said, lines.Text())
			mu.Unlock()
		}
	}()
	has := func(line string) bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(said, line) }
	until(t, "the other process", func() bool { return has("fresh") })

	for i := range 5 {
		subject := fmt.Sprint("change ", i)
		settled, err := f.Settle(t.Context(), change(t, f.db, subject))
		if err != nil || settled.Nodes != 2 {
			t.Errorf("%+v, %v: want both processes", settled, err)
		}
		until(t, "the line about it", func() bool { return has("heard " + subject) })
	}
	ok(t, other.Process.Kill())
	settled, err := f.Settle(t.Context(), revocation(change(t, f.db, "unheard")))
	if err != nil || settled.Nodes != 1 || settled.Took < lease {
		t.Errorf("after its death: %+v, %v: want a lease", settled, err)
	}
	until(t, "the burial", func() bool { return rows(t, f.db) == 1 })
}

// TestFollowerProcess is the other process.
func TestFollowerProcess(t *testing.T) {
	at := os.Getenv("DOORWARD_FOLLOW")
	if at == "" {
		t.Skip("run by TestTwoProcesses")
	}
	w := open(t, at, time.Now).Watch(lease)
	w.Follow(func(_ context.Context, changes []store.Change) error {
		for _, c := range changes {
			fmt.Println("heard " + strings.TrimSpace(name(c)))
		}
		return nil
	}, func() {})
	go w.Run(t.Context())
	until(t, "memory to be good", w.Fresh)
	fmt.Println("fresh")
	<-time.After(time.Minute) // it is killed long before
}
