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
)

// Who asks for what somebody else has just done changes nothing, and is told
// that it is so. That must be true on every node by then. (Found by make ha: a
// role was answered that a second administrator had been told was gone.)
func TestWhatIsSoAlreadyIsSoOnEveryNode(t *testing.T) {
	for _, change := range []string{`{"role":"VIEWER"}`, `{"status":"suspended"}`} {
		t.Run(change, func(t *testing.T) {
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
			do := func(query string) {
				if _, err := conn.Exec(t.Context(), query); err != nil {
					t.Fatal(err)
				}
			}
			do(`INSERT INTO nodes (id, lease, applied, beat) SELECT 'nod_slow', 2000000, last - 1, 1 FROM change_position`)
			answered := make(chan int, 1)
			go func() { answered <- edit() }()
			select {
			case status := <-answered:
				t.Fatalf("answered %d while a node has not applied the first change", status)
			case <-time.After(300 * time.Millisecond):
			}
			do(`UPDATE nodes SET applied = (SELECT last FROM change_position) WHERE id = 'nod_slow'`)
			if status := <-answered; status != http.StatusOK {
				t.Errorf("%s again: %d, want 200", change, status)
			}
		})
	}
}

// request sends a request. The status is 0 when it is not answered in time.
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

// becomesTrue asks the database for a second whether the condition holds.
func becomesTrue(t *testing.T, conn *pgx.Conn, condition string) (holds bool) {
	t.Helper()
	for end := time.Now().Add(time.Second); !holds && time.Now().Before(end); wait(t.Context(), 5*time.Millisecond) {
		if err := conn.QueryRow(t.Context(), "SELECT "+condition).Scan(&holds); err != nil {
			t.Fatal(err)
		}
	}
	return holds
}

// A request that is over before the standby has confirmed its commit leaves what it
// did on the primary alone, for everybody to see. Whoever asks again is not told
// that it is so until the standby has it: it could be lost with the primary.
func TestUnconfirmedIsNotAnswered(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := pair.DSN(t)
	standby := dsn[strings.Index(dsn, ","):strings.LastIndex(dsn, "/")]
	dsn = strings.Replace(dsn, standby, "", 1) // as where something else knows who the primary is
	d := doorwardtest.Start(t, doorwardtest.Database(dsn))
	acme := d.Tenant("Acme")
	olga, ann, bob := acme.Join("olga@acme.example", "OWNER"), acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it has only read
	admin, anns, other := olga.Token(), ann.Token(), ""
	bob.Login()
	if err := conn.QueryRow(t.Context(), `SELECT id FROM sessions WHERE user_id = $1`, bob.ID).Scan(&other); err != nil {
		t.Fatal(err)
	}
	bobs := bob.Login()
	for _, c := range []struct {
		token, method, path, body string
		done                      string
		again                     int
	}{
		{anns, "POST", "/api/v2/auth/logout", "", `NOT EXISTS (SELECT FROM sessions WHERE user_id = '` + ann.ID + `')`, http.StatusNoContent},
		{admin, "PATCH", "/api/v2/users/" + ann.ID, `{"role":"VIEWER"}`, `'VIEWER' = (SELECT role FROM memberships WHERE user_id = '` + ann.ID + `')`, http.StatusOK},
		{admin, "DELETE", "/api/v2/users/" + ann.ID, "", `NOT EXISTS (SELECT FROM memberships WHERE user_id = '` + ann.ID + `')`, http.StatusNotFound},
		{bobs, "DELETE", "/api/v2/sessions/" + other, "", `NOT EXISTS (SELECT FROM sessions WHERE id = '` + other + `')`, http.StatusNotFound},
	} {
		send := func(limit time.Duration) int {
			return request(t, limit, c.token, c.method, d.URL+c.path, c.body)
		}
		pair.Standby.Pause(t)
		// On a busy machine the first may be given up before it has reached its commit.
		for limit, done := 300*time.Millisecond, false; !done; limit *= 2 {
			if status := send(limit); status != 0 && status != http.StatusServiceUnavailable {
				t.Fatalf("%s %s: %d without the standby", c.method, c.path, status)
			}
			done = becomesTrue(t, conn, c.done)
		}
		if status := send(time.Minute); status != http.StatusServiceUnavailable {
			t.Errorf("%s %s again: %d while it can be lost, want 503", c.method, c.path, status)
		}
		pair.Standby.Resume(t)
		if status := send(time.Minute); status != c.again {
			t.Errorf("%s %s again: %d, want %d", c.method, c.path, status, c.again)
		}
	}
}
