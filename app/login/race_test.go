package login_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/store"
)

// outdate gives the person's password a hash with parameters that the next login replaces.
func outdate(f *apptest.Fixture, p apptest.Person) {
	f.Helper()
	pool := argon.NewPool(argon.Params{MemoryKiB: 1024, Time: 2, Parallelism: 1}, argon.Options{})
	hash, err := pool.Hash(f.Context(), apptest.FirstPassword)
	f.NoError(err)
	f.Exec(`UPDATE users SET password_hash = $1 WHERE id = $2`, hash, p.User.ID)
}

// whileAccountLocked starts the calls, waits until all of them wait for the account, and
// returns their errors.
func whileAccountLocked(f *apptest.Fixture, p apptest.Person, calls ...func() error) (errs []error) {
	f.Helper()
	results := make([]chan error, len(calls))
	f.WhileLocked(func(tx *store.Tx) error {
		_, err := tx.LockAccount(f.Context(), p.User.ID)
		return err
	}, func(waitFor func(int, <-chan struct{})) {
		for i, call := range calls {
			results[i] = make(chan error, 1)
			go func() { results[i] <- call() }()
			waitFor(i+1, nil)
		}
	})
	for _, result := range results {
		errs = append(errs, <-result)
	}
	return errs
}

// TestReplacedHashRefusesNobody: while a login replaces an outdated hash of the password,
// others with the same password are under way. The password is still right.
func TestReplacedHashRefusesNobody(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.HighLimits, time.Now)
	_, ann := f.Tenant()
	by, _ := openSession(f, ann)
	token := beginStepUp(f, by)
	outdate(f, ann)
	signIn := func(i int) error {
		return apptest.ErrorOf(apptest.SignedIn(f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(i), ann.User.Email, apptest.FirstPassword, "")))
	}
	f.WantCodes(whileAccountLocked(f, ann,
		func() error { return signIn(0) },
		func() error { return signIn(1) },
		func() error { return apptest.ErrorOf(stepUp(f, 1, by, token, byPassword(apptest.FirstPassword))) },
	), apptest.Codes{"": 3})
	next, refused := apptest.Password(1), 0
	for { // until the login gets the lock first; rarely the change does, and refuses the login rightly
		outdate(f, ann)
		errs := whileAccountLocked(f, ann, func() error { return signIn(0) }, func() error {
			return apptest.ErrorOf(f.Node(1).Passwords.Change(f.Context(), ann.Caller, apptest.FirstPassword, next, next))
		})
		f.NoError(errs[1])
		if errs[0] == nil {
			break
		}
		wantCode(f, errs[0], doorward.CodeInvalidCredentials)
		if refused++; refused == 3 {
			t.Fatal("the login is refused each time")
		}
	}
	if n := f.CountFailures("account:"); n > refused {
		t.Errorf("%d attempts count as failures, want %d at most", n, refused)
	}
	f.WantPassword(ann.User.Email, 1, 2)
}

// TestRaceNoStepUpBehindAFactor: a session begins a step-up while the person sets up the first
// factor. Afterwards the password alone doesn't do.
func TestRaceNoStepUpBehindAFactor(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	acme, ann := f.Tenant()
	stolen, _ := openSession(f, ann)
	f.UseMasterKey()
	e, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, "")
	f.NoError(err)
	begun, confirmed := make(chan factor.NewChallenge, 1), make(chan error, 1)
	f.WhileTrailLocked(acme.ID, func(waitFor func(int, <-chan struct{})) {
		go func() {
			b, err := f.Node(1).Login.BeginStepUp(f.Context(), stolen)
			if err != nil {
				t.Error(err)
			}
			begun <- b
		}()
		waitFor(1, nil)
		go func() {
			code := totp.Code(e.Seed, totp.Step(f.DB.Now()))
			confirmed <- apptest.ErrorOf(f.Node(0).Factors.Confirm(f.Context(), ann.Caller, e.ID, code))
		}()
		waitFor(2, nil)
	})
	f.NoError(<-confirmed)
	_, err = stepUp(f, 1, stolen, (<-begun).Token.Reveal(), byPassword(apptest.FirstPassword))
	wantCode(f, err, doorward.CodeChallengeOver)
}

// TestRaceSuspendedInTheSecondStep: a person is suspended while the second step opens a session. No
// session is left, and neither call waits for the database to resolve a deadlock.
func TestRaceSuspendedInTheSecondStep(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		a := f.Enrol(&ann)
		for i := range apptest.Rounds(6, 10) {
			c := f.Challenge(apptest.Anonymous(1), ann)
			var opened session.Opened
			errs := apptest.Concurrently(2, func(n int) error {
				if n == 0 {
					in, err := withSecond(f, 1, apptest.Anonymous(1), c, factor.Answer{RecoveryCode: a.Recovery[i]})
					opened = in.Opened
					return err
				}
				return apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), owner.Caller, ann.User))
			})
			f.WantOnly(errs[:1], "", doorward.CodeChallengeOver, doorward.CodeMembershipSuspended)
			f.NoError(errs[1])
			if errs[0] == nil && f.IsValid(opened.Token) {
				f.Error("a session is left")
			}
			f.NoError(f.Node(0).Users.Resume(f.Context(), owner.Caller, ann.User))
		}
		f.WantNoDeadlocks()
	})
}
