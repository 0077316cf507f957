package lease_test

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
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// The leases of tests: below MinLease where one has to pass, shorter still where only
// polls are waited for, and the longest where none may pass.
const (
	short   = 400 * time.Millisecond
	shorter = 100 * time.Millisecond
	longest = lease.MaxLease
)

// database is opened by several processes.
type database struct {
	testing.TB
	dsn string
	raw *sql.DB // for statements of the test's own
}

func newDatabase(t testing.TB, dsn string) database {
	t.Helper()
	return database{t, dsn, storetest.Raw(t, dsn)}
}

// migrated returns a new database of a test's own cluster, with the schema.
func migrated(t testing.TB, dsn string) database {
	t.Helper()
	ok(t, dbtest.Migrate(dsn))
	return newDatabase(t, dsn)
}

// engines are those of storetest, for databases that have the schema.
var engines = map[string]func(testing.TB) string{
	"sqlite":   dbtest.SQLite,
	"postgres": func(t testing.TB) string { return storetest.FastDeadlocks(dbtest.Postgres(t)) },
}

// open opens the database like another process.
func (d database) open() *store.DB {
	d.Helper()
	return storetest.Open(d, d.dsn, time.Now)
}

func (d database) exec(query string, args ...any) {
	d.Helper()
	storetest.Exec(d, d.raw, query, args...)
}

func (d database) countNodes() int {
	d.Helper()
	return storetest.Query[int](d, d.raw, `SELECT count(*) FROM nodes`)
}

// onEngines runs a test on both databases.
func onEngines(t *testing.T, test func(t *testing.T, d database)) {
	for name, dsn := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t, dsn(t)))
		})
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// follower is a process that answers from memory. It records the changes it has applied.
type follower struct {
	*lease.Lease
	db   *store.DB
	stop func()

	mu      sync.Mutex
	changes []string // subjects, in order of arrival
	resets  int
	before  func() error // called before each batch
}

// follow starts a follower and waits until its memory is valid.
func follow(t testing.TB, db *store.DB, length time.Duration) *follower {
	t.Helper()
	f := &follower{Lease: lease.New(db, length), db: db, before: func() error { return nil }}
	f.Follow(f.apply, f.reset)
	f.stop = run(t, f.Lease)
	return f
}

// run runs the lease until stop is called or the test ends.
func run(t testing.TB, l *lease.Lease) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { l.Run(ctx); close(ended) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	storetest.Until(t, "the lease", l.Valid)
	return stop
}

func (f *follower) apply(_ context.Context, changes []store.Change) error {
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	err := before()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		f.changes = append(f.changes, subject(c))
	}
	return err
}

func (f *follower) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets++
}

// beforeEach calls fn before each batch is applied.
func (f *follower) beforeEach(fn func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = fn
}

// block stops the follower at the next batch, until release is called.
func (f *follower) block(t *testing.T) (reached <-chan struct{}, release func()) {
	t.Helper()
	at, gate := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(at) })
	f.beforeEach(func() error { first(); <-gate; return nil })
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return at, release
}

func (f *follower) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.changes)
}

func (f *follower) count(subject string) (n int) {
	for _, s := range f.all() {
		if s == subject {
			n++
		}
	}
	return n
}

func (f *follower) countResets() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resets
}

// subject returns the subject that was passed to commit.
func subject(c store.Change) string {
	raw, _ := hex.DecodeString(c.Subject)
	return string(raw)
}

// commit commits changes of sessions that don't exist.
func commit(t testing.TB, db *store.DB, subjects ...string) []store.Change {
	t.Helper()
	changes, err := db.Write(context.Background(), announce(subjects...))
	ok(t, err)
	return changes
}

func announce(subjects ...string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, s := range subjects {
			tx.RequestFlush([]byte(s))
		}
		return nil
	}
}

// revocation marks changes as ones that end something: a silent node can't keep them
// unsettled.
func revocation(changes []store.Change) []store.Change {
	for i := range changes {
		changes[i].Kind = store.ChangeSession
	}
	return changes
}

