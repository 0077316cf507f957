package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
)

// deviceOf returns the device cookie that a login set, or "".
func deviceOf(a answer) string {
	pair, _, _ := strings.Cut(cookieNamed(a, "doorward_device"), ";")
	return pair
}

// countEvaluated sends guesses with each cookie from one address, and returns how many of the
// passwords were checked.
func (s *server) countEvaluated(t *testing.T, email string, cookies []string, each int) (n int) {
	t.Helper()
	for _, c := range cookies {
		for range each {
			if s.login(t, email, "wrong password", cookie(c), from("198.51.100.9")).status == http.StatusUnauthorized {
				n++
			}
		}
	}
	return n
}

// stealDevices signs in as often as count says, as a thief of the password, and returns the
// device cookies.
func (s *server) stealDevices(t *testing.T, email string, count int) (cookies []string) {
	t.Helper()
	for n := range count {
		a := s.login(t, email, password, from(fmt.Sprintf("203.0.113.%d", n))).ok(http.StatusOK)
		if c := deviceOf(a); c != "" {
			cookies = append(cookies, c)
		}
	}
	return cookies
}

// After a reset, device cookies from a stolen password are invalid: they give no
// allowance for guesses, and a login with one sends a notice.
func TestTrustEndsWithAReset(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		home := deviceOf(d.login(t, ann.Email, password, from("192.0.2.1")))
		stolen := d.stealDevices(t, ann.Email, 20)
		const next = "three old paper boats"
		reset := d.forgot(t, ann.Email)
		// The browser that resets may belong to anybody.
		d.send(t, resetPath, m{"token": reset, "password": next, "confirmPassword": next}, cookie(home)).ok(http.StatusNoContent)
		if n := d.countEvaluated(t, ann.Email, stolen, 10); n > 5 {
			t.Errorf("%d guesses were evaluated, want 5 as for an unknown browser", n)
		}
		d.Advance(time.Hour)

		newMails := d.newMails(t, ann.Email)
		for _, c := range []string{home, stolen[len(stolen)-1]} {
			a := d.login(t, ann.Email, next, cookie(c), from("203.0.113.19"), agent(c)).ok(http.StatusOK)
			if again := deviceOf(a); again == "" || again == c {
				t.Errorf("an old cookie is answered with %q", again)
			}
			wantOneMail(t, newMails(), signInNotice)
		}
	}, defaultLimits...)
}

// After a new password a login sends a notice, even if the account has already got one about this
// browser, and all ten that are allowed, on that day.
func TestNoticeAfterANewPassword(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.login(t, ann.Email, password, from("192.0.2.1")).ok(http.StatusOK)
		for n := range 11 { // exhausts the day's limit on notices
			d.login(t, ann.Email, password, from("203.0.113.9"), agent(fmt.Sprint(n))).ok(http.StatusOK)
		}
		const next = "three old paper boats"
		d.reset(t, d.forgot(t, ann.Email), next).ok(http.StatusNoContent)
		newMails := d.newMails(t, ann.Email)
		d.login(t, ann.Email, next, from("203.0.113.9"), agent("10")).ok(http.StatusOK)
		wantOneMail(t, newMails(), signInNotice)
	}, defaultLimits...)
}

// After a change of the password, or the end of all other sessions, only the browser in use stays
// known.
func TestTrustInOtherBrowsersEnds(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		const next = "three old paper boats"
		for name, end := range map[string]func(own ...opt) string{
			"change-password": func(own ...opt) string {
				d.send(t, changePath, m{"currentPassword": password, "password": next, "confirmPassword": next}, own...).ok(http.StatusNoContent)
				return next
			},
			"end the others": func(own ...opt) string {
				d.send(t, "DELETE /api/v2/sessions", nil, own...).ok(http.StatusNoContent)
				return password
			},
		} {
			ann := d.Tenant(name).Join(strings.ReplaceAll(name, " ", "-")+"@acme.example", "USER")
			login := d.login(t, ann.Email, password, from("192.0.2.1")).ok(http.StatusOK)
			home, stolen := deviceOf(login), d.stealDevices(t, ann.Email, 3)
			current := end(as(login.text("token")), cookie(home))
			if a := d.login(t, ann.Email, current, cookie(home), from("192.0.2.1")).ok(http.StatusOK); deviceOf(a) != "" {
				t.Errorf("%s: the browser in use isn't known", name)
			}
			for _, c := range stolen {
				if a := d.login(t, ann.Email, current, cookie(c), from("203.0.113.9")).ok(http.StatusOK); deviceOf(a) == "" {
					t.Errorf("%s: another browser is still known", name)
				}
			}

			// Of two known cookies one may have been planted: neither stays known.
			a := d.login(t, ann.Email, current, from("192.0.2.7")).ok(http.StatusOK)
			other := deviceOf(a)
			d.send(t, "DELETE /api/v2/sessions", nil, as(a.text("token")), cookie(other), cookie(home)).ok(http.StatusNoContent)
			for _, c := range []string{home, other} {
				if a := d.login(t, ann.Email, current, cookie(c), from("192.0.2.1")).ok(http.StatusOK); deviceOf(a) == "" {
					t.Errorf("%s: one of two known cookies is still known", name)
				}
			}
		}
	}, defaultLimits...)
}

