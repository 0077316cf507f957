package web_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
)

// A caller without permissions can't fill the trail: a flood of refused requests,
// with any method, is recorded in a few events with a count.
func TestFloodOfRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob := acme.Join("bob@acme.example", "VIEWER")
		const rounds = 100
		for n := range rounds {
			id := fmt.Sprintf("usr_%026d", n)
			d.send(t, trailPath, nil, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
			d.send(t, "POST /api/v2/auth/invite", m{"email": id + "@acme.example", "role": "OWNER"}, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
			d.send(t, "DELETE /api/v2/users/"+id, nil, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
		}
		d.Advance(time.Minute)
		events := d.trail(t, acme.Owner, "?outcome=refused&limit=200&actor="+bob.ID)
		if len(events) > 12 || countRefusals(events) != 3*rounds {
			t.Errorf("%d refusals are recorded in %d events, want %d in a few", countRefusals(events), len(events), 3*rounds)
		}
		// A reader of the trail sees a refusal at once.
		d.send(t, "POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "USER"}, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
		if got := countRefusals(d.trail(t, acme.Owner, "?outcome=refused&limit=200&actor="+bob.ID)); got != 3*rounds+1 {
			t.Errorf("%d refusals are recorded, want the last one too", got)
		}
	})
}

// A client network gets 429 after thirty requests for resets in an hour, whatever the addresses.
func TestResetsRequestedByOneClient(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		for n := range 30 {
			ip := fmt.Sprintf("2001:db8:7:7::%x", n)
			d.send(t, forgotPath, m{"email": fmt.Sprintf("n%d@acme.example", n)}, from(ip)).ok(http.StatusAccepted)
		}
		for _, email := range []string{acme.Owner.Email, "nobody@acme.example"} {
			a := d.send(t, forgotPath, m{"email": email}, from("2001:db8:7:7:ffff::1")).fails(http.StatusTooManyRequests, "too_many_attempts")
			if got := a.header.Get("Retry-After"); len(got) != 4 { // at least 1000 s
				t.Errorf("Retry-After is %s", got)
			}
		}
		d.send(t, forgotPath, m{"email": acme.Owner.Email}, from("2001:db8:7:8::1")).ok(http.StatusAccepted)
		d.Code(acme.Owner.Email)
	}, doorwardtest.LoginLimits(5, 30), doorwardtest.TrustLoopback())
}
