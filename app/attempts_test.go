package app_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/store"
)

// usual are the limits of production.
var usual = credential.Limits{PerAccount: 5, PerIP: 30}

// onEachLimited is onEach with the usual limits and a clock that the test moves on.
func onEachLimited[C interface{ now() time.Time }](t *testing.T, newClock func() C, test func(*world, C)) {
	t.Helper()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			test(newWorld(t, e, usual, clock.now), clock)
		})
	}
}

func newAhead() *ahead { return &ahead{} }

func newStanding() *standing { return &standing{at: time.Now()} }

// standing is a clock that stands still but for what a test moves it by.
type standing struct {
	at time.Time
	by atomic.Int64
}

func (s *standing) now() time.Time       { return s.at.Add(time.Duration(s.by.Load())) }
func (s *standing) move(d time.Duration) { s.by.Add(int64(d)) }

// setHash gives the account a hash whatever it had.
func (w *world) setHash(p person, hash string) {
	w.Helper()
	_, err := w.db.Write(w.Context(), func(tx *store.Tx) error {
		_, err := tx.SetPassword(w.Context(), p.ID, w.account(p).PasswordHash, hash)
		return err
	})
	w.ok(err)
}

// busy has somebody guess wrong at an account whose hash takes so long that others
// can come meanwhile, and all workers of node 0 besides. It returns when that has
// begun; the channel says how it has ended.
func (w *world) busy(ctx context.Context, passes uint32) (person, <-chan error) {
	w.Helper()
	_, slow := w.tenant()
	hash, err := argon.NewPool(argon.Params{MemoryKiB: 64 << 10, Time: passes, Parallelism: 1}, argon.Options{}).Hash(w.Context(), first)
	w.ok(err)
	w.setHash(slow, hash)
	done := make(chan error, 1)
	go func() {
		_, err := w.on(0).Login.WithPassword(ctx, stranger(200), slow.Email, password(1), "")
		done <- err
	}()
	w.until("all workers hash", func() bool { s := w.on(0).Hashing(); return s.Busy == s.Workers })
	return slow, done
}

// until waits for a condition.
func (w *world) until(what string, is func() bool) {
	w.Helper()
	for began := time.Now(); !is(); {
		if time.Since(began) > time.Minute {
			w.Fatalf("after a minute not yet: %s", what)
		}
	}
}

