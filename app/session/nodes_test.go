package session_test

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
)

// newClock returns a clock that is the same for all nodes. Tests with it are exact to
// the microsecond.
func newClock() *apptest.StoppedClock {
	return apptest.StopClockAt(time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC))
}

func withClock(c *apptest.StoppedClock) doorwardtest.Option {
	return func(cfg *node.Config) { cfg.Clock = c.Now }
}

// pair is two nodes that share a PostgreSQL database and a clock, and a person with an account.
type pair struct {
	*testing.T
	a, b *doorwardtest.Server
	*apptest.StoppedClock
	ann *doorwardtest.Person
}

func newPair(t *testing.T, options ...doorwardtest.Option) *pair {
	t.Helper()
	p := &pair{T: t, StoppedClock: newClock()}
	var mailbox smtp.Transport // shared, since either node may send the mail that the other queued
	options = append(options, doorwardtest.Database(dbtest.Postgres(t)), withClock(p.StoppedClock))
	p.a = doorwardtest.Start(t, append(options, func(c *node.Config) { mailbox = c.Transport })...)
	p.b = doorwardtest.Start(t, append(options, func(c *node.Config) { c.Transport = mailbox })...)
	p.ann = p.a.Tenant("Acme").Join("ann@acme.example", "USER")
	return p
}

// login opens a session on a node, like a login with the right password.
func login(t *testing.T, on *doorwardtest.Server, person *doorwardtest.Person) secret.Token {
	t.Helper()
	account, err := on.Node.DB.Read().AccountByEmail(t.Context(), person.Email)
	if err != nil {
		t.Fatal(err)
	}
	memberships, err := on.Node.DB.Read().Memberships(t.Context(), person.ID)
	if err != nil {
		t.Fatal(err)
	}
	proved := proof.Proof{Account: account, Methods: []string{doorward.MethodPassword}}
	opened, err := apptest.SignedIn(on.Node.App.Login.Enter(t.Context(), apptest.Anonymous(0), proved, memberships[0].TenantID))
	if err != nil {
		t.Fatal(err)
	}
	return opened.Token
}

// check returns the code of a check's error, or empty.
func check(t *testing.T, on *doorwardtest.Server, token secret.Token) doorward.Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	_, err := on.Node.App.Sessions.Check(ctx, token)
	for _, code := range []doorward.Code{doorward.CodeUnauthenticated, doorward.CodeUnavailable} {
		if doorward.HasCode(err, code) {
			return code
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

func (p *pair) want(on *doorwardtest.Server, token secret.Token, want doorward.Code, when string) {
	p.Helper()
	if got := check(p.T, on, token); got != want {
		p.Errorf("%s: %q, want %q", when, got, want)
	}
}

// TestUseOnAnotherNodeCounts: a node that finds a session idle, whose use on another
// node isn't written yet, asks for that use: it ends the session neither too early
// nor too late.
func TestUseOnAnotherNodeCounts(t *testing.T) {
	p := newPair(t)
	for range 5 { // the use waits to be written
		token := login(t, p.a, p.ann)
		p.Move(59 * time.Minute)
		p.want(p.a, token, "", "in use")
		p.Move(time.Minute + time.Second)
		p.want(p.b, token, "", "a minute after a use that waits to be written")
	}

	token := login(t, p.a, p.ann)
	p.Move(58 * time.Minute)
	p.want(p.a, token, "", "in use")
	if err := p.a.Node.App.Sessions.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Move(30 * time.Second) // too soon after the last write
	p.want(p.a, token, "", "in use")
	p.Move(time.Hour - time.Microsecond)
	p.want(p.b, token, "", "an hour less a microsecond after the last use, of which one node knows")
	p.Move(time.Hour)
	p.want(p.a, token, doorward.CodeUnauthenticated, "an hour after the last use")
	p.want(p.b, token, doorward.CodeUnauthenticated, "an hour after the last use")
}

// TestRaceIdleIsUnknownWhileANodeIsSilent: while a node doesn't report its last use of a session
// that looks idle, the answer to a check is unavailable.
func TestRaceIdleIsUnknownWhileANodeIsSilent(t *testing.T) {
	p := newPair(t)
	token := login(t, p.a, p.ann)
	gate, received := make(chan struct{}), make(chan struct{})
	reached, release := sync.OnceFunc(func() { close(received) }), sync.OnceFunc(func() { close(gate) })
	silent := lease.New(p.a.Node.DB, time.Second)
	silent.Follow(func(_ context.Context, changes []store.Change) error {
		if len(changes) > 0 {
			reached()
			<-gate
		}
		return nil
	}, func() {})
	ctx, leave := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { silent.Run(ctx) })
	defer func() { release(); leave(); running.Wait() }()
	waittest.Until(t, "the silent node's lease", silent.Valid)
	p.Move(time.Hour)
	p.want(p.b, token, doorward.CodeUnavailable, "idle, unless the silent node has seen it")
	waittest.For(t, "the change to arrive at the silent node", received)
	release()
	leave()
	running.Wait()
	p.want(p.b, token, doorward.CodeUnauthenticated, "idle, after the silent node has left")
}

// TestSessionLimitHoldsInMemory: when a login returns, every node's memory has lost the
// session beyond the limit, and no other one.
func TestSessionLimitHoldsInMemory(t *testing.T) {
	p := newPair(t, doorwardtest.SessionLimits(doorward.SessionLimits{Idle: time.Hour, Absolute: 24 * time.Hour, PerUser: 3}))
	var all []secret.Token
	for n := range 8 {
		p.Move(time.Second)
		on := []*doorwardtest.Server{p.a, p.b}[n%2]
		all = append(all, login(t, on, p.ann))
		for i, token := range all {
			want := doorward.Code("")
			if i < len(all)-3 {
				want = doorward.CodeUnauthenticated
			}
			for range 2 { // the second time from memory
				p.want(p.a, token, want, "on the first node")
				p.want(p.b, token, want, "on the second node")
			}
		}
	}
}

// TestLimitsAreExact: the limits are exact to the microsecond, in memory and on a node that
// must ask the database.
func TestLimitsAreExact(t *testing.T) {
	p := newPair(t, doorwardtest.SessionLimits(doorward.SessionLimits{Idle: time.Hour, Absolute: 3 * time.Hour, PerUser: 10}))
	for _, second := range []*doorwardtest.Server{p.a, p.b} {
		idle := login(t, p.a, p.ann)
		for range 2 {
			p.Move(time.Hour - time.Microsecond)
			p.want(p.a, idle, "", "a microsecond before it idles out")
		}
		p.Move(time.Hour)
		p.want(second, idle, doorward.CodeUnauthenticated, "when it idles out")

		absolute := login(t, p.a, p.ann)
		for range 5 {
			p.Move(30 * time.Minute)
			p.want(p.a, absolute, "", "in use")
		}
		p.Move(30*time.Minute - time.Microsecond)
		p.want(second, absolute, "", "a microsecond before its absolute end")
		p.Move(time.Microsecond)
		p.want(p.a, absolute, doorward.CodeUnauthenticated, "at its absolute end")
		p.want(p.b, absolute, doorward.CodeUnauthenticated, "at its absolute end")
	}
}

// TestMemoryIsBounded: sessions that don't fit in memory stay valid, their uses
// count, and they can be ended.
func TestMemoryIsBounded(t *testing.T) {
	const capacity, sessions = 256, 160 // one entry in each of the 256 shards of the registry
	c := newClock()
	server := doorwardtest.Start(t, withClock(c), func(cfg *node.Config) {
		cfg.SessionsInMemory = capacity
		cfg.Sessions.PerUser = 0
	})
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	var all []secret.Token
	for range sessions {
		all = append(all, login(t, server, ann))
	}
	for range 3 {
		c.Move(50 * time.Minute)
		for _, token := range all {
			if got := check(t, server, token); got != "" {
				t.Fatalf("a session in use: %s", got)
			}
		}
		if n := server.Node.App.Sessions.InMemory(); n >= sessions || n < sessions/4 {
			t.Errorf("%d of %d sessions are in memory: want some in memory and some not", n, sessions)
		}
	}
	by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}}
	for together := range slices.Chunk(all[:20], 8) {
		if _, err := server.Node.App.Sessions.End(t.Context(), by, together); err != nil {
			t.Fatal(err)
		}
	}
	for i, token := range all[:40] {
		if got := check(t, server, token); (got == doorward.CodeUnauthenticated) != (i < 20) {
			t.Errorf("session %d after the first 20 were ended: %q", i, got)
		}
	}
}

