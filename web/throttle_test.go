package web_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
)

// defaultLimits are the options of a server with the default limits on attempts, to which a test
// can send as several clients.
var defaultLimits = []doorwardtest.Option{doorwardtest.LoginLimits(5, 30), doorwardtest.TrustLoopback()}

// retryAfter returns the duration of Retry-After, or 0.
func (a answer) retryAfter() time.Duration {
	n, _ := strconv.Atoi(a.header.Get("Retry-After"))
	return time.Duration(n) * time.Second
}

// Five attempts have no delay; then each delay is twice the one before, up to 15 minutes.
// An unknown address has the same delays.
func TestDelays(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		var want []time.Duration
		for delay := time.Second; delay < 15*time.Minute; delay *= 2 {
			want = append(want, delay)
		}
		want = append(want, 15*time.Minute, 15*time.Minute)
		for i, email := range []string{owner.Email, "nobody@acme.example"} {
			guess := func(password string) answer {
				t.Helper()
				return d.login(t, email, password, from("192.0.2."+strconv.Itoa(i)))
			}
			for range 5 {
				guess("wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
			}
			var got []time.Duration
			for range want {
				// Attempts during the delay are refused, even correct ones, and don't extend it.
				got = append(got, guess("wrong password").fails(http.StatusTooManyRequests, "too_many_attempts").retryAfter())
				guess(password).fails(http.StatusTooManyRequests, "too_many_attempts")
				d.Advance(got[len(got)-1] - time.Millisecond)
				guess(password).fails(http.StatusTooManyRequests, "too_many_attempts")
				d.Advance(time.Millisecond)
				guess("wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the delays for %s:\n%s", email, diff)
			}
		}
	}, defaultLimits...)
}

// After a hundred consecutive failures the account refuses unknown browsers, even
// with the correct password, until a reset; the known browser still works. An unknown
// address gets the same answers.
func TestClosedUntilReset(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		device, _, _ := strings.Cut(cookieNamed(d.login(t, owner.Email, password, from("192.0.2.200")), "doorward_device"), ";")
		for i, email := range []string{owner.Email, "nobody@acme.example"} {
			for n := range 100 {
				d.login(t, email, "wrong password", from(fmt.Sprintf("198.51.%d.%d", i, n))).fails(http.StatusUnauthorized, "invalid_credentials")
				d.Advance(15 * time.Minute)
			}
			for range 2 {
				a := d.login(t, email, password, from("203.0.113.1")).fails(http.StatusTooManyRequests, "too_many_attempts")
				if a.retryAfter() != 15*time.Minute {
					t.Errorf("a closed account has the delay %v", a.retryAfter())
				}
				d.Advance(60 * 24 * time.Hour)
			}
		}
		if err := d.Node.App.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.login(t, owner.Email, password, from("203.0.113.1")).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.login(t, owner.Email, password, cookie(device), from("203.0.113.1")).ok(http.StatusOK)

		d.send(t, forgotPath, m{"email": owner.Email}).ok(http.StatusAccepted)
		const next = "three old paper boats"
		d.send(t, resetPath, m{"token": d.Code(owner.Email), "password": next, "confirmPassword": next}).ok(http.StatusNoContent)
		d.login(t, owner.Email, next, from("203.0.113.1")).ok(http.StatusOK)
	}, defaultLimits...)
}

// Only the answer to a request with the cookie of a known browser has that browser's remaining
// attempts.
func TestAllowanceIsShownToItsBrowserOnly(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		first := d.login(t, owner.Email, password)
		device, _, _ := strings.Cut(cookieNamed(first, "doorward_device"), ";")
		rateLimit := func(a answer) string { return a.header.Get("RateLimit-Policy") + " " + a.header.Get("RateLimit") }
		const policy = `"device";q=10;w=3600 `
		wants := []struct{ got, want string }{
			{rateLimit(first), " "},
			{rateLimit(d.login(t, owner.Email, "wrong password")), " "},
			{rateLimit(d.login(t, "nobody@acme.example", "wrong password", cookie(device))), " "},
			{rateLimit(d.login(t, owner.Email, "wrong password", cookie(device))), policy + `"device";r=9;t=3600`},
			{rateLimit(d.login(t, owner.Email, password, cookie(device))), policy + `"device";r=10;t=3600`},
		}
		for i, w := range wants {
			if w.got != w.want {
				t.Errorf("answer %d says %q, want %q", i, w.got, w.want)
			}
		}
		for range 10 {
			d.login(t, owner.Email, "wrong password", cookie(device))
		}
		if got := rateLimit(d.login(t, owner.Email, password, cookie(device)).fails(http.StatusTooManyRequests, "too_many_attempts")); !strings.HasPrefix(got, policy+`"device";r=0;t=3`) {
			t.Errorf("a device with nothing left gets %q", got)
		}
	}, defaultLimits...)
}

