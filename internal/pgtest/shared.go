package pgtest

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// sharedCluster is the cluster that all tests of a binary, or of a run, share. No test can stop it, so it
// keeps a connection to make and drop databases: a new one costs more CPU than either.
type sharedCluster struct {
	*Cluster
	connMu sync.Mutex // one statement at a time
	conn   *pgx.Conn
}

var launchShared = sync.OnceValues(func() (*sharedCluster, error) {
	c, err := launchForAll()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(context.Background(), c.url("postgres"))
	return &sharedCluster{Cluster: c, conn: conn}, err
})

func launchForAll() (*Cluster, error) {
	if pipe := os.Getenv(runPipe); pipe != "" {
		return joinRun(pipe)
	}
	return launch()
}

// shared returns the shared cluster, which the first call makes.
func shared(tb testing.TB) *sharedCluster {
	tb.Helper()
	requirePostgres(tb)
	s, err := launchShared()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// create makes a database that is a copy of the template and returns its name. The options, if
// any, are added to CREATE DATABASE.
func (s *sharedCluster) create(tb testing.TB, template, options string) (name string) {
	tb.Helper()
	name = s.newName()
	s.exec(tb, createDatabase(name, template)+" "+s.fileCopy()+" "+options)
	return name
}

// fileCopy is the option to copy files, which takes half the CPU of writing each page to the
// log. Versions before 15 always copy files, and have no option.
func (s *sharedCluster) fileCopy() string {
	version, _, _ := strings.Cut(s.conn.PgConn().ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(version); err != nil || n < 15 {
		return ""
	}
	return "STRATEGY FILE_COPY"
}

// lend returns the URL of a database that is dropped when tb ends.
func (s *sharedCluster) lend(tb testing.TB, name string) (dsn string) {
	tb.Helper()
	tb.Cleanup(func() { s.exec(tb, "DROP DATABASE "+name+" WITH (FORCE)") })
	return s.url(name)
}

// exec does the same as Cluster.exec over the connection that is kept.
func (s *sharedCluster) exec(tb testing.TB, query string) {
	tb.Helper()
	s.connMu.Lock()
	defer s.connMu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := s.conn.Exec(ctx, query); err != nil {
		tb.Fatalf("pgtest: %s: %v", query, err)
	}
}

// has reports whether the database exists.
func (s *sharedCluster) has(tb testing.TB, name string) (found bool) {
	tb.Helper()
	s.connMu.Lock()
	defer s.connMu.Unlock()
	if err := s.conn.QueryRow(context.Background(), "SELECT count(*) > 0 FROM pg_database WHERE datname = $1", name).Scan(&found); err != nil {
		tb.Fatalf("pgtest: look for the database %s: %v", name, err)
	}
	return found
}
