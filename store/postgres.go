package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/database"

	"github.com/doorward/doorward/store/internal/cluster"
)

// openPostgres opens one connection pool for reads and writes. With several hosts in the
// DSN it looks for the one that takes writes, so that a failover is followed.
func openPostgres(ctx context.Context, dsn string) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err) // pgx masks the password
	}
	tunePostgres(cfg)
	servers := cluster.FromConfig(cfg)
	if servers != nil {
		servers.Guard(cfg)
		servers.Probe(ctx)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fault(err)
	}
	read, write := openFromPool(pool, servers), openFromPool(pool, servers)
	write.SetMaxOpenConns(maxWriters(cfg.MaxConns))
	return &DB{
		rules: newRulesCache(),
		engine: engine{
			name: "postgres", dialect: database.DialectPostgres, transient: postgresTransient, locked: neverLocked, full: postgresFull, exclusive: exclusivePostgres,
			direct: func(ctx context.Context) (*pgx.Conn, error) {
				own := cfg.ConnConfig.Copy()
				own.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
				return pgx.ConnectConfig(ctx, own)
			},
			migrator: func() *sql.DB { return postgresMigrator(cfg.ConnConfig) }, lockTimedOut: postgresLockTimedOut,
			tables:        `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`,
			hasMigrations: `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'goose_db_version'`,
			clock:         `SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), moved FROM shared_clock WHERE id = 1`,
			snapshot:      sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
			noTimeout:     `SET LOCAL idle_in_transaction_session_timeout = 0`, // for snapshots, which hold no lock that anybody waits for, and Fill, which runs alone
			servers:       servers,
			listen:        func(ctx context.Context, wake func()) error { return listenPostgres(ctx, pool, servers, wake) },
			notify:        `SELECT pg_notify('doorward_change', '')`,
			size:          `SELECT pg_database_size(current_database())`,
			forceDurable:  `SELECT pg_logical_emit_message(true, 'doorward', '')`,
			synchronous: `SELECT current_setting('synchronous_standby_names') <> ''
  AND current_setting('synchronous_commit') NOT IN ('off', 'local')`,
			tryCommit: `SELECT CAST(pg_logical_emit_message(true, 'doorward', '') AS TEXT)`,
		},
		write: write, read: read,
		pools: func() []Pool { return []Pool{postgresPool(pool.Stat(), write.Stats())} },
		close: func() error { err := errors.Join(write.Close(), read.Close()); closePool(pool); return err },
	}, nil
}

// openFromPool is stdlib.OpenDBFromPool, but with several servers its connections wait for the
// lease.
// The pool keeps idle connections, database/sql none.
func openFromPool(pool *pgxpool.Pool, servers *cluster.Servers) *sql.DB {
	if servers == nil {
		return stdlib.OpenDBFromPool(pool)
	}
	db := sql.OpenDB(servers.Connector(stdlib.GetPoolConnector(pool)))
	db.SetMaxIdleConns(0)
	return db
}

func tunePostgres(cfg *pgxpool.Config) {
	conn := cfg.ConnConfig
	if len(conn.Fallbacks) > 0 && conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if conn.ConnectTimeout == 0 || conn.ConnectTimeout > 2*time.Second {
		conn.ConnectTimeout = 2 * time.Second // a request is answered within 3 s
	}
	conn.RuntimeParams["application_name"] = "doorward"
	// A transaction of a node that was killed or cut off holds its locks, and
	// revocations wait for them. Our transactions never pause that long between
	// statements, and a request has 2.7 s.
	conn.RuntimeParams["idle_in_transaction_session_timeout"] = "2000"
	if cfg.MaxConns < 16 {
		cfg.MaxConns = 16
	}
	// A network may drop idle connections silently. A request has time to detect a few
	// of them, and closing the pool waits for open pings: a minute without this
	// setting.
	cfg.PingTimeout = 500 * time.Millisecond
}

// maxWriters is how many connections of a pool may write. While a synchronous standby
// is unreachable every commit waits; without a reserve writers would soon hold all
// connections, and checks would be answered 503.
func maxWriters(maxConns int32) int { return int(maxConns - maxConns/4) }

// postgresPool counts a wait whenever a caller found no idle connection, or waited
// to become one of the writers.
func postgresPool(s *pgxpool.Stat, write sql.DBStats) Pool {
	return Pool{
		Name: "shared", Max: int(s.MaxConns()), Busy: int(s.AcquiredConns()), Idle: int(s.IdleConns()),
		Waits: s.EmptyAcquireCount() + write.WaitCount, Waited: s.EmptyAcquireWaitTime() + write.WaitDuration,
	}
}

// closePool waits for up to 2 s: pgx lets each broken connection take 15 s to close.
func closePool(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() { pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(2 * time.Second):
	}
}

// postgresTransient: serialization_failure and deadlock_detected.
func postgresTransient(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}

// postgresLockTimedOut: lock_not_available, or aborted because of another transaction.
func postgresLockTimedOut(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "55P03" || postgresTransient(err)
}

// postgresDuplicate: unique_violation. In SQLite writers wait for each other, so that a
// condition of the statement decides.
func postgresDuplicate(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505"
}

// postgresFull: disk_full.
func postgresFull(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "53100"
}

// IsValueRefused reports whether PostgreSQL can't store a value, whatever else happens: a data
// exception such as a text with NUL (class 22), or a value beyond a limit, such as that of an
// index (class 54). SQLite stores every value that Doorward writes.
func IsValueRefused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "54"))
}

func postgresMigrator(cfg *pgx.ConnConfig) *sql.DB {
	own := cfg.Copy()
	own.RuntimeParams["lock_timeout"] = strconv.FormatInt(migrationLockTimeout.Milliseconds(), 10)
	return stdlib.OpenDB(*own)
}

// neverLocked: PostgreSQL waits for locks itself, until the request ends.
func neverLocked(error) bool { return false }

// listenPostgres holds one connection for notifications, until it fails or a newer primary is
// seen.
func listenPostgres(ctx context.Context, pool *pgxpool.Pool, servers *cluster.Servers, wake func()) error {
	conn, err := pool.Acquire(cluster.Renewal(ctx))
	if err != nil {
		return fault(err)
	}
	own := conn.Hijack()
	defer own.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is not used again
	err = withTimeout(ctx, listenAnswer, func(ctx context.Context) error {
		_, err := own.Exec(ctx, `LISTEN doorward_change`)
		return err
	})
	for err == nil && servers.IsCurrent(own.PgConn()) {
		err = waitForNotification(ctx, own, wake)
	}
	return fault(err)
}

// A silent connection may be dead: nothing is ever sent on it, so no error shows.
// It is pinged after listenSilence, and has listenAnswer to reply.
const (
	listenSilence = 5 * time.Second
	listenAnswer  = 2 * time.Second
)

// waitForNotification waits for one notification, or pings after a silence.
func waitForNotification(ctx context.Context, own *pgx.Conn, wake func()) error {
	err := withTimeout(ctx, listenSilence, func(ctx context.Context) error {
		_, err := own.WaitForNotification(ctx)
		return err
	})
	if err == nil {
		wake()
	}
	if err != nil && ctx.Err() == nil && pgconn.Timeout(err) {
		return withTimeout(ctx, listenAnswer, own.Ping)
	}
	return err
}

func withTimeout(ctx context.Context, d time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return fn(ctx)
}