// All known browsers of an account together have thirty attempts an hour.
func TestAllowanceOfAllDevices(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		stolen := d.stealDevices(t, ann.Email, 6)
		bobsCookie := deviceOf(d.login(t, bob.Email, password, from("192.0.2.1")))
		d.login(t, ann.Email, password, cookie(stolen[5]), from("192.0.2.1")).ok(http.StatusOK)
		if n := d.countEvaluated(t, ann.Email, stolen, 10); n != 30 {
			t.Errorf("%d guesses were evaluated, want 30", n)
		}
		a := d.login(t, ann.Email, password, cookie(stolen[5])).fails(http.StatusTooManyRequests, "too_many_attempts")
		if a.retryAfter() > time.Hour || a.retryAfter() < time.Hour-time.Minute || !strings.Contains(a.header.Get("RateLimit"), "r=0") {
			t.Errorf("a device whose account has nothing left has to wait %v, with %q", a.retryAfter(), a.header.Get("RateLimit"))
		}
		d.login(t, bob.Email, password, cookie(bobsCookie)).ok(http.StatusOK)
		d.login(t, ann.Email, password, from("192.0.2.9")).ok(http.StatusOK) // any other browser
		d.Advance(a.retryAfter())
		d.login(t, ann.Email, password, cookie(stolen[5])).ok(http.StatusOK)
	}, defaultLimits...)
}

// A browser used since its first login stays known, however often others sign in. If
// all twenty were used, a new one isn't remembered.
func TestUsedDevicesStay(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		home := deviceOf(d.login(t, ann.Email, password, from("192.0.2.1")))
		usedOnce := deviceOf(d.login(t, ann.Email, password, from("192.0.2.2")))
		d.login(t, ann.Email, password, cookie(home)).ok(http.StatusOK)
		stolen := d.stealDevices(t, ann.Email, 25)
		if a := d.login(t, ann.Email, password, cookie(home)).ok(http.StatusOK); deviceOf(a) != "" {
			t.Error("a used browser was removed")
		}
		renewed := deviceOf(d.login(t, ann.Email, password, cookie(usedOnce)).ok(http.StatusOK))
		if renewed == "" {
			t.Error("the oldest browser without further use is still known")
		}
		for _, c := range append(stolen[7:], renewed) { // with the first one, twenty
			if a := d.login(t, ann.Email, password, cookie(c)).ok(http.StatusOK); deviceOf(a) != "" {
				t.Error("one of the newest twenty isn't known")
			}
		}
		if a := d.login(t, ann.Email, password, from("192.0.2.3")).ok(http.StatusOK); deviceOf(a) != "" {
			t.Error("a browser is remembered beyond the limit")
		}
		d.Advance(400 * 24 * time.Hour)
		if a := d.login(t, ann.Email, password).ok(http.StatusOK); deviceOf(a) == "" {
			t.Error("no browser is remembered when the others are forgotten")
		}
	}, defaultLimits...)
}