// Rule 3 of the package: whatever makes polls fail, memory stays valid for a lease at most,
// and becomes valid again by itself.
func TestLeaseEnds(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t, dbtest.SQLite(t))
		f := follow(t, d.open(), short)
		tx, err := d.raw.Begin() // takes the only write lock
		ok(t, err)
		// Reads still work; the heartbeat that is due within a lease fails.
		expectEnd(t, f, time.Now().Add(2*short))
		ok(t, tx.Rollback())
		expectReturn(t, f, d.open())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := pgtest.Start(t)
		f := follow(t, migrated(t, server.DSN(t)).open(), short)
		server.Pause(t)
		expectEnd(t, f, time.Now().Add(short))
		expectSettledUnanswered(t, f)
		server.Resume(t)
		expectReturn(t, f, f.db)
	})
}

// expectEnd fails unless the lease ends by the deadline and stays invalid.
func expectEnd(t *testing.T, f *follower, deadline time.Time) {
	t.Helper()
	for f.Valid() {
		if now := time.Now(); now.After(deadline) && f.Valid() {
			t.Fatalf("the lease is valid %v after it had to end", now.Sub(deadline))
		}
		<-time.After(time.Millisecond)
	}
	lapses := f.Lapses()
	for checked := 0; time.Now().Before(deadline.Add(short)); checked++ {
		if f.Valid() {
			t.Fatalf("the lease is valid again after %d checks, while every poll fails", checked)
		}
		<-time.After(5 * time.Millisecond)
	}
	if lapses == 0 || f.Lapses() != lapses {
		t.Errorf("%d lapses are counted, and then %d: want the one", lapses, f.Lapses())
	}
}

// expectReturn fails unless the lease becomes valid and a change is settled.
func expectReturn(t *testing.T, f *follower, db *store.DB) {
	t.Helper()
	storetest.Until(t, "the lease", f.Valid)
	settled, err := f.Settle(t.Context(), commit(t, db, "later"))
	if err != nil || settled.Nodes != 1 {
		t.Errorf("after the fault: %+v, %v", settled, err)
	}
}

// expectSettledUnanswered fails unless Settle succeeds when the longest lease has passed, though
// the database doesn't answer.
func expectSettledUnanswered(t *testing.T, f *follower) {
	t.Helper()
	began := time.Now()
	_, err := f.Settle(t.Context(), []store.Change{{Seq: 1, Kind: store.ChangeSession, Subject: "ab"}})
	if took := time.Since(began); err != nil || took < lease.MaxLease {
		t.Errorf("settled after %v with %v: want at least %v and no fault", took, err, lease.MaxLease)
	}
}

// TestRaceLateCommitOfAnEarlyNumber: one transaction draws its number and commits late,
// another writes in between. A follower that polls all the time misses neither.
func TestRaceLateCommitOfAnEarlyNumber(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		f, late := follow(t, d.open(), longest), d.open() // no heartbeat falls due: SQLite has one writer
		resets := f.countResets()
		// It first acknowledges the change that its own row has made.
		storetest.Until(t, "an acknowledgement", func() bool {
			return storetest.Query[bool](t, d.raw, `SELECT n.applied = p.last FROM nodes n, change_position p`)
		})
		tx, err := d.raw.Begin()
		ok(t, err)
		defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
		var seq int64
		ok(t, tx.QueryRow(`UPDATE change_position SET last = last + 1 WHERE id = 1 RETURNING last`).Scan(&seq))
		_, err = tx.Exec(`INSERT INTO changes (seq, kind, subject, at) VALUES ($1, 'flush', $2, 1)`, seq, hex.EncodeToString([]byte("early")))
		ok(t, err)

		done := make(chan error)
		go func() { _, err := late.Write(context.Background(), announce("late")); done <- err }()
		drawn := time.Now()
		storetest.Until(t, "a poll", func() bool { return time.Now().Add(-f.Age()).After(drawn) })
		select {
		case err := <-done:
			t.Fatalf("the later number was committed before the earlier one (%v)", err)
		default:
		}
		ok(t, tx.Commit())
		ok(t, <-done)
		storetest.Until(t, "both changes", func() bool { return len(f.all()) >= 2 })
		if got := f.all(); !slices.Equal(got, []string{"early", "late"}) || f.countResets() != resets {
			t.Errorf("applied %q with %d resets: want early and late, in order, and no reset", got, f.countResets()-resets)
		}
	})
}