// observe is the database as another program has it.
func (w *world) observe() *sql.DB {
	w.Helper()
	if w.observer != nil {
		return w.observer
	}
	driver, dsn := "pgx", w.dsn
	if path, ok := strings.CutPrefix(w.dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	w.ok(err)
	w.Cleanup(func() { db.Close() })
	w.observer = db
	return db
}

// unobserved ends that, before deadlocks are counted, which wants to be alone.
func (w *world) unobserved() {
	if w.observer != nil {
		w.observer.Close()
		w.observer = nil
	}
}

// counted returns a number from the database.
func (w *world) counted(query string, args ...any) (n int) {
	w.Helper()
	w.ok(w.observe().QueryRowContext(w.Context(), query, args...).Scan(&n))
	return n
}

func (w *world) inFlight() int { return w.counted(`SELECT count(*) FROM attempts`) }

// failures are those counted in a bucket, or in all whose name begins so.
func (w *world) failures(bucket string) int {
	w.Helper()
	return w.counted(`SELECT coalesce(sum(hits), 0) FROM throttles WHERE substr(bucket, 1, $1) = $2`, len(bucket), bucket)
}

// TestRightPasswordsAtOnce: sixty people of one office sign in at once. Who is one
// too many waits for a second; nobody has failed, and the address is open.
func TestRightPasswordsAtOnce(t *testing.T) {
	onEachLimited(t, newStanding, func(w *world, _ *standing) {
		_, owner := w.tenant()
		people := []person{owner}
		for range 11 {
			people = append(people, w.join(owner, doorward.RoleUser))
		}
		errs := together(60, func(i int) error {
			_, err := w.on(i).Login.WithPassword(w.Context(), stranger(9), people[i%12].User.Email, first, "")
			return err
		})
		got := count(errs)
		if got[""]+got[doorward.CodeTooManyAttempts] != 60 || got[""] < 12 {
			w.Errorf("the logins ended in %v", got)
		}
		for _, err := range errs {
			if err != nil {
				w.waitsForASecond(err)
			}
		}
		for i, p := range people {
			_, err := w.on(i).Login.WithPassword(w.Context(), stranger(9), p.Email, first, "")
			w.ok(err)
		}
		if got := w.tries("nobody@example.com", first); got != doorward.CodeInvalidCredentials {
			w.Errorf("somebody else there gets %s", got)
		}
		if n := w.inFlight(); n != 0 {
			w.Errorf("%d attempts are in flight", n)
		}
	})
}

// TestAttemptsInFlight: while attempts are only in flight, those beyond the free
// ones wait for a second and leave nothing. When all in flight were right, nothing
// has happened. Here they wait for somebody who holds the account; on SQLite nobody
// else could write meanwhile, see TestAttemptsOfAKilledNode.
func TestAttemptsInFlight(t *testing.T) {
	w := newWorld(t, engines[1], usual, time.Now)
	_, ann := w.tenant()
	hold, err := w.observe().Begin()
	w.ok(err)
	_, err = hold.Exec(`UPDATE users SET revision = revision + 1 WHERE id = $1`, ann.ID)
	w.ok(err)
	refusals := w.counted(`SELECT count(*) FROM events WHERE outcome = 'refused'`)
	right := make(chan []error)
	go func() {
		right <- together(usual.PerAccount, func(i int) error {
			_, err := w.on(i).Login.WithPassword(t.Context(), stranger(i), ann.Email, first, "")
			return err
		})
	}()
	w.until("five attempts are in flight", func() bool { return w.inFlight() == usual.PerAccount })
	for i := range 4 {
		_, err := w.on(i).Login.WithPassword(t.Context(), stranger(100+i), ann.Email, first, "")
		w.waitsForASecond(err)
	}
	if n := w.counted(`SELECT count(*) FROM events WHERE outcome = 'refused'`) - refusals; n != 0 {
		t.Errorf("%d refusals are recorded, and nothing was refused", n)
	}
	w.ok(hold.Rollback())
	w.ends(<-right, tally{"": usual.PerAccount})
	if n := w.failures("account:") + w.failures("ip:"); n != 0 || w.inFlight() != 0 {
		t.Errorf("%d failures are left, and %d attempts in flight", n, w.inFlight())
	}
}

// waitsForASecond wants the error to be of somebody who came beside others.
func (w *world) waitsForASecond(err error) {
	w.Helper()
	var e *doorward.Error
	if !errors.As(err, &e) || e.Code != doorward.CodeTooManyAttempts || e.RetryAfter != time.Second {
		w.Errorf("one beside those in flight ended in %v", err)
	}
}

// TestAttemptsThatCantBeJudged: what is answered 503 was no failure. Here it is a
// hash that can't be read.
func TestAttemptsThatCantBeJudged(t *testing.T) {
	onEachLimited(t, newStanding, func(w *world, _ *standing) {
		_, ann := w.tenant()
		good := w.account(ann).PasswordHash
		w.setHash(ann, "$unknown$")
		for range 40 {
			if got := w.tries(ann.Email, first); got != doorward.CodeUnavailable {
				w.Fatalf("a login with a hash that can't be read: %s", got)
			}
		}
		w.setHash(ann, good)
		w.signIn(ann.Email, first)
		if n := w.failures("account:") + w.failures("ip:"); n != 0 {
			w.Errorf("%d failures are left", n)
		}
	})
}

// TestHangingUp: who hangs up before an attempt was judged gets it back, and who
// hangs up after that doesn't get rid of the failure.
func TestHangingUp(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			e.nodes = 1
			w := newWorld(t, e, usual, time.Now)
			_, ann := w.tenant()
			guessing, stop := context.WithCancel(t.Context())
			slow, guess := w.busy(guessing, 32)
			for range usual.PerAccount + 1 {
				ctx, hangUp := context.WithCancel(t.Context())
				waiting := make(chan error)
				go func() {
					_, err := w.on(0).Login.WithPassword(ctx, stranger(100), ann.Email, password(1), "")
					waiting <- err
				}()
				w.until("it waits for a worker", func() bool { return w.on(0).Hashing().Queued == 1 })
				hangUp()
				if err := <-waiting; code(err) != doorward.CodeUnavailable {
					t.Fatalf("hanging up ends in %v", err)
				}
				w.until("the attempt is given back", func() bool { return w.inFlight() == 1 })
			}
			stop() // while it is being hashed
			if err := <-guess; code(err) != doorward.CodeUnavailable {
				t.Fatalf("hanging up after the hash ends in %v", err)
			}
			w.until("the wrong one is counted", func() bool { return w.inFlight() == 0 })
			if got := w.failures("account:" + slow.Email); got != 1 {
				t.Errorf("%d failures are counted, want that of the wrong password", got)
			}
			if got := w.failures("account:" + ann.Email); got != 0 {
				t.Errorf("%d failures are counted, and none was judged", got)
			}
			w.signIn(ann.Email, first)
		})
	}
}