// A person's device cookie works beside up to three others, in any order. These may have been set
// by a sibling host, or for another account on a shared computer.
func TestSeveralDeviceCookies(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		annsCookie, bobsCookie := deviceOf(d.login(t, ann.Email, password)), deviceOf(d.login(t, bob.Email, password))
		unknown := func(n int) string { return fmt.Sprintf("doorward_device=%042dA", n) }
		for _, email := range []string{ann.Email, bob.Email} {
			for range 5 {
				d.login(t, email, "wrong password", from("198.51.100.1")).fails(http.StatusUnauthorized, "invalid_credentials")
			}
		}
		for _, c := range []struct {
			cookies []string
			status  int
		}{
			{[]string{unknown(1), annsCookie}, http.StatusOK},
			{[]string{annsCookie, unknown(1)}, http.StatusOK},
			{[]string{bobsCookie, annsCookie}, http.StatusOK},
			{[]string{annsCookie, bobsCookie}, http.StatusOK},
			{[]string{unknown(1), unknown(2), unknown(3), annsCookie}, http.StatusOK},
			{[]string{unknown(1), unknown(2), unknown(3), unknown(4), annsCookie}, http.StatusTooManyRequests},
			{[]string{unknown(1), unknown(1), unknown(1), unknown(1), unknown(1), annsCookie}, http.StatusOK},
			{[]string{"doorward_device=", "doorward_device=x", "doorward_device=y", "doorward_device=z", "doorward_device=\"\"", annsCookie}, http.StatusOK},
			{[]string{bobsCookie, unknown(1)}, http.StatusTooManyRequests},
		} {
			a := d.login(t, ann.Email, password, cookie(strings.Join(c.cookies, "; ")), from("198.51.100.1"))
			if a.status != c.status || deviceOf(a) != "" {
				t.Errorf("with %v the login is %d, with %q: want %d", c.cookies, a.status, deviceOf(a), c.status)
			}
		}
		d.login(t, bob.Email, password, cookie(bobsCookie), cookie(annsCookie), from("198.51.100.1")).ok(http.StatusOK)

		// With two known cookies the attempt counts for one with attempts left.
		second := deviceOf(d.login(t, bob.Email, password, cookie(annsCookie), from("192.0.2.5"), from("192.0.2.6")))
		if second != "" {
			t.Fatal("bob's account is closed to unknown browsers, but accepted one")
		}
		d.Advance(time.Second)
		second = deviceOf(d.login(t, bob.Email, password, from("192.0.2.5")))
		for range 10 {
			d.login(t, bob.Email, "wrong password", cookie(bobsCookie)).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, bob.Email, password, cookie(bobsCookie)).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.login(t, bob.Email, password, cookie(bobsCookie), cookie(second)).ok(http.StatusOK)
		d.login(t, bob.Email, password, cookie(second), cookie(bobsCookie)).ok(http.StatusOK)
	}, defaultLimits...)
}

// A correct password without access counts as a failure: otherwise the counter would
// reveal that it is correct.
func TestCorrectPasswordWithoutAccess(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		gone, suspended := acme.Join("gone@acme.example", "USER"), acme.Join("suspended@acme.example", "USER")
		d.send(t, "DELETE /api/v2/users/"+gone.ID, nil, as(acme.Owner.Token())).ok(http.StatusOK)
		d.reset(t, d.forgot(t, gone.Email), password).ok(http.StatusNoContent) // a password without a membership
		d.suspend(t, acme.ID, suspended.ID)
		for n, c := range []struct {
			name string
			try  func(...opt) answer
			want string
		}{
			{"no membership at all", func(o ...opt) answer { return d.login(t, gone.Email, password, o...) }, "invalid_credentials"},
			{"suspended", func(o ...opt) answer { return d.login(t, suspended.Email, password, o...) }, "membership_suspended"},
			{"no membership in the tenant", func(o ...opt) answer {
				return d.send(t, loginPath, m{"email": acme.Owner.Email, "password": password, "tenantId": globex.ID}, o...)
			}, "invalid_credentials"},
		} {
			home := from(fmt.Sprintf("192.0.2.%d", n))
			var got []string
			for range 7 {
				got = append(got, c.try(home).text("code"))
			}
			want := []string{c.want, c.want, c.want, c.want, c.want, "too_many_attempts", "too_many_attempts"}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: a right password is answered\n%v, want\n%v", c.name, got, want)
			}
		}
	}, defaultLimits...)
}

// A correct password clears the counter not only in a login, but also when it is changed or an
// invitation is accepted with it.
func TestEveryCorrectPasswordClearsTheCounter(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "USER")
		own := as(ann.Token())
		passwords := []string{password, "three old paper boats"}
		for n := range 12 {
			current, next := passwords[n%2], passwords[(n+1)%2]
			d.send(t, changePath, m{"currentPassword": current, "password": next, "confirmPassword": next}, own).ok(http.StatusNoContent)
		}
		for range 4 {
			d.login(t, ann.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.accept(t, d.invite(t, globex.Owner, ann.Email, "USER"), m{"password": password}).ok(http.StatusOK)
		for range 4 {
			d.login(t, ann.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.login(t, ann.Email, password).ok(http.StatusOK)
	}, doorwardtest.LoginLimits(5, 30))
}