// TestRaceNoChangeIsMissed: many write at once, some roll back, and each change reaches the
// follower once and in numerical order.
func TestRaceNoChangeIsMissed(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		const writers, each = 8, 60
		f, db := follow(t, d.open(), shorter), d.open()
		resets := f.countResets()
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
		storetest.Until(t, "all changes", func() bool { return len(f.all()) >= len(want) })
		slices.SortFunc(want, func(a, b store.Change) int { return int(a.Seq - b.Seq) })
		var names []string
		for _, c := range want {
			names = append(names, subject(c))
		}
		if !slices.Equal(f.all(), names) || f.countResets() != resets {
			t.Errorf("applied %d changes with %d resets: want the %d that were committed, in order", len(f.all()), f.countResets()-resets, len(want))
		}
	})
}

// TestGaps: a follower that may have missed changes forgets everything, and applies later
// changes.
func TestGaps(t *testing.T) {
	restore := func(t *testing.T, d database) { // a backup, or a standby that lacked the end
		d.exec(`UPDATE change_position SET last = 0 WHERE id = 1`)
		d.exec(`DELETE FROM changes`)
	}
	cases := map[string]func(t *testing.T, d database, db *store.DB){
		"changes deleted unread": func(t *testing.T, d database, db *store.DB) {
			commit(t, db, "missed")
			d.exec(`DELETE FROM changes`)
			commit(t, db, "next")
		},
		"all changes deleted": func(t *testing.T, d database, db *store.DB) {
			commit(t, db, "missed")
			d.exec(`DELETE FROM changes`)
		},
		"a change deleted between two": func(t *testing.T, d database, db *store.DB) {
			commit(t, db, "next")
			seq := commit(t, db, "missed")[0].Seq
			commit(t, db, "last")
			d.exec(`DELETE FROM changes WHERE seq = $1`, seq)
		},
		"an older state": func(t *testing.T, d database, _ *store.DB) { restore(t, d) },
		"an older state that has grown to the same number": func(t *testing.T, d database, db *store.DB) {
			restore(t, d)
			commit(t, db, "missed")
			commit(t, db, "missed too")
		},
		"an older state that has grown beyond": func(t *testing.T, d database, db *store.DB) {
			restore(t, d)
			commit(t, db, "missed", "missed too", "missed as well")
		},
		"another state with the same number, and InvalidateAll": func(t *testing.T, d database, db *store.DB) {
			d.exec(`DELETE FROM changes`)
			_, err := db.Write(t.Context(), func(tx *store.Tx) error { return tx.InvalidateAll(t.Context()) })
			ok(t, err)
		},
	}
	for what, cause := range cases {
		t.Run(what, func(t *testing.T) {
			onEngines(t, func(t *testing.T, d database) {
				f, db := follow(t, d.open(), shorter), d.open()
				commit(t, db, "first")
				storetest.Until(t, "the first change", func() bool { return f.count("first") > 0 })
				resets := f.countResets()
				reached, release := f.block(t)
				commit(t, db, "second")
				<-reached // it has read the second change and no later one
				cause(t, d, db)
				release()
				storetest.Until(t, "a reset", func() bool { return f.countResets() > resets })
				f.beforeEach(func() error { return nil })
				if settled, err := f.Settle(t.Context(), commit(t, db, "afterwards")); err != nil {
					t.Errorf("%+v, %v", settled, err)
				}
				storetest.Until(t, "the change after the gap, from the log", func() bool { return f.count("afterwards") == 2 })
			})
		})
	}
}

