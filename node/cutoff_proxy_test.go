//go:build linux

package node_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/faultproxy"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store/lease"
)

// leaseLength is the lease of the nodes: the longest, to distinguish a node that only polls
// from one that receives notifications.
const leaseLength = lease.MaxLease

func TestNodeCutOffFromTheDatabase(t *testing.T) {
	t.Parallel()
	for name, disconnect := range map[string]func(*faultproxy.Proxy){
		"held":    (*faultproxy.Proxy).Hold,
		"dropped": (*faultproxy.Proxy).Drop,
		"reset":   (*faultproxy.Proxy).Break,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			f := startFleet(t, builtProgram(t), dsn, 1, "--revocation-lease", leaseLength.String())
			c := &cutOff{load: newLoad(t, f.nodes, dsn, 2), proxy: f.proxies[0]}
			waittest.Until(t, "two people to be signed in, also on a busy machine", func() bool {
				if c.keptSession == nil {
					c.keptSession = c.login(0, c.history.people[0])
				}
				c.revoked = c.login(0, c.history.people[1])
				return c.keptSession != nil && c.revoked != nil
			})
			disconnect(c.proxy)
			c.checkWhileCutOff(t)
			c.proxy.Heal()
			c.awaitRecovery(t)
			c.awaitNotifications(t)
			requireGood(t, c.history.verify())
			disconnect(c.proxy)
			f.nodes[0].stop() // must work without the database, too
		})
	}
}

// cutOff is a node with two sessions in its memory. One of them is revoked while the
// node is cut off.
type cutOff struct {
	*load
	proxy                *faultproxy.Proxy
	keptSession, revoked *session
}

// checkWhileCutOff: the node answers from memory while the lease lasts, and then only
// 503. The lease runs from the last poll, which was sent before the cut, so this holds
// however slow the machine is.
func (c *cutOff) checkWhileCutOff(t *testing.T) {
	t.Helper()
	leaseEnd := c.now() + leaseLength
	c.operate(c.operateInProcess, c.revoked.person, "suspend")
	for c.now() < leaseEnd+leaseLength {
		for _, s := range []*session{c.keptSession, c.revoked} {
			r := c.check(0, s)
			if r.from > leaseEnd && (r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "") {
				t.Fatalf("%v after the end of the lease: %d (Retry-After %q), want 503 with Retry-After", r.from-leaseEnd, r.status, r.header.Get("Retry-After"))
			}
		}
		wait(t.Context(), 5*time.Millisecond)
	}
}

// awaitRecovery: the node recovers without help, and knows the revocation.
func (c *cutOff) awaitRecovery(t *testing.T) {
	t.Helper()
	healed := c.now()
	waittest.Until(t, "the node to recover", func() bool {
		return c.check(0, c.keptSession).status == http.StatusOK && c.check(0, c.revoked).status == http.StatusUnauthorized
	})
	t.Logf("recovered after %v", c.now()-healed)
}

// awaitNotifications: a node that receives notifications applies a change in
// milliseconds; one that polls takes an eighth of its lease on average. The median of 20
// revocations in succession must be below half of that. A slow machine has many attempts.
func (c *cutOff) awaitNotifications(t *testing.T) {
	t.Helper()
	const polled = leaseLength / 4 / 2 // a node polls four times in a lease; on average half of that time is left
	var took []time.Duration
	for began := c.now(); c.now()-began < waittest.Limit; {
		took = append(took, c.revoke(t))
		if n := len(took); n >= 20 && median(took[n-20:]) < polled/2 {
			t.Logf("20 revocations at %v in the median, after %d", median(took[n-20:]), n-20)
			return
		}
	}
	t.Errorf("revocations take %v in the median: the node receives no notifications", median(took))
}

// revoke suspends a person and returns how long the node took to apply that. The person is
// resumed first, because suspending twice changes nothing and takes no time.
func (c *cutOff) revoke(t *testing.T) (took time.Duration) {
	t.Helper()
	by := doorward.OperatorAtTerminal()
	found, err := c.operator.App.Users.Find(context.Background(), c.revoked.person.email, "")
	if err == nil {
		err = c.operator.App.Users.Resume(context.Background(), by, found[0])
	}
	if err == nil {
		var ended doorward.Ended
		ended, err = c.operator.App.Users.Suspend(context.Background(), by, found[0])
		took = ended.Revocation.Took
	}
	if err != nil || took == 0 {
		t.Fatalf("suspended in %v: %v", took, err)
	}
	return took
}

func median(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}
