package node_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
)

// A call that ends a session while another call is ending it must not answer success:
// the answer would come before the end has reached every node. (Found by TestHistory.)
func TestRaceSessionEndedConcurrentlyIsNotFound(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	server := doorwardtest.Start(t, doorwardtest.Database(dsn))
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	id := check(t, server, ann.Token()).Header.Get("X-Auth-Session")
	ann.Login() // this session makes the call
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "DELETE FROM sessions WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		status, _ := ann.Do(http.MethodDelete, "/api/v2/sessions/"+id, nil)
		answered <- status
	}()
	deadline := time.After(waittest.Limit)
	for waits := false; !waits; {
		select {
		case status := <-answered:
			t.Fatalf("answered %d before the other end was committed", status)
		case <-deadline:
			t.Fatal("the call doesn't wait for the other end")
		case <-time.After(5 * time.Millisecond):
		}
		const query = "SELECT count(*) > 0 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
		if err := tx.QueryRow(t.Context(), query).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusNotFound {
		t.Errorf("%d, want 404", status)
	}
}