// TestUsesAreWrittenAtTheEnd: when the process ends, it also writes uses that it has not
// written so far because they followed another use too soon.
func TestUsesAreWrittenAtTheEnd(t *testing.T) {
	c, dsn := newClock(), "sqlite:"+filepath.Join(t.TempDir(), "doorward.db")
	server := doorwardtest.Start(t, doorwardtest.Database(dsn), withClock(c))
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	c.Move(10 * time.Second)
	if status, body := ann.Get("/api/v2/access/check"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	server.Stop()
	db, err := store.Open(t.Context(), dsn, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Read().UserSessions(t.Context(), ann.ID)
	if err != nil || len(rows) != 1 || !rows[0].Session.LastSeenAt.Equal(c.Now()) {
		t.Errorf("%+v, %v: want one session, last used at %v", rows, err, c.Now())
	}
}

// TestRaceRoleCountsAtOnce: once a change of role has returned, no node uses the old role, although
// checks load the session during the change.
func TestRaceRoleCountsAtOnce(t *testing.T) {
	p := newPair(t)
	bob := p.a.Tenant("Other").Join("bob@other.example", "USER")
	token := login(t, p.a, bob)
	member, err := p.a.Node.App.Sessions.Check(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	role := func(on *doorwardtest.Server) doorward.Role {
		principal, err := on.Node.App.Sessions.Check(context.Background(), token)
		if err != nil {
			t.Error(err)
		}
		return principal.Role
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	defer others.Wait()
	defer close(stop)
	for n := range 8 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					role([]*doorwardtest.Server{p.a, p.b}[n%2])
				}
			}
		})
	}
	target := doorward.User{ID: member.ID, TenantID: member.TenantID}
	for n := range apptest.Rounds(10, 200) {
		want := []doorward.Role{doorward.RoleAdmin, doorward.RoleViewer}[n%2]
		if err := p.b.Node.App.Users.SetRole(t.Context(), doorward.OperatorAtTerminal(), target, want); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if a, b := role(p.a), role(p.b); a != want || b != want {
				t.Fatalf("change %d: the nodes return %s and %s, want %s", n, a, b, want)
			}
			<-time.After(time.Millisecond) // for checks in flight
		}
	}
}
