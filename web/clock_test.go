package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store/dbtest"
)

// These tests move a server's wall clock, as a time server's correction or a machine that wakes
// does. Expiry follows the clock, revocation doesn't, and no request gets a server fault.

// TestClockJumpsForward: after a jump, sessions expire as if that time had passed.
func TestClockJumpsForward(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		code := d.invite(t, acme.Owner, "new@acme.example", "USER")
		d.Advance(50 * time.Minute)
		d.checkAccess(t, ann.Token(), http.StatusOK)
		d.Advance(50 * time.Minute) // bob has been away for longer than an hour
		d.checkAccess(t, ann.Token(), http.StatusOK)
		d.checkAccess(t, bob.Token(), http.StatusUnauthorized)
		d.Advance(26 * time.Hour)
		d.checkAccess(t, ann.Token(), http.StatusUnauthorized)
		// The clock is corrected. Unlike d.Advance, this doesn't first wait for mail in transit.
		d.clock.advance(-27 * time.Hour)
		bob.Login()
		d.checkAccess(t, bob.Token(), http.StatusOK)
		d.complete(t, code, password).ok(http.StatusOK)
	})
}

// TestClockJumpsBackward: nobody is signed out, revocation works at once, and running
// time limits last longer by the length of the jump.
func TestClockJumpsBackward(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		code := d.invite(t, acme.Owner, "new@acme.example", "USER")
		for _, jump := range []time.Duration{-time.Minute, -90 * time.Minute, -26 * time.Hour} {
			d.clock.advance(jump)
			d.checkAccess(t, ann.Token(), http.StatusOK)
			d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK)
			ended := bob.Login()
			d.checkAccess(t, ended, http.StatusOK)
			d.send(t, "POST /api/v2/auth/logout", nil, as(ended)).ok(http.StatusNoContent)
			d.checkAccess(t, ended, http.StatusUnauthorized)
		}
		d.complete(t, code, password).ok(http.StatusOK)
		d.requireMail(t, acme.Owner, "later@acme.example")
		if _, faults, err := d.Node.App.Audit.Verify(t.Context(), acme.ID); err != nil || len(faults) > 0 {
			t.Errorf("the trail: %v %v", faults, err)
		}
		d.clock.advance(27*time.Hour + 31*time.Minute + 25*time.Hour) // corrected, and 25 hours later
		d.checkAccess(t, ann.Token(), http.StatusUnauthorized)
	})
}

// checkAccess requires that an access check with the session has the status.
func (s *server) checkAccess(t *testing.T, token string, want int) {
	t.Helper()
	s.send(t, "GET /api/v2/access/check?action=message.read", nil, as(token)).ok(want)
}

// requireMail sends an invitation and requires that its mail arrives.
func (s *server) requireMail(t *testing.T, by *doorwardtest.Person, to string) {
	t.Helper()
	s.sendInvitation(t, by, to, "USER", 3)
	s.code(t, to)
}

// TestClocksThatDiffer: revocation uses no wall clock. Two nodes whose clocks are
// forty minutes apart agree on who is signed in.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	shared := doorwardtest.Database(dbtest.Postgres(t))
	behind, ahead := start(t, shared), start(t, shared)
	ahead.clock.advance(40 * time.Minute)
	ann := behind.Tenant("Acme").Join("ann@acme.example", "USER")
	for _, nodes := range [][2]*server{{behind, ahead}, {ahead, behind}} {
		here, there := nodes[0], nodes[1]
		for range 3 {
			token := here.token(t, ann.Email)
			here.checkAccess(t, token, http.StatusOK)
			there.checkAccess(t, token, http.StatusOK)
			here.send(t, "POST /api/v2/auth/logout", nil, as(token)).ok(http.StatusNoContent)
			there.checkAccess(t, token, http.StatusUnauthorized)
		}
	}
}
