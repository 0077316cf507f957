package login_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// inSite returns an anonymous caller in the n-th /64 of the /48 2001:db8:site::/48.
func inSite(site, n int) doorward.Caller {
	by := apptest.Anonymous(0)
	by.IP = fmt.Sprintf("2001:db8:%x:%x::1", site, n)
	return by
}

// clientCounters are all counters of what a client address does: the prefix of the bucket, what a
// client may do, the window, and one try, which ends with permitted while it is within the limit.
var clientCounters = []struct {
	name      string
	limit     int
	window    time.Duration
	try       func(f *apptest.Fixture, by doorward.Caller, n int) error
	permitted doorward.Code
}{
	{"ip", 30, 10 * time.Minute, func(f *apptest.Fixture, by doorward.Caller, n int) error {
		_, err := f.Node(n).Login.WithPassword(f.Context(), by, fmt.Sprintf("nobody%d@example.com", n), apptest.FirstPassword, "")
		return err
	}, doorward.CodeInvalidCredentials},
	{"forgotten", 30, time.Hour, func(f *apptest.Fixture, by doorward.Caller, n int) error {
		return f.Node(n).Passwords.Forgot(f.Context(), by, fmt.Sprintf("nobody%d@example.com", n), "")
	}, ""},
	{"report", 30, 10 * time.Minute, func(f *apptest.Fixture, by doorward.Caller, n int) error {
		return f.Node(n).Leaks.Report(f.Context(), by, secret.NewKey(apikey.Prefix).Reveal())
	}, ""},
	{"unknown-keys", 30, 10 * time.Minute, func(f *apptest.Fixture, by doorward.Caller, n int) error {
		if n%2 == 0 {
			return apptest.ErrorOf(f.Node(n).Keys.Check(f.Context(), by, secret.NewKey(key.ServicePrefix).Reveal()))
		}
		return apptest.ErrorOf(f.Node(n).APIKeys.Check(f.Context(), by, secret.NewKey(apikey.Prefix).Reveal()))
	}, doorward.CodeUnauthenticated},
	{"passkey", 1000, 10 * time.Minute, func(f *apptest.Fixture, by doorward.Caller, n int) error {
		return apptest.ErrorOf(f.Node(n).Login.BeginPasskey(f.Context(), by))
	}, ""},
}

// TestSiteLimits: all clients of an IPv6 /48 together may do ten times what one client may. Beyond that
// they write no counters. Other networks aren't affected.
func TestSiteLimits(t *testing.T) {
	for _, c := range clientCounters {
		t.Run(c.name, func(t *testing.T) {
			apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
				tries := 0
				try := func(by doorward.Caller, want doorward.Code) {
					f.Helper()
					tries++
					if got := apptest.Code(c.try(f, by, tries)); got != want {
						f.Fatalf("try %d from %s ends with %q, want %q", tries, by.IP, got, want)
					}
				}
				try(inSite(1, 0), c.permitted)
				site := c.name + ":2001:db8:1::/48"
				if c.limit > 30 { // no need to make them all
					f.Exec(`UPDATE throttles SET hits = $1 WHERE bucket = $2`, 10*c.limit-2, site)
				}
				for n := f.CountFailures(site); n < 10*c.limit; n++ {
					try(inSite(1, n), c.permitted)
				}
				counters := f.CountRows("throttles")
				for n := range 50 {
					try(inSite(1, 60000+n), doorward.CodeTooManyAttempts)
				}
				if got := f.CountRows("throttles"); got != counters {
					t.Errorf("beyond the limit of the /48, tries made %d counters", got-counters)
				}
				try(inSite(2, 0), c.permitted)
				mapped := inSite(1, 0)
				mapped.IP = "::ffff:192.0.2.7"
				try(mapped, c.permitted)
				if f.CountFailures(c.name+":192.0.2.7") != 1 || f.CountFailures(c.name+":::/48") != 0 {
					t.Error("an IPv4-mapped address doesn't count as IPv4 alone")
				}
				clock.Move(c.window)
				try(inSite(1, 0), c.permitted)
			})
		})
	}
}

// TestRaceGuessesOfASiteAtOnce: of concurrent guesses from different clients of a /48, at different
// accounts and on several nodes, exactly as many are checked as the /48 may have.
func TestRaceGuessesOfASiteAtOnce(t *testing.T) {
	limits := proof.Limits{PerAccount: 5, PerIP: 2}
	apptest.OnEachClock(t, limits, apptest.NewStoppedClock, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		const guesses = 60
		f.WantCodes(apptest.Concurrently(guesses, func(i int) error { return clientCounters[0].try(f, inSite(1, i), i) }),
			apptest.Codes{doorward.CodeInvalidCredentials: 20, doorward.CodeTooManyAttempts: guesses - 20})
		if n := hashes(f); n != 20 {
			f.Errorf("%d guesses were hashed", n)
		}
	})
}

