package session_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
)

func limits(idle, absolute time.Duration) doorwardtest.Option {
	return doorwardtest.SessionLimits(doorward.SessionLimits{Idle: idle, Absolute: absolute, PerUser: 10})
}

// isLive reports whether a check over HTTP accepts the session.
func isLive(t *testing.T, p *doorwardtest.Person) bool {
	t.Helper()
	status, body := p.Get("/api/v2/access/check")
	if status != http.StatusOK && status != http.StatusUnauthorized {
		t.Fatalf("check: %d %s", status, body)
	}
	return status == http.StatusOK
}

// TestIdleIsExact: each use restarts the idle time, exact to the microsecond,
// however often the session was used before.
func TestIdleIsExact(t *testing.T) {
	c := newClock()
	server := doorwardtest.Start(t, limits(time.Hour, 24*time.Hour), withClock(c))
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	for range 5 {
		c.Move(time.Hour - time.Microsecond)
		if !isLive(t, ann) {
			t.Fatal("a session ended before its idle time")
		}
	}
	c.Move(time.Hour)
	if isLive(t, ann) {
		t.Error("a session is valid after its idle time")
	}
}

// TestAbsoluteIsExact: no use keeps a session valid beyond its absolute time.
func TestAbsoluteIsExact(t *testing.T) {
	c := newClock()
	server := doorwardtest.Start(t, limits(time.Hour, 3*time.Hour), withClock(c))
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	for _, d := range []time.Duration{time.Hour, time.Hour, time.Hour, 2 * time.Microsecond} { // the last check is 2 µs before the end
		c.Move(d - time.Microsecond)
		if !isLive(t, ann) {
			t.Fatal("a session in use ended before its absolute time")
		}
	}
	c.Move(2 * time.Microsecond)
	if isLive(t, ann) {
		t.Error("a session is valid after its absolute time")
	}
}

// TestRaceUseRevivesNothing: uses in flight while the session ends, and written
// right afterwards, don't revive it.
func TestRaceUseRevivesNothing(t *testing.T) {
	server := doorwardtest.Start(t)
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	sessions := server.Node.App.Sessions
	ctx := context.Background()
	for n := range 500 {
		token := login(t, server, ann)
		server.Advance(2 * time.Minute) // so that the next use must be written
		var uses sync.WaitGroup
		for range 2 {
			uses.Go(func() {
				for range 3 {
					_, _ = sessions.Check(ctx, token) // either answer is right at this point
					_ = sessions.Flush(ctx)
				}
			})
		}
		if _, err := sessions.End(ctx, doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}}, []secret.Token{token}); err != nil {
			t.Fatal(err)
		}
		if _, err := sessions.Check(ctx, token); !doorward.HasCode(err, doorward.CodeUnauthenticated) {
			t.Fatalf("try %d: check of an ended session: %v", n, err)
		}
		uses.Wait()
		if err := sessions.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := sessions.Check(ctx, token); !doorward.HasCode(err, doorward.CodeUnauthenticated) {
			t.Fatalf("try %d: check of an ended session after its uses were written: %v", n, err)
		}
	}
}

// TestUseIsWritten: uses are written once a minute at most.
func TestUseIsWritten(t *testing.T) {
	server := doorwardtest.Start(t)
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	ctx := context.Background()
	written := func() time.Time {
		t.Helper()
		if err := server.Node.App.Sessions.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		rows, err := server.Node.DB.Read().UserSessions(ctx, ann.ID)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d sessions, %v", len(rows), err)
		}
		return rows[0].Session.LastSeenAt
	}
	first := written()
	for range 5 {
		server.Advance(10 * time.Second)
		isLive(t, ann)
	}
	if got := written(); !got.Equal(first) {
		t.Errorf("a use was written %v after the last one", got.Sub(first))
	}
	server.Advance(11 * time.Second)
	isLive(t, ann)
	if got := written(); got.Sub(first) < time.Minute {
		t.Errorf("a use a minute later was not written: %v", got.Sub(first))
	}
}

// TestRememberedDoesNotAllocate: a check in memory allocates nothing.
func TestRememberedDoesNotAllocate(t *testing.T) {
	server := doorwardtest.Start(t)
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	token, err := secret.Parse(ann.Token())
	if err != nil {
		t.Fatal(err)
	}
	if !isLive(t, ann) {
		t.Fatal("the session is invalid")
	}
	sessions, found := server.Node.App.Sessions, 0
	n := testing.AllocsPerRun(200, func() {
		if _, ok := sessions.Remembered(token); ok {
			found++
		}
	})
	if found == 0 {
		t.Fatal("the session was never found in memory")
	}
	if n != 0 {
		t.Errorf("a check in memory allocates %v times", n)
	}
}