// TestDeadNodesAreRemoved: the row of a killed process delays each revocation by a
// lease, until three leases have passed without a heartbeat. A living process whose row
// was removed starts again with an empty memory.
func TestDeadNodesAreRemoved(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		f, db := follow(t, d.open(), short), d.open()
		began := time.Now()
		d.exec(`INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_dead', $1, 0, 7)`, longest.Microseconds())
		settled, err := f.Settle(t.Context(), revocation(commit(t, db, "while it counts")))
		if err != nil || settled.Nodes != 1 || settled.Took < longest {
			t.Errorf("%+v, %v: want the one living node, after a lease", settled, err)
		}
		storetest.Until(t, "the removal", func() bool { return d.countNodes() == 1 })
		if after := time.Since(began); after < 3*longest {
			t.Errorf("removed after %v, before three leases", after)
		}
		settled, err = f.Settle(t.Context(), revocation(commit(t, db, "afterwards")))
		if err != nil || settled.Nodes != 1 {
			t.Errorf("%+v, %v: want the one living node", settled, err)
		}

		resets := f.countResets()
		d.exec(`DELETE FROM nodes`)
		storetest.Until(t, "the row of the node that lives", func() bool { return d.countNodes() == 1 })
		storetest.Until(t, "its memory to be emptied and valid again", func() bool { return f.countResets() > resets && f.Valid() })
	})
}

// TestNodes: a node lists all, with their versions, what they have not applied, and when it has last seen a heartbeat.
func TestNodes(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		f := follow(t, d.open(), short)
		// Of an earlier version, which names no version of its own.
		d.exec(`INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_dead', $1, 0, 7)`, longest.Microseconds())
		var all []lease.NodeState
		read := func(done func() bool) func() bool {
			return func() bool {
				found, err := f.Nodes(t.Context())
				ok(t, err)
				all = found
				return len(all) == 2 && done()
			}
		}
		storetest.Until(t, "its own heartbeat", read(func() bool { return all[0].IsThis && all[0].SeenAgo >= 0 || all[1].IsThis && all[1].SeenAgo >= 0 }))
		slices.SortFunc(all, func(a, b lease.NodeState) int { return strings.Compare(b.Version, a.Version) })
		if own, other := all[0], all[1]; own.Version != doorward.Version || !own.IsThis || own.IsSilent || own.Lease != short || other.ID != "nod_dead" || other.Version != "" || other.IsThis || other.Lease != longest {
			t.Errorf("%+v and %+v", own, other)
		}
	})
}

// TestLivingNodesAreNotRemoved: after an outage of the database, no node removes another one
// that was cut off just as long.
func TestLivingNodesAreNotRemoved(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	d := migrated(t, server.DSN(t))
	var all []*follower
	for range 3 {
		all = append(all, follow(t, d.open(), short))
	}
	server.Pause(t)
	<-time.After(4 * short) // longer than it takes to be removed
	server.Resume(t)
	for _, f := range all {
		storetest.Until(t, "the lease", f.Valid)
	}
	settled, err := all[0].Settle(t.Context(), commit(t, all[0].db, "a"))
	if err != nil || settled.Nodes != 3 {
		t.Errorf("%+v, %v: want all three", settled, err)
	}
	for i, f := range all {
		if f.countResets() != 1 && f.Lapses() == 1 { // further lapses are due to a busy machine
			t.Errorf("node %d was reset %d times: an outage of the database must not remove a node", i, f.countResets())
		}
	}
}

// TestSettleWaitsForSlowNodes: Settle waits for slow nodes as long as they take.
func TestSettleWaitsForSlowNodes(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		const delay = 100 * time.Millisecond
		f, other, db := follow(t, d.open(), longest), follow(t, d.open(), longest), d.open()
		other.beforeEach(func() error { <-time.After(delay); return nil })
		settled, err := f.Settle(t.Context(), revocation(commit(t, db, "slow")))
		if err != nil || settled.Took < delay || other.Lapses() == 0 && (settled.Nodes != 2 || other.count("slow") == 0) {
			t.Errorf("%+v, %v: want both nodes, after %v", settled, err, delay)
		}
		other.stop()
		if other.Valid() {
			t.Error("the memory of a node that has left is valid")
		}
		settled, err = f.Settle(t.Context(), revocation(commit(t, db, "left")))
		if err != nil || settled.Nodes != 1 || d.countNodes() != 1 {
			t.Errorf("Settle after a node has left: %+v, %v, want the other one", settled, err)
		}
	})
}

