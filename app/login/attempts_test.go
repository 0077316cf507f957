package login_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// setHash overwrites the account's password hash.
func setHash(f *apptest.Fixture, p apptest.Person, hash string) {
	f.Helper()
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		_, err := tx.SetPassword(f.Context(), p.User.ID, f.Account(p).PasswordHash, hash)
		return err
	})
	f.NoError(err)
}

// occupyWorkers starts a wrong guess at an account whose hash takes more memory than the
// pool of node 0 is built for, so that it takes all workers. It returns once hashing has
// begun; the channel gets the guess's error.
func occupyWorkers(f *apptest.Fixture, ctx context.Context, passes uint32) (apptest.Person, <-chan error) {
	f.Helper()
	_, slow := f.Tenant()
	digest := strings.Repeat("A", 43) // of no password: the guess fails after all passes
	setHash(f, slow, fmt.Sprintf("$argon2id$v=19$m=65536,t=%d,p=1$c2FsdHNhbHRzYWx0c2FsdA$%s", passes, digest))
	done := make(chan error, 1)
	go func() {
		_, err := f.Node(0).Login.WithPassword(ctx, apptest.Anonymous(200), slow.User.Email, apptest.Password(1), "")
		done <- err
	}()
	f.Until("all workers hash", func() bool { s := f.Node(0).Hashing(); return s.Busy == s.Workers })
	return slow, done
}

func inFlight(f *apptest.Fixture) int { return f.Int(`SELECT count(*) FROM attempts`) }

// TestRaceRightPasswordsAtOnce: twelve people of one office make sixty logins at once. Logins
// beyond the limit must wait for a second; none counts as failed, and the office's IP address
// isn't blocked.
func TestRaceRightPasswordsAtOnce(t *testing.T) {
	apptest.OnEachClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		_, owner := f.Tenant()
		people := []apptest.Person{owner}
		for range 11 {
			people = append(people, f.Join(owner, doorward.RoleUser))
		}
		errs := apptest.Concurrently(60, func(i int) error {
			_, err := f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(9), people[i%12].User.Email, apptest.FirstPassword, "")
			return err
		})
		got := apptest.CountCodes(errs)
		if got[""]+got[doorward.CodeTooManyAttempts] != 60 || got[""] < 12 {
			f.Errorf("the logins ended in %v", got)
		}
		for _, err := range errs {
			if err != nil {
				wantWaitOfASecond(f, err)
			}
		}
		for i, p := range people {
			_, err := f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(9), p.User.Email, apptest.FirstPassword, "")
			f.NoError(err)
		}
		if got := f.TryLogin("nobody@example.com", apptest.FirstPassword); got != doorward.CodeInvalidCredentials {
			f.Errorf("another person of the office gets %s", got)
		}
		if n := inFlight(f); n != 0 {
			f.Errorf("%d attempts are in flight", n)
		}
	})
}

// TestRaceAttemptsInFlight: while as many attempts are in flight as may fail, further attempts must
// wait for a second, and are neither counted nor recorded. If all in flight succeed, nothing is
// counted. Here another transaction locks the account; on SQLite that blocks all writers, see
// TestAttemptsOfAKilledNode.
func TestRaceAttemptsInFlight(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.ProductionLimits, time.Now)
	_, ann := f.Tenant()
	locking, err := f.SQL().Begin()
	f.NoError(err)
	_, err = locking.Exec(`UPDATE users SET revision = revision + 1 WHERE id = $1`, ann.User.ID)
	f.NoError(err)
	refusals := f.Int(`SELECT count(*) FROM events WHERE outcome = 'refused'`)
	right := make(chan []error)
	go func() {
		right <- apptest.Concurrently(apptest.ProductionLimits.PerAccount, func(i int) error {
			_, err := f.Node(i).Login.WithPassword(t.Context(), apptest.Anonymous(i), ann.User.Email, apptest.FirstPassword, "")
			return err
		})
	}()
	f.Until("five attempts are in flight", func() bool { return inFlight(f) == apptest.ProductionLimits.PerAccount })
	for i := range 4 {
		_, err := f.Node(i).Login.WithPassword(t.Context(), apptest.Anonymous(100+i), ann.User.Email, apptest.FirstPassword, "")
		wantWaitOfASecond(f, err)
	}
	if n := f.Int(`SELECT count(*) FROM events WHERE outcome = 'refused'`) - refusals; n != 0 {
		t.Errorf("%d refusals are recorded, want none", n)
	}
	f.NoError(locking.Rollback())
	f.WantCodes(<-right, apptest.Codes{"": apptest.ProductionLimits.PerAccount})
	if n := f.CountFailures("account:") + f.CountFailures("ip:"); n != 0 || inFlight(f) != 0 {
		t.Errorf("%d failures are left, and %d attempts in flight", n, inFlight(f))
	}
}

