package node_test

import (
	"net/http"
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
