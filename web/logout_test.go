package web_test

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/storetest"
)

// TestLogoutOfSeveral: the sessions of several cookies end in one transaction, each
// with an event by its own person in the trail of its tenant.
func TestLogoutOfSeveral(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		ann, bob := acme.Join("ann@acme.example", "USER"), zeta.Join("bob@zeta.example", "VIEWER")
		stays := d.token(t, ann.Email)
		cookies := []opt{
			as(d.token(t, ann.Email)), as(forged), as(d.token(t, ann.Email)), as(d.token(t, bob.Email)), as(bob.Token()),
		}
		d.send(t, "POST /api/v2/auth/logout", nil, cookies...).ok(http.StatusNoContent)
		for _, ended := range cookies {
			d.send(t, "GET /api/v2/auth/session", nil, ended).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(stays)).ok(http.StatusOK)

		ends := append(sessionEnds(t, d, acme.ID), sessionEnds(t, d, zeta.ID)...)
		if len(ends) != 4 {
			t.Fatalf("%d events, want 4: %+v", len(ends), ends)
		}
		for i, e := range ends {
			who := ann.ID
			if i >= 2 {
				who = bob.ID
			}
			if e.ActorID != who || !e.At.Equal(ends[0].At) {
				t.Errorf("event %d is by %s at %v, want by %s at %v", i, e.ActorID, e.At, who, ends[0].At)
			}
		}
		d.send(t, "POST /api/v2/auth/logout", nil, cookies...).ok(http.StatusNoContent) // records no more events
		if again := append(sessionEnds(t, d, acme.ID), sessionEnds(t, d, zeta.ID)...); len(again) != 4 {
			t.Errorf("%d events after a second time, want 4", len(again))
		}
	})
}

// sessionEnds returns the events session.end in the trail of a tenant.
func sessionEnds(t *testing.T, d *server, tenantID string) (ends []doorward.Event) {
	t.Helper()
	all, err := storetest.Events(t.Context(), d.Node.DB.Read(), tenantID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Action == doorward.SessionEnd {
			ends = append(ends, e)
		}
	}
	return ends
}

// TestLogoutOfMany: logout ends every session of a request, however many there are.
func TestLogoutOfMany(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner.Email
		for _, n := range []int{7, 8, 9, 560} { // around a batch of 8, and many batches
			first, last := d.token(t, owner), d.token(t, owner)
			d.send(t, "POST /api/v2/auth/logout", nil, as(first), randomCookies(n), as(last)).ok(http.StatusNoContent)
			for _, ended := range []string{first, last} {
				d.send(t, "GET /api/v2/auth/session", nil, as(ended)).fails(http.StatusUnauthorized, "unauthenticated")
			}
		}
		token := d.token(t, owner)
		// Repeated cookies of one session count once.
		d.send(t, "POST /api/v2/auth/logout", nil, cookie(strings.Repeat("JSESSIONID="+token+"; ", 560)+"a=b")).ok(http.StatusNoContent)
	})
}

func randomCookies(n int) opt {
	pairs := make([]string, n)
	for i := range pairs {
		pairs[i] = "JSESSIONID=" + secret.New().Reveal()
	}
	return cookie(strings.Join(pairs, "; "))
}

// TestLogoutOfUnknownSessionsTakesFewTransactions counts the writing transactions by PostgreSQL's
// transaction ids. Background work and tests beside it also write, so the minimum of several runs
// counts, and it may be 3 in 100 of what a transaction for each session would take.
func TestLogoutOfUnknownSessionsTakesFewTransactions(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Postgres(t)
	d := start(t, doorwardtest.Database(dsn))
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	transactions := func() (n int64) {
		if err := db.QueryRowContext(t.Context(), `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const many = 500
	least := int64(1 << 40)
	for range 5 {
		before := transactions()
		d.send(t, "POST /api/v2/auth/logout", nil, randomCookies(many)).ok(http.StatusNoContent)
		least = min(least, transactions()-before)
	}
	if least > 3*many/100 {
		t.Errorf("the end of %d sessions that don't exist took %d transactions", many, least)
	}
}