func TestSuccessClearsTheDelay(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for range 3 {
			for range 4 {
				d.login(t, owner.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
			}
			d.login(t, strings.ToUpper(owner.Email), password).ok(http.StatusOK)
		}
		for range 5 {
			d.login(t, owner.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.Advance(time.Second)
		d.login(t, owner.Email, password).ok(http.StatusOK)
		for range 5 {
			d.login(t, owner.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, owner.Email, "wrong password").fails(http.StatusTooManyRequests, "too_many_attempts")
	}, defaultLimits...)
}

// All operations that check a password, and all spellings of an address, share one
// counter.
func TestOneCounterForAllPasswordChecks(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "USER")
		code := d.invite(t, globex.Owner, ann.Email, "USER")
		change := func() answer {
			return d.send(t, changePath, m{"currentPassword": "wrong password", "password": "three old boats", "confirmPassword": "three old boats"}, as(ann.Token()), from("192.0.2.1"))
		}
		accept := func() answer {
			return d.accept(t, code, m{"password": "wrong password"}, from("192.0.2.2"))
		}
		login := func(email string) answer { return d.login(t, email, "wrong password", from("192.0.2.3")) }
		change().invalid("/currentPassword", "wrong")
		change().invalid("/currentPassword", "wrong")
		accept().fails(http.StatusUnauthorized, "invalid_credentials")
		login("ann@acme.example").fails(http.StatusUnauthorized, "invalid_credentials")
		login("ANN@Acme.Example").fails(http.StatusUnauthorized, "invalid_credentials")
		for _, a := range []answer{change(), accept(), login(ann.Email), login("ANN@acme.example")} {
			a.fails(http.StatusTooManyRequests, "too_many_attempts")
		}
		login("ann+tag@acme.example").fails(http.StatusUnauthorized, "invalid_credentials") // another address
		d.accept(t, code, m{}, as(ann.Token())).ok(http.StatusOK)                           // by the session, without a password
	}, defaultLimits...)
}

// Strangers can't lock out a person who has signed in with this browser before: the
// browser has its own allowance.
func TestKnownDevices(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		device, _, _ := strings.Cut(cookieNamed(d.login(t, owner.Email, password), "doorward_device"), ";")
		home := []opt{cookie(device), from("192.0.2.1")}
		for range 5 {
			d.login(t, owner.Email, "wrong password", from("198.51.100.1")).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, owner.Email, password, from("198.51.100.1")).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.login(t, owner.Email, password, home...).ok(http.StatusOK)
		d.login(t, owner.Email, password, from("198.51.100.1")).fails(http.StatusTooManyRequests, "too_many_attempts") // not cleared
		d.login(t, owner.Email, password, cookie("doorward_device="+forged), from("198.51.100.1")).fails(http.StatusTooManyRequests, "too_many_attempts")

		d.Advance(time.Second)
		for range 9 {
			d.login(t, owner.Email, "wrong password", home...).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, owner.Email, password, home...).ok(http.StatusOK) // resets its own allowance
		for range 10 {
			d.login(t, owner.Email, "wrong password", home...).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		a := d.login(t, owner.Email, password, home...).fails(http.StatusTooManyRequests, "too_many_attempts")
		if a.retryAfter() > time.Hour || a.retryAfter() < time.Hour-time.Second {
			t.Errorf("the device has to wait %v, want an hour", a.retryAfter())
		}
		d.login(t, owner.Email, password, from("203.0.113.1")).ok(http.StatusOK) // any other browser
		d.Advance(a.retryAfter())
		d.login(t, owner.Email, password, home...).ok(http.StatusOK)
	}, defaultLimits...)
}

// A client may fail thirty times in ten minutes, over all accounts.
func TestClientLimit(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		// A client is an IPv4 address or an IPv6 /64. Each value returns the n-th address of one
		// client; its key is the address of another.
		clients := map[string]func(n int) string{
			"198.51.100.7": func(int) string { return "192.0.2.7" },
			"2001:db8::1":  func(n int) string { return fmt.Sprintf("2001:db8:7:7:%x::%x", n, n+1) },
		}
		for elsewhere, address := range clients {
			for n := range 30 {
				d.login(t, owner.Email, password, from(address(n))).ok(http.StatusOK) // no failure
				d.login(t, fmt.Sprintf("nobody%d@acme.example", n), password, from(address(n))).fails(http.StatusUnauthorized, "invalid_credentials")
			}
			a := d.login(t, owner.Email, password, from(address(99))).fails(http.StatusTooManyRequests, "too_many_attempts")
			if a.retryAfter() > 10*time.Minute || a.retryAfter() < 9*time.Minute {
				t.Errorf("a client has to wait %v, want ten minutes", a.retryAfter())
			}
			d.login(t, "nobody", password, from(address(98))).fails(http.StatusTooManyRequests, "too_many_attempts")
			d.login(t, owner.Email, password, from(elsewhere)).ok(http.StatusOK)
			d.Advance(a.retryAfter() - time.Second)
			d.login(t, owner.Email, password, from(address(97))).fails(http.StatusTooManyRequests, "too_many_attempts")
			d.Advance(time.Second)
			d.login(t, owner.Email, password, from(address(97))).ok(http.StatusOK)
		}
	}, defaultLimits...)
}