// TestSettleWaitsForStoppedNodes: Settle waits one lease for a stopped node, whose memory is
// invalid then. A flush stays unsettled, and a request may time out earlier.
func TestSettleWaitsForStoppedNodes(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		// Without a node of its own, so that nobody removes the stopped one.
		f, other, db := lease.New(d.open(), short), follow(t, d.open(), short), d.open()
		reached, release := other.block(t)
		settled, err := f.Settle(t.Context(), revocation(commit(t, db, "stopped")))
		if valid := other.Valid(); err != nil || settled.Nodes != 1 || settled.Took < short || valid {
			t.Errorf("%+v, %v; the stopped node's memory is valid: %v; want one node after %v", settled, err, valid, short)
		}
		<-reached
		_, err = f.Settle(t.Context(), commit(t, db, "flush"))
		if !doorward.HasCode(err, doorward.CodeUnavailable) {
			t.Errorf("a flush that a node has not acknowledged: %v, want unavailable", err)
		}
		ctx, cancel := waittest.Interrupt(t.Context(), short/4)
		defer cancel()
		_, err = f.Settle(ctx, revocation(commit(t, db, "request over")))
		if !doorward.HasCode(err, doorward.CodeUnavailable) {
			t.Errorf("the request ended before a lease had passed: %v, want unavailable", err)
		}
		release()
		storetest.Until(t, "its lease", other.Valid)
		storetest.Until(t, "a flush that both settle after the node has resumed", func() bool {
			settled, err := f.Settle(t.Context(), commit(t, db, "flush"))
			return err == nil && settled.Nodes == 2
		})
	})
}

// TestFailedApplyIsNotAcknowledged: a node that could not apply a change doesn't
// acknowledge it, and applies it later.
func TestFailedApplyIsNotAcknowledged(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		f, other, db := follow(t, d.open(), short), follow(t, d.open(), short), d.open()
		other.beforeEach(func() error { return errors.New("no") })
		_, err := f.Settle(t.Context(), commit(t, db, "a"))
		if !doorward.HasCode(err, doorward.CodeUnavailable) {
			t.Errorf("while the other node fails: %v, want unavailable", err)
		}
		storetest.Until(t, "the end of its lease", func() bool { return !other.Valid() })
		other.beforeEach(func() error { return nil })
		storetest.Until(t, "its lease", other.Valid)
		storetest.Until(t, "a flush that is settled once the other node works again", func() bool {
			_, err := f.Settle(t.Context(), commit(t, db, "b"))
			return err == nil
		})
	})
}

// TestRaceSettleAll: a caller that finds something already ended waits as long as the caller
// that ended it, and not at all if everything is settled.
func TestRaceSettleAll(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		f, other, db := follow(t, d.open(), longest), follow(t, d.open(), longest), d.open()
		commit(t, db, "by a caller that got no answer")
		settled, err := f.SettleAll(t.Context())
		if err != nil || settled.Nodes != 2 || len(f.all()) != 1 || len(other.all()) != 1 {
			t.Errorf("%+v, %v; the nodes applied %q and %q: want both nodes to have applied it", settled, err, f.all(), other.all())
		}
		reached, _ := other.block(t)
		commit(t, db, "by a caller that is still waiting")
		<-reached
		settled, err = f.SettleAll(t.Context())
		if err != nil || settled.Nodes != 1 || settled.Took < longest {
			t.Errorf("%+v, %v: want a lease for the stopped node", settled, err)
		}
		command, err := lease.New(d.open(), longest).SettleAll(t.Context()) // without a memory, it waits for the nodes
		if err != nil || command.Took < longest {
			t.Errorf("%+v, %v: want a lease for the stopped node", command, err)
		}
	})
}

