package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/internal/waittest"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func query[T any](t *testing.T, conn *pgx.Conn, statement string) (answer T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), statement).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return answer
}

func TestEachDatabaseIsNewAndEmpty(t *testing.T) {
	one, two := connect(t, DSN(t)), connect(t, DSN(t))
	execute(t, one, "CREATE TABLE mark (n int)")
	const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	if n := query[int](t, two, tables); n != 0 {
		t.Errorf("a second database has %d tables of the first", n)
	}
}

func TestCopiesOfATemplate(t *testing.T) {
	prepared := 0
	template := Template{
		Options: "LC_COLLATE 'C' LC_CTYPE 'C'",
		Prepare: func(dsn string) error {
			prepared++
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				return err
			}
			_, err = conn.Exec(t.Context(), "CREATE TABLE mark (n int)")
			return errors.Join(err, conn.Close(t.Context()))
		},
	}
	one, two := connect(t, template.DSN(t)), connect(t, template.DSN(t))
	execute(t, one, "INSERT INTO mark VALUES (7)")
	if n := query[int](t, two, "SELECT count(*) FROM mark"); n != 0 || prepared != 1 {
		t.Errorf("a second copy has %d rows of the first; prepared %d times", n, prepared)
	}
	if got := query[string](t, two, "SELECT datcollate FROM pg_database WHERE datname = current_database()"); got != "C" {
		t.Errorf("the collation is %s, want C", got)
	}
}

func TestClustersAreCopiesOfATemplate(t *testing.T) {
	requirePostgres(t) // Start can't skip the test in other goroutines
	// Not t.TempDir: tests run by root start the server as a user who can't read that.
	folder, err := os.MkdirTemp("", "template.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv(templateFolder, filepath.Join(folder, "template"))
	clusters := make([]*Cluster, 3)
	var all sync.WaitGroup
	for i := range clusters {
		all.Go(func() { clusters[i] = Start(t) })
	}
	all.Wait()
	ids := map[int64]bool{}
	for _, c := range clusters {
		ids[query[int64](t, connect(t, c.DSN(t)), "SELECT system_identifier FROM pg_control_system()")] = true
	}
	if len(ids) != 1 {
		t.Errorf("initdb has made %d of 3 clusters, want 1 and copies", len(ids))
	}
}

func TestDatabaseIsDroppedUnderOpenConnections(t *testing.T) {
	var name string
	t.Run("user", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		name = query[string](t, conn, "SELECT current_database()") // and never closed
	})
	outside := connect(t, DSN(t))
	if n := query[int](t, outside, "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'"); n != 0 {
		t.Errorf("database %s is still there after its test", name)
	}
}

func TestSettings(t *testing.T) {
	t.Run("shared", func(t *testing.T) {
		conn := connect(t, DSN(t))
		want := map[string]string{
			"fsync": "off", "server_encoding": "UTF8", "lc_collate": "C.UTF-8",
		}
		if diff := cmp.Diff(want, show(t, conn, want)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("durable", func(t *testing.T) {
		conn := connect(t, Start(t, Durable).DSN(t))
		want := map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
		if diff := cmp.Diff(want, show(t, conn, want)); diff != "" {
			t.Error(diff)
		}
	})
}

func show(t *testing.T, conn *pgx.Conn, names map[string]string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for name := range names {
		got[name] = query[string](t, conn, "SHOW "+name)
	}
	return got
}

func TestCommitsOutliveStopAndStart(t *testing.T) {
	for _, mode := range []Mode{Fast, Immediate} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := Start(t)
			dsn := c.DSN(t)
			conn := connect(t, dsn)
			execute(t, conn, "CREATE TABLE mark (n int)")
			execute(t, conn, "INSERT INTO mark VALUES (7)")

			c.Stop(t, mode)
			if _, err := pgx.Connect(t.Context(), dsn); err == nil {
				t.Fatal("a stopped server takes connections")
			}
			c.Start(t)
			if n := query[int](t, connect(t, dsn), "SELECT n FROM mark"); n != 7 {
				t.Errorf("after the restart n = %d, want 7", n)
			}
		})
	}
}

func TestPausedServerIsSilentUntilResumed(t *testing.T) {
	c := Start(t)
	dsn := c.DSN(t)
	conn := connect(t, dsn)

	c.Pause(t)
	brief, cancel := waittest.Interrupt(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := pgx.Connect(brief, dsn); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a new connection to a paused server: %v, want a deadline exceeded", err)
	}
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(t.Context()) }()
	select {
	case err := <-answered:
		t.Errorf("an open connection to a paused server answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}

	c.Resume(t)
	if err := <-answered; err != nil {
		t.Errorf("a query sent during the pause was not answered after it: %v", err)
	}
}

func TestPausedServerCanBeStopped(t *testing.T) {
	c := Start(t)
	c.Pause(t)
	c.Stop(t, Immediate)
	c.Start(t)
	connect(t, c.DSN(t))
}