// TestAttemptsOfAKilledNode: what a node has left in flight keeps others waiting
// for a minute at most, and is no failure.
func TestAttemptsOfAKilledNode(t *testing.T) {
	onEachLimited(t, newStanding, func(w *world, clock *standing) {
		_, ann := w.tenant()
		_, err := w.db.Write(w.Context(), func(tx *store.Tx) (err error) {
			for i := range usual.PerAccount {
				a := store.Attempt{ID: fmt.Sprint(i), Own: "account:" + ann.Email, Wider: "ip:192.0.2.1"}
				err = errors.Join(err, tx.InsertAttempt(w.Context(), a, tx.Now.Add(time.Minute)))
			}
			return err
		})
		w.ok(err)
		clock.move(time.Minute - time.Microsecond)
		_, err = w.on(0).Login.WithPassword(w.Context(), stranger(0), ann.Email, first, "")
		w.waitsForASecond(err)
		if n := w.failures("account:") + w.failures("ip:") + w.counted(`SELECT count(*) FROM events WHERE outcome = 'refused'`); n != 0 || w.inFlight() != usual.PerAccount {
			w.Errorf("it has left %d traces, and %d in flight", n, w.inFlight())
		}
		clock.move(time.Microsecond)
		w.signIn(ann.Email, first)
		w.ok(w.on(0).Sweep(w.Context()))
		if n := w.inFlight(); n != 0 {
			w.Errorf("%d are in flight after a sweep", n)
		}
	})
}

// TestDeviceGuessesAtOnce: the allowances hold for guesses at once too, on several
// nodes, with the cookies in any order, and nobody waits for a deadlock.
func TestDeviceGuessesAtOnce(t *testing.T) {
	onEachLimited(t, newStanding, func(w *world, clock *standing) {
		_, ann := w.tenant()
		var devices [][]byte
		for range 6 {
			r, err := w.on(0).Login.WithPassword(w.Context(), stranger(0), ann.Email, first, "")
			w.ok(err)
			hash := r.Device.Hash()
			devices = append(devices, hash[:])
		}
		for _, c := range []struct {
			name string
			of   func(i int) [][]byte
			most int
		}{
			{"one device", func(int) [][]byte { return devices[:1] }, 10},
			{"two, in any order", func(i int) [][]byte { return [][]byte{devices[1+i%2], devices[2-i%2]} }, 20},
			{"all", func(i int) [][]byte { return devices[i%6:][:1] }, 0},
		} {
			for round := range 4 { // those in flight keep others waiting
				got := count(together(60, func(i int) error {
					by := stranger(i)
					by.Devices = c.of(i)
					_, err := w.on(i).Login.WithPassword(w.Context(), by, ann.Email, password(1), "")
					return err
				}))
				c.most -= got[doorward.CodeInvalidCredentials]
				if c.most < 0 || got[doorward.CodeInvalidCredentials]+got[doorward.CodeTooManyAttempts] != 60 {
					w.Errorf("%s, round %d: %v", c.name, round, got)
				}
			}
			if c.most != 0 {
				w.Errorf("%s: %d tries of the allowance are left", c.name, c.most)
			}
		}
		clock.move(time.Hour)
		by := stranger(0)
		by.Devices = devices[:1]
		_, err := w.on(0).Login.WithPassword(w.Context(), by, ann.Email, first, "")
		w.ok(err)
		if w.on(0) != w.on(1) {
			if n := w.deadlocks(); n > 0 {
				w.Errorf("PostgreSQL has resolved %d deadlocks", n)
			}
		}
	})
}

// TestDevicesAtOnce: however many browsers are remembered at once, an account has
// twenty, and the one that was used is among them.
func TestDevicesAtOnce(t *testing.T) {
	onEach(t, func(w *world) {
		_, ann := w.tenant()
		r, err := w.on(0).Login.WithPassword(w.Context(), stranger(0), ann.Email, first, "")
		w.ok(err)
		hash, by := r.Device.Hash(), stranger(0)
		by.Devices = [][]byte{hash[:]}
		_, err = w.on(0).Login.WithPassword(w.Context(), by, ann.Email, first, "")
		w.ok(err)
		w.ends(together(40, func(i int) error {
			_, err := w.on(i).Login.WithPassword(w.Context(), stranger(i), ann.Email, first, "")
			return err
		}), tally{"": 40})
		if n := w.counted(`SELECT count(*) FROM devices`); n != 20 {
			w.Errorf("there are %d devices, want 20", n)
		}
		known, err := w.db.Read().KnownDevices(w.Context(), ann.Email, by.Devices, time.Time{})
		w.ok(err)
		if len(known) != 1 {
			w.Error("the one that was used is gone")
		}
	})
}