// TestUnknownKeysOfASite: the refusals of unknown keys from a /48 are one row in the inbox and one event
// in a minute, however many clients send them.
func TestUnknownKeysOfASite(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		for n := range 400 {
			_, _ = f.Node(0).APIKeys.Check(f.Context(), inSite(1, n), secret.NewKey(apikey.Prefix).Reveal())
		}
		if rows := f.CountRows("inbox"); rows != 1 {
			t.Errorf("400 unknown keys of a /48 have %d rows in the inbox", rows)
		}
		clock.Move(2 * time.Minute)
		f.Node(0).Inbox.RecordPending(f.Context())
		if n := f.Int(`SELECT count(*) FROM events WHERE action = 'apikey.refuse'`); n < 1 || n > 2 { // the first, and a count
			t.Errorf("400 unknown keys of a /48 are %d events", n)
		}
	})
}

// TestKnownBrowserInAClosedSite: the failures of others in the /48 don't affect a known browser.
func TestKnownBrowserInAClosedSite(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		_, ann := f.Tenant()
		by := inSite(1, 1)
		r, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.FirstPassword, ""))
		f.NoError(err)
		_ = clientCounters[0].try(f, inSite(1, 2), 0)
		f.Exec(`UPDATE throttles SET hits = 300 WHERE bucket = 'ip:2001:db8:1::/48'`)
		login := func(devices ...[]byte) error {
			by.Devices = devices
			_, err := f.Node(0).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.FirstPassword, "")
			return err
		}
		if got := apptest.Code(login()); got != doorward.CodeTooManyAttempts {
			t.Errorf("an unknown browser of the /48 gets %q", got)
		}
		hash := r.Device.Hash()
		f.NoError(login(hash[:]))
	})
}

// TestSiteGetsBack: logins that succeed, and those that can't be judged, don't count for the client
// nor for its /48. While they are in flight, they do.
func TestSiteGetsBack(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		_, ann := f.Tenant()
		good := f.Account(ann).PasswordHash
		login := func(n int) error {
			_, err := f.Node(0).Login.WithPassword(f.Context(), inSite(1, n), ann.User.Email, apptest.FirstPassword, "")
			return err
		}
		for n := range 8 { // more would end the oldest sessions, which takes long
			f.NoError(login(n))
		}
		setHash(f, ann, "$unknown$")
		for n := range 20 {
			if got := apptest.Code(login(n)); got != doorward.CodeUnavailable {
				t.Fatalf("a login with a hash that can't be parsed: %q", got)
			}
		}
		setHash(f, ann, good)
		if n := f.CountFailures("ip:"); n != 0 || inFlight(f) != 0 {
			t.Errorf("%d failures are left, and %d attempts in flight", n, inFlight(f))
		}
		_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
			for n := range 300 {
				a := store.Attempt{ID: fmt.Sprint(n), OwnBucket: fmt.Sprint("account:", n), WiderBucket: "ip:" + doorward.Network(inSite(1, n).IP), SiteBucket: "ip:2001:db8:1::/48"}
				if err := tx.InsertAttempt(f.Context(), a, tx.Now.Add(time.Minute)); err != nil {
					return err
				}
			}
			return nil
		})
		f.NoError(err)
		wantWaitOfASecond(f, login(400))
	})
}

// TestStatementsOfALogin: a second counter for the /48 costs a login with IPv6 two statements. It costs
// one with IPv4 none.
func TestStatementsOfALogin(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		_, ann := f.Tenant()
		login := func(by doorward.Caller, email string) []string {
			return f.StatementsOf(func() { _, _ = f.Node(0).Login.WithPassword(f.Context(), by, email, apptest.FirstPassword, "") })
		}
		for _, c := range []struct {
			email string
			ipv4  int
		}{{ann.User.Email, 24}, {"nobody@example.com", 9}} {
			_, _ = login(apptest.Anonymous(1), c.email), login(inSite(1, 1), c.email) // the first refusal of a minute is recorded
			ipv4, ipv6 := login(apptest.Anonymous(1), c.email), login(inSite(1, 1), c.email)
			if len(ipv4) != c.ipv4 || len(ipv6) > c.ipv4+2 {
				t.Errorf("a login as %s has %d statements with IPv4, want %d, and %d with IPv6, want 2 more at most:\n%s\n\n%s",
					c.email, len(ipv4), c.ipv4, len(ipv6), strings.Join(ipv4, "\n"), strings.Join(ipv6, "\n"))
			}
		}
	})
}
