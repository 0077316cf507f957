package tenant_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// TestRaceShutLargeTenant: the sessions of a large tenant are checked on three nodes, which also record their uses,
// while it is frozen or closed. Once the call has returned no node accepts one of them, none is refused before the
// call, those of another tenant are never refused, and there is no deadlock. make test-all logs how long it took.
func TestRaceShutLargeTenant(t *testing.T) {
	for _, test := range []struct {
		name string
		shut func(*apptest.Fixture, doorward.Tenant, apptest.Person) (doorward.Ended, error)
	}{
		{"freeze", func(f *apptest.Fixture, acme doorward.Tenant, _ apptest.Person) (doorward.Ended, error) {
			return f.Node(0).Tenants.Freeze(f.Context(), apptest.Operator, acme.ID)
		}},
		{"close", func(f *apptest.Fixture, acme doorward.Tenant, owner apptest.Person) (doorward.Ended, error) {
			_, ended, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
			return ended, err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			apptest.OnEach(t, func(f *apptest.Fixture) {
				f.AddNode(apptest.NoLimits, time.Now)
				f.Until("the node to join", f.Node(2).Lease.Valid)
				acme, owner := f.Tenant()
				_, other := f.Tenant()
				n := 2000
				if f.DB.Engine() == "postgres" {
					n = fulltest.Of(n, 500_000)
				}
				c := checkers{f: f, other: other.Token, checked: largeTenant(f, acme, n)}
				stop := c.start()
				f.Until("checks on each node", func() bool { return c.accepted.Load() >= 1000 })
				began := time.Now()
				c.shutting.Store(true)
				ended, err := test.shut(f, acme, owner)
				c.shut.Store(true)
				f.NoError(err)
				f.Logf("to %s a tenant with %d sessions took %v", test.name, ended.Sessions, time.Since(began).Round(time.Millisecond))
				f.Until("checks after that", func() bool { return c.refused.Load() >= 1000 })
				stop()
				if ended.Sessions != int64(n+1) {
					f.Errorf("%d of %d sessions have ended", ended.Sessions, n+1)
				}
				f.WantNoDeadlocks()
			})
		})
	}
}

// largeTenant adds n sessions to the tenant, ten of each person, and returns tokens of a thousand.
func largeTenant(f *apptest.Fixture, acme doorward.Tenant, n int) (tokens []secret.Token) {
	f.Helper()
	const known = 1000
	counted := func(n int, query string) {
		f.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, n-1) + query)
	}
	counted(n/10, `INSERT INTO users (id, email, password_hash, created_at) SELECT 'usr_' || i, i || '@acme.example', '', 0 FROM n`)
	counted(n/10, `INSERT INTO memberships (tenant_id, user_id, role, status, created_at, name) SELECT '`+acme.ID+`', 'usr_' || i, 'USER', 'active', 0, '' FROM n`)
	bytes := map[string]string{"sqlite": `CAST('hash ' || i AS BLOB)`, "postgres": `convert_to('hash ' || i, 'UTF8')`}[f.DB.Engine()]
	now := strconv.FormatInt(f.DB.Now().UnixMicro(), 10)
	counted(n-known, `INSERT INTO sessions (id, token_hash, user_id, tenant_id, created_at, last_seen_at, ip, user_agent)
		SELECT 'ses_' || i, `+bytes+`, 'usr_' || (i / 10), '`+acme.ID+`', `+now+`, `+now+`, '', '' FROM n`)
	for range known {
		tokens = append(tokens, secret.New())
	}
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		for i, token := range tokens {
			if err := addSession(f.Context(), tx, acme, n-known+i, token); err != nil {
				return err
			}
		}
		return nil
	})
	f.NoError(err)
	return tokens
}

// addSession adds the i-th session.
func addSession(ctx context.Context, tx *store.Tx, acme doorward.Tenant, i int, token secret.Token) error {
	hash := token.Hash()
	return tx.InsertSession(ctx, doorward.Session{
		ID: fmt.Sprintf("ses_%d", i), UserID: fmt.Sprintf("usr_%d", i/10), TenantID: acme.ID, CreatedAt: tx.Now, LastSeenAt: tx.Now,
	}, hash[:])
}

// checkers check sessions on all nodes.
type checkers struct {
	f                 *apptest.Fixture
	other             secret.Token   // of another tenant
	checked           []secret.Token // of the tenant that is shut
	shutting, shut    atomic.Bool    // the call has begun, has returned
	accepted, refused atomic.Int64
}

// start begins checks, and on each node a loop that records uses and deletes what has ended. The function that it
// returns ends them.
func (c *checkers) start() (stop func()) {
	ctx, cancel := context.WithCancel(c.f.Context())
	var running sync.WaitGroup
	for i := range c.f.Nodes {
		running.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				c.check(ctx, i, c.checked[n*7919%len(c.checked)])
			}
		})
		running.Go(func() {
			for ctx.Err() == nil {
				for _, work := range []func(context.Context) error{c.f.Node(i).Sessions.Flush, c.f.Node(i).Sessions.SweepEnded} {
					if err := work(ctx); err != nil && ctx.Err() == nil {
						c.f.Errorf("node %d: %v", i, err)
					}
				}
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// check checks a session, and that of another tenant, on a node. An answer "unavailable" says nothing about a session.
func (c *checkers) check(ctx context.Context, node int, token secret.Token) {
	sessions := c.f.Node(node).Sessions
	if _, err := sessions.Check(ctx, c.other); apptest.Code(err) == doorward.CodeUnauthenticated {
		c.f.Errorf("node %d has refused a session of another tenant", node)
	}
	isShut := c.shut.Load()
	_, err := sessions.Check(ctx, token)
	isBefore := !c.shutting.Load()
	switch {
	case err == nil && isShut:
		c.f.Errorf("node %d has accepted a session after the answer", node)
	case err == nil:
		c.accepted.Add(1)
	case apptest.Code(err) == doorward.CodeUnauthenticated && isBefore:
		c.f.Errorf("node %d has refused a session before the call", node)
	case apptest.Code(err) == doorward.CodeUnauthenticated:
		c.refused.Add(1)
	}
}