// Another person behind the same client address can't lock out a known browser
// either, and that browser's failures don't count for the address. A browser is known only
// to its own account.
func TestKnownDeviceAtAClosedClient(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner, ann := acme.Owner, acme.Join("ann@acme.example", "USER")
		office := from("192.0.2.7")
		device, _, _ := strings.Cut(cookieNamed(d.login(t, owner.Email, password, office), "doorward_device"), ";")
		another, _, _ := strings.Cut(cookieNamed(d.login(t, owner.Email, password, office), "doorward_device"), ";")
		for range 10 {
			d.login(t, owner.Email, "wrong password", office, cookie(another)).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		for n := range 30 {
			d.login(t, fmt.Sprintf("nobody%d@acme.example", n), password, office).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, owner.Email, password, office).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.login(t, owner.Email, password, office, cookie(device)).ok(http.StatusOK)
		for range 10 {
			d.login(t, owner.Email, "wrong password", office, cookie(device)).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, owner.Email, password, office, cookie(device)).fails(http.StatusTooManyRequests, "too_many_attempts")
		for _, other := range []string{ann.Email, "nobody@acme.example", "nobody"} {
			d.login(t, other, password, office, cookie(device)).fails(http.StatusTooManyRequests, "too_many_attempts")
		}
		d.login(t, owner.Email, password, office, cookie("doorward_device="+forged)).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, defaultLimits...)
}

// Without limits per account a known browser has no allowance and counts like any
// client.
func TestKnownDeviceWithoutAnAllowance(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		device, _, _ := strings.Cut(cookieNamed(d.login(t, owner.Email, password), "doorward_device"), ";")
		for range 3 {
			d.login(t, owner.Email, "wrong password", cookie(device)).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, owner.Email, password, cookie(device)).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, doorwardtest.LoginLimits(0, 3))
}

// Invalid addresses share one counter per client.
func TestInvalidAddressesShareACounter(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for n := range 5 {
			d.login(t, strings.Repeat("x", n+1), password, from("192.0.2.1")).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, "something else", password, from("192.0.2.1")).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.login(t, "something else", password, from("192.0.2.2")).fails(http.StatusUnauthorized, "invalid_credentials")
		d.login(t, owner.Email, password, from("192.0.2.1")).ok(http.StatusOK)
		d.login(t, "nobody@acme.example", password, from("192.0.2.1")).fails(http.StatusUnauthorized, "invalid_credentials")
	}, defaultLimits...)
}

func TestLimitsCanBeOff(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		device, _, _ := strings.Cut(cookieNamed(d.login(t, owner.Email, password), "doorward_device"), ";")
		for range 40 {
			d.login(t, owner.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
			d.login(t, owner.Email, "wrong password", cookie(device)).fails(http.StatusUnauthorized, "invalid_credentials")
		}
	})
}

// The client is the rightmost entry of X-Forwarded-For that isn't a trusted proxy, or the peer if
// that entry is missing or no address.
func TestClientAddress(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for forwarded, want := range map[string]string{
			"203.0.113.5":                     "203.0.113.5",
			"1.1.1.1, 203.0.113.5":            "203.0.113.5",
			"1.1.1.1,203.0.113.5 , 127.0.0.1": "203.0.113.5",
			"127.0.0.1":                       "127.0.0.1",
			"203.0.113.5:4711":                "203.0.113.5",
			"[2001:db8::5]:4711":              "2001:db8::5",
			"2001:DB8:0:0::5":                 "2001:db8::5",
			"::ffff:203.0.113.5":              "203.0.113.5",
			"203.0.113.5, ::1":                "203.0.113.5",
			"203.0.113.5, unknown":            "127.0.0.1",
			"203.0.113.5,":                    "127.0.0.1",
			"":                                "127.0.0.1",
			"'; DROP TABLE sessions; --":      "127.0.0.1",
			strings.Repeat("1.1.1.1, ", 500) + "9.9.9.9": "9.9.9.9",
		} {
			token := d.token(t, owner.Email, from(forwarded))
			d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(http.StatusOK).is("session.ip", want)
		}
		token := d.token(t, owner.Email, from("1.1.1.1"), from("203.0.113.5"))
		d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(http.StatusOK).is("session.ip", "203.0.113.5")
	}, doorwardtest.TrustLoopback())
}
