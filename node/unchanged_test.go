//go:build linux

package node_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
)

// If another call has already made a change, a call for the same change succeeds without
// changing anything. When it is answered, the change must be in effect on every node. (Found by
// make ha: a check used a role after a second administrator's call to replace it had succeeded.)
func TestRaceRepeatedChangeWaitsForEveryNode(t *testing.T) {
	t.Parallel()
	for _, change := range []string{`{"role":"VIEWER"}`, `{"status":"suspended"}`} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			acme := doorwardtest.Start(t, doorwardtest.Database(dsn)).Tenant("Acme")
			olga, ann := acme.Join("olga@acme.example", "OWNER"), acme.Join("ann@acme.example", "USER")
			edit := func() (status int) {
				status, _ = olga.Do(http.MethodPatch, "/api/v2/users/"+ann.ID, []byte(change))
				return status
			}
			if status := edit(); status != http.StatusOK {
				t.Fatalf("%s: %d", change, status)
			}
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			exec := func(query string) {
				if _, err := conn.Exec(t.Context(), query); err != nil {
					t.Fatal(err)
				}
			}
			// A node with a lease of two seconds (in microseconds) that lacks the last change. Its
			// heartbeat counter is 1.
			exec(`INSERT INTO nodes (id, lease, applied, beat) SELECT 'nod_slow', 2000000, last - 1, 1 FROM change_position`)
			answered := make(chan int, 1)
			go func() { answered <- edit() }()
			select {
			case status := <-answered:
				t.Fatalf("answered %d while a node has not applied the first change", status)
			case <-time.After(300 * time.Millisecond):
			}
			exec(`UPDATE nodes SET applied = (SELECT last FROM change_position) WHERE id = 'nod_slow'`)
			if status := <-answered; status != http.StatusOK {
				t.Errorf("%s again: %d, want 200", change, status)
			}
		})
	}
}

// request sends a request. The status is 0 without an answer in time.
func request(t *testing.T, limit time.Duration, token, method, url, body string) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Cookie", "JSESSIONID="+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// becomesTrue polls the database for a second until the condition holds.
func becomesTrue(t *testing.T, conn *pgx.Conn, condition string) (holds bool) {
	t.Helper()
	for end := time.Now().Add(time.Second); !holds && time.Now().Before(end); wait(t.Context(), 5*time.Millisecond) {
		if err := conn.QueryRow(t.Context(), "SELECT "+condition).Scan(&holds); err != nil {
			t.Fatal(err)
		}
	}
	return holds
}

// A request that ends before the standby has confirmed its commit leaves its change
// visible on the primary alone. A repeated request doesn't succeed until the standby
// has the change: it could be lost with the primary.
func TestUnconfirmedChangeIsNotAnswered(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := pair.DSN(t)
	standby := dsn[strings.Index(dsn, ","):strings.LastIndex(dsn, "/")]
	dsn = strings.Replace(dsn, standby, "", 1) // as if HAProxy, not the driver, found the primary
	d := doorwardtest.Start(t, doorwardtest.Database(dsn))
	acme := d.Tenant("Acme")
	olga, ann, bob := acme.Join("olga@acme.example", "OWNER"), acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it has only read
	olgaToken, annToken, firstSession := olga.Token(), ann.Token(), ""
	bob.Login()
	if err := conn.QueryRow(t.Context(), `SELECT id FROM sessions WHERE user_id = $1`, bob.ID).Scan(&firstSession); err != nil {
		t.Fatal(err)
	}
	bobToken := bob.Login()
	for _, c := range []struct {
		token, method, path, body string
		condition                 string // in SQL: holds once the change has been made
		wantAgain                 int
	}{
		{annToken, "POST", "/api/v2/auth/logout", "", `NOT EXISTS (SELECT FROM sessions WHERE user_id = '` + ann.ID + `')`, http.StatusNoContent},
		{olgaToken, "PATCH", "/api/v2/users/" + ann.ID, `{"role":"VIEWER"}`, `'VIEWER' = (SELECT role FROM memberships WHERE user_id = '` + ann.ID + `')`, http.StatusOK},
		{olgaToken, "DELETE", "/api/v2/users/" + ann.ID, "", `NOT EXISTS (SELECT FROM memberships WHERE user_id = '` + ann.ID + `')`, http.StatusNotFound},
		{bobToken, "DELETE", "/api/v2/sessions/" + firstSession, "", `NOT EXISTS (SELECT FROM sessions WHERE id = '` + firstSession + `')`, http.StatusNotFound},
	} {
		send := func(limit time.Duration) int {
			return request(t, limit, c.token, c.method, d.URL+c.path, c.body)
		}
		pair.Standby.Pause(t)
		// On a busy machine the first request may be given up before it reaches its commit.
		for limit, done := 300*time.Millisecond, false; !done; limit *= 2 {
			if status := send(limit); status != 0 && status != http.StatusServiceUnavailable {
				t.Fatalf("%s %s: %d without the standby", c.method, c.path, status)
			}
			done = becomesTrue(t, conn, c.condition)
		}
		if status := send(waittest.Limit); status != http.StatusServiceUnavailable {
			t.Errorf("%s %s again: %d while the change can be lost, want 503", c.method, c.path, status)
		}
		pair.Standby.Resume(t)
		if status := send(waittest.Limit); status != c.wantAgain {
			t.Errorf("%s %s again: %d, want %d", c.method, c.path, status, c.wantAgain)
		}
	}
}
