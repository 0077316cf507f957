package password_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// Many reset requests, from many networks for many addresses, add a few events and one mail for
// the only account. Their counters are gone after an hour.
func TestManyResetRequests(t *testing.T) {
	apptest.OnEachClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		f.RecordPending()
		events, mails, throttles := f.CountRows("events"), f.CountRows("mails"), f.CountRows("throttles")
		// Twelve at once: more would first open more connections than two busy cores can in 2 s.
		const networks, each, atOnce = 60, 25, 12
		f.WantCodes(apptest.Concurrently(atOnce, func(i int) error {
			for n := i; n < networks*each; n += atOnce {
				network, by := n%networks, anonymousAt(fmt.Sprintf("198.51.100.%d", n%networks))
				if err := f.Node(i).Passwords.Forgot(f.Context(), by, fmt.Sprintf("a%d.%d@nowhere.example", network, n), ""); err != nil {
					return err
				}
			}
			return nil
		}), apptest.Codes{"": atOnce})
		f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(1), owner.User.Email, ""))
		if got := f.CountRows("events") - events; got != 0 {
			f.Errorf("the requests themselves made %d events", got)
		}
		f.RecordDue()
		clock.Move(time.Minute)
		f.RecordDue()
		// One for the owner; in each minute, of which there are up to three, ten for networks and
		// one for the rest.
		if got := f.CountRows("events") - events; got < 2 || got > 1+3*11 {
			f.Errorf("%d events of %d requests", got, networks*each)
		}
		if got := f.Int(`SELECT CAST(sum(times) AS BIGINT) FROM events WHERE action = 'password.forgot'`); got != networks*each+1 {
			f.Errorf("the events count %d requests, want %d", got, networks*each+1)
		}
		if got := f.CountRows("mails") - mails; got != 1 {
			f.Errorf("%d mails, want only the owner's", got)
		}
		if got := f.CountRows("inbox"); got != 0 {
			f.Errorf("%d rows are left in the inbox", got)
		}
		clock.Move(time.Hour)
		f.NoError(f.Node(0).Sweep(f.Context()))
		if got := f.CountRows("throttles"); got > throttles {
			f.Errorf("an hour later there are %d counters, want at most %d, as before", got, throttles)
		}
	})
}

// The limits are thirty requests an hour for a network and three for an address. A
// request beyond them writes nothing.
func TestLimitsOnResetRequests(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		forgot := func(ip, email string) doorward.Code {
			return apptest.Code(f.Node(0).Passwords.Forgot(f.Context(), anonymousAt(ip), email, ""))
		}
		for n := range 3 {
			for _, email := range []string{owner.User.Email, "nobody@example.com"} {
				if got := forgot(fmt.Sprintf("192.0.2.%d", n), email); got != "" {
					f.Errorf("%s for the mail %d to %s", got, n, email)
				}
			}
		}
		written := f.CountRows("inbox") + f.CountRows("throttles")
		for _, email := range []string{owner.User.Email, "nobody@example.com"} {
			if got := forgot("192.0.2.9", email); got != doorward.CodeTooManyAttempts {
				f.Errorf("%q for the fourth mail to %s", got, email)
			}
		}
		if got := f.CountRows("inbox") + f.CountRows("throttles"); got != written {
			f.Errorf("refusals wrote %d rows", got-written)
		}
		for _, ip := range []string{"203.0.113.1", "2001:db8:1:2:%x::1"} {
			for n := range 31 {
				from := ip
				if strings.Contains(ip, "%") {
					from = fmt.Sprintf(ip, n)
				}
				want := doorward.Code("")
				if n == 30 {
					want = doorward.CodeTooManyAttempts
				}
				if got := forgot(from, fmt.Sprintf("n%d@example.com", n)); got != want {
					f.Errorf("%q for request %d from %s, want %q", got, n, from, want)
				}
				clock.Move(time.Second)
			}
		}
		clock.Move(time.Hour)
		if got := forgot("203.0.113.1", "n1@example.com"); got != "" {
			f.Errorf("%s an hour later", got)
		}
	})
}

// anonymousAt returns an anonymous caller at the address.
func anonymousAt(ip string) doorward.Caller {
	return doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: ip, RequestID: "req_test"}
}