// wantWaitOfASecond fails unless the error says to wait a second, since other attempts are in
// flight.
func wantWaitOfASecond(f *apptest.Fixture, err error) {
	f.Helper()
	var e *doorward.Error
	if !errors.As(err, &e) || e.Code != doorward.CodeTooManyAttempts || e.RetryAfter != time.Second {
		f.Errorf("while other attempts are in flight, one ended with %v", err)
	}
}

// TestAttemptsThatCantBeChecked: an attempt answered with 503 is not a failure. The
// cause here is a hash that can't be parsed.
func TestAttemptsThatCantBeChecked(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		_, ann := f.Tenant()
		good := f.Account(ann).PasswordHash
		setHash(f, ann, "$unknown$")
		for range 40 {
			if got := f.TryLogin(ann.User.Email, apptest.FirstPassword); got != doorward.CodeUnavailable {
				f.Fatalf("a login with a hash that can't be parsed: %s", got)
			}
		}
		setHash(f, ann, good)
		f.SignIn(ann.User.Email, apptest.FirstPassword)
		if n := f.CountFailures("account:") + f.CountFailures("ip:"); n != 0 {
			f.Errorf("%d failures are left", n)
		}
	})
}

// TestRaceHangingUp: an attempt whose client disconnects before hashing has begun doesn't
// count. If the client disconnects while it is hashed, a wrong password counts.
func TestRaceHangingUp(t *testing.T) {
	f := apptest.New(t, apptest.SQLite, apptest.ProductionLimits, time.Now)
	_, ann := f.Tenant()
	guessing, stop := context.WithCancel(t.Context())
	slow, guess := occupyWorkers(f, guessing, 32)
	for range apptest.ProductionLimits.PerAccount + 1 {
		ctx, hangUp := context.WithCancel(t.Context())
		waiting := make(chan error)
		go func() {
			_, err := f.Node(0).Login.WithPassword(ctx, apptest.Anonymous(100), ann.User.Email, apptest.Password(1), "")
			waiting <- err
		}()
		f.Until("it waits for a worker", func() bool { return f.Node(0).Hashing().Queued == 1 })
		hangUp()
		if err := <-waiting; apptest.Code(err) != doorward.CodeUnavailable {
			t.Fatalf("hanging up ends with %v", err)
		}
		f.Until("the attempt is released", func() bool { return inFlight(f) == 1 })
	}
	stop() // while it is being hashed
	if err := <-guess; apptest.Code(err) != doorward.CodeUnavailable {
		t.Fatalf("hanging up during the hash ends with %v", err)
	}
	f.Until("the wrong password is counted", func() bool { return inFlight(f) == 0 })
	if got := f.CountFailures("account:" + slow.User.Email); got != 1 {
		t.Errorf("%d failures are counted, want that of the wrong password", got)
	}
	if got := f.CountFailures("account:" + ann.User.Email); got != 0 {
		t.Errorf("%d failures are counted, want none: no password was checked", got)
	}
	f.SignIn(ann.User.Email, apptest.FirstPassword)
}