// TestTwoProcesses: two processes with a lease each share only a file: no notifications, no
// common memory.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, dbtest.SQLite(t))
	f := follow(t, d.open(), longest)
	other := exec.Command(os.Args[0], "-test.run=^TestFollowerProcess$", "-test.v")
	other.Env = append(os.Environ(), "DOORWARD_FOLLOW="+d.dsn)
	out, err := other.StdoutPipe()
	ok(t, err)
	ok(t, other.Start())
	defer other.Wait() //nolint:errcheck // it is killed
	defer other.Process.Kill()
	var mu sync.Mutex
	var printed []string
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			mu.Lock()
			printed = append(printed, lines.Text())
			mu.Unlock()
		}
	}()
	hasPrinted := func(line string) bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(printed, line) }
	storetest.Until(t, "the other process", func() bool { return hasPrinted("valid") })

	for i := range 5 {
		subject := fmt.Sprint("change ", i)
		settled, err := f.Settle(t.Context(), commit(t, f.db, subject))
		if err != nil || settled.Nodes != 2 {
			t.Errorf("%+v, %v: want both processes to have applied it", settled, err)
		}
		storetest.Until(t, "the line about it", func() bool { return hasPrinted("applied " + subject) })
	}
	ok(t, other.Process.Kill())
	settled, err := f.Settle(t.Context(), revocation(commit(t, f.db, "after its death")))
	if err != nil || settled.Nodes != 1 || settled.Took < longest {
		t.Errorf("after the process was killed: %+v, %v: want a lease", settled, err)
	}
	storetest.Until(t, "the removal", func() bool { return d.countNodes() == 1 })
}

// TestFollowerProcess runs in the other process.
func TestFollowerProcess(t *testing.T) {
	dsn := os.Getenv("DOORWARD_FOLLOW")
	if dsn == "" {
		t.Skip("run by TestTwoProcesses")
	}
	l := lease.New(storetest.Open(t, dsn, time.Now), longest)
	l.Follow(func(_ context.Context, changes []store.Change) error {
		for _, c := range changes {
			fmt.Println("applied " + strings.TrimSpace(subject(c)))
		}
		return nil
	}, func() {})
	go l.Run(t.Context())
	storetest.Until(t, "the lease", l.Valid)
	fmt.Println("valid")
	select {} // it is killed
}

// TestAlive: a running node shows heartbeats; a killed one doesn't.
func TestAlive(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		db := d.open()
		alive := func() bool {
			isAlive, err := lease.Alive(t.Context(), db)
			ok(t, err)
			return isAlive
		}
		if alive() {
			t.Error("Alive reports a server without any node")
		}
		stop := run(t, lease.New(db, lease.MinLease))
		if !alive() {
			t.Error("a running node is reported as dead")
		}
		stop()
		d.exec(`INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_killed', 1000000, 0, 5)`)
		if alive() {
			t.Error("a killed node is reported as alive")
		}
	})
}

// TestRaceSweep: Sweep deletes only changes that no node can still need.
func TestRaceSweep(t *testing.T) {
	for engine, dsn := range engines {
		t.Run(engine, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			at := dsn(t)
			db := storetest.Open(t, at, func() time.Time { return now })
			for range 3 {
				commit(t, db, "a")
				now = now.Add(time.Second)
			}
			storetest.Exec(t, storetest.Raw(t, at), `INSERT INTO changes (seq, kind, subject, at)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) SELECT -i, 'all', '', i FROM n`) // more than a batch
			now = time.Unix(1e9+1, 0).Add(lease.ChangesKept)
			ok(t, lease.New(db, lease.MinLease).Sweep(t.Context()))
			if got := storetest.Query[string](t, storetest.Raw(t, at), `SELECT count(*) || ' from ' || min(seq) FROM changes`); got != "1 from 3" {
				t.Errorf("the changes left are %s: want 1 from 3", got)
			}
		})
	}
}

// TestDifferences: published settings are compared by name, and a name that only one of
// two nodes knows is no difference.
func TestDifferences(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		db := d.open()
		own := []lease.Setting{{Name: "hold", Value: "336h0m0s", Strict: true}, {Name: "url", Value: "https://x.example/?a=b"}, {Name: "new", Value: "1"}}
		expect := func(want ...lease.Difference) {
			t.Helper()
			got, err := lease.Differences(t.Context(), db, own)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v, %v: want %+v", got, err, want)
			}
		}
		expect()
		other := lease.New(db, lease.MinLease)
		other.Publish([]lease.Setting{{Name: "hold", Value: "0s"}, {Name: "url", Value: "https://x.example/?a=b"}, {Name: "old", Value: "1"}}, false)
		ok(t, other.Join(t.Context()))
		expect(lease.Difference{Setting: own[0], OtherValue: "0s", Node: other.ID()})
		other.Leave(t.Context())
		expect()
	})
}