// TestAttemptsOfAKilledNode: attempts that a killed node left in flight delay
// others for at most a minute and don't count as failures.
func TestAttemptsOfAKilledNode(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, ann := f.Tenant()
		_, err := f.DB.Write(f.Context(), func(tx *store.Tx) (err error) {
			for i := range apptest.ProductionLimits.PerAccount {
				a := store.Attempt{ID: fmt.Sprint(i), OwnBucket: "account:" + ann.User.Email, WiderBucket: "ip:192.0.2.1"}
				err = errors.Join(err, tx.InsertAttempt(f.Context(), a, tx.Now.Add(time.Minute)))
			}
			return err
		})
		f.NoError(err)
		clock.Move(time.Minute - time.Microsecond)
		_, err = f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, apptest.FirstPassword, "")
		wantWaitOfASecond(f, err)
		if n := f.CountFailures("account:") + f.CountFailures("ip:") + f.Int(`SELECT count(*) FROM events WHERE outcome = 'refused'`); n != 0 || inFlight(f) != apptest.ProductionLimits.PerAccount {
			f.Errorf("%d failures and %d attempts in flight are left", n, inFlight(f))
		}
		clock.Move(time.Microsecond)
		f.SignIn(ann.User.Email, apptest.FirstPassword)
		f.NoError(f.Node(0).Sweep(f.Context()))
		if n := inFlight(f); n != 0 {
			f.Errorf("%d are in flight after a sweep", n)
		}
	})
}

// TestRaceDeviceGuessesAtOnce: the limits hold for concurrent guesses on several
// nodes, with the cookies in any order and without deadlocks.
func TestRaceDeviceGuessesAtOnce(t *testing.T) {
	apptest.OnEachClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, ann := f.Tenant()
		var devices [][]byte
		for range 6 {
			r, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, apptest.FirstPassword, ""))
			f.NoError(err)
			hash := r.Device.Hash()
			devices = append(devices, hash[:])
		}
		for _, c := range []struct {
			name    string
			devices func(i int) [][]byte
			allowed int // tries that the limits of the devices, 10 each and 30 in all, still allow
		}{
			{"one device", func(int) [][]byte { return devices[:1] }, 10},
			{"two, in any order", func(i int) [][]byte { return [][]byte{devices[1+i%2], devices[2-i%2]} }, 20},
			{"all", func(i int) [][]byte { return devices[i%6:][:1] }, 0},
		} {
			for round := range 4 { // one isn't enough: while attempts are in flight, others are refused before the limit is reached
				got := apptest.CountCodes(apptest.Concurrently(60, func(i int) error {
					by := apptest.Anonymous(i)
					by.Devices = c.devices(i)
					_, err := f.Node(i).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.Password(1), "")
					return err
				}))
				c.allowed -= got[doorward.CodeInvalidCredentials]
				if c.allowed < 0 || got[doorward.CodeInvalidCredentials]+got[doorward.CodeTooManyAttempts] != 60 {
					f.Errorf("%s, round %d: %v", c.name, round, got)
				}
			}
			if c.allowed != 0 {
				f.Errorf("%s: %d tries of the allowance are left", c.name, c.allowed)
			}
		}
		clock.Move(time.Hour)
		by := apptest.Anonymous(0)
		by.Devices = devices[:1]
		_, err := f.Node(0).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.FirstPassword, "")
		f.NoError(err)
		f.WantNoDeadlocks()
	})
}

// TestRaceDevicesAtOnce: however many browsers are remembered at once, an account
// keeps twenty, including the one that was used before.
func TestRaceDevicesAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		r, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, apptest.FirstPassword, ""))
		f.NoError(err)
		hash, by := r.Device.Hash(), apptest.Anonymous(0)
		by.Devices = [][]byte{hash[:]}
		_, err = f.Node(0).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.FirstPassword, "")
		f.NoError(err)
		f.WantCodes(apptest.Concurrently(40, func(i int) error {
			_, err := f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(i), ann.User.Email, apptest.FirstPassword, "")
			return err
		}), apptest.Codes{"": 40})
		if n := f.Int(`SELECT count(*) FROM devices`); n != 20 {
			f.Errorf("there are %d devices, want 20", n)
		}
		known, err := f.DB.Read().KnownDevices(f.Context(), ann.User.Email, by.Devices, time.Time{})
		f.NoError(err)
		if len(known) != 1 {
			f.Error("the device that was used is gone")
		}
	})
}
