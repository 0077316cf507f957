package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// What an operator's check asks of a database, each bounded by its context. None of it
// leaves anything behind.

const sqlTryWrite = `INSERT INTO backups (id, completed_at, destination) VALUES ($1, 0, $2)`

// tryBytes is more than the free pages of a table are likely to hold, so that a disk
// without room is met.
const tryBytes = 256 << 10

// TryWrite writes something and takes it back. Errors: unavailable, for a disk that is
// full, a database that is locked or only reads.
func (db *DB) TryWrite(ctx context.Context) error {
	if db.engine.path != "" { // else it stays in memory until the end, and there is no disk to fail
		if _, err := db.write.ExecContext(ctx, `PRAGMA cache_size = 16`); err != nil {
			return fault(err)
		}
	}
	t, err := db.begin(ctx)
	if err != nil {
		return fault(err)
	}
	defer t.Rollback()                //nolint:errcheck // that is what it is for
	noise := make([]byte, tryBytes/2) // random, so that it isn't compressed
	_, _ = rand.Read(noise)           // never fails
	_, err = t.ExecContext(ctx, sqlTryWrite, -time.Now().UnixNano(), hex.EncodeToString(noise))
	return fault(err)
}

// Full reports whether an error says that there is no room for what was to be written.
func (db *DB) Full(err error) bool { return db.engine.full(err) || errors.Is(err, syscall.ENOSPC) }

// Locked reports whether an error says that another program is writing.
func (db *DB) Locked(err error) bool { return db.engine.locked(err) }

// Looked is how much of a database was looked at.
type Looked struct {
	Tables, Of int
	Damage     string // what SQLite found; empty: nothing
}

// LookForDamage has SQLite look through the pages, table by table, until all are done
// or time is up. ErrNone of PostgreSQL, which has programs of its own for it.
func (db *DB) LookForDamage(ctx context.Context) (l Looked, err error) {
	if db.engine.path == "" {
		return l, ErrNone
	}
	names, err := list(ctx, db.Read(), textColumn, `SELECT name FROM sqlite_master WHERE type = 'table'`)
	if err != nil {
		return l, err
	}
	l.Of = len(names)
	for _, name := range names {
		err := db.read.QueryRowContext(ctx, `PRAGMA quick_check("`+name+`")`).Scan(&l.Damage)
		switch {
		case ctx.Err() != nil:
			l.Damage = ""
			return l, nil
		case err != nil:
			return l, fault(err)
		case l.Damage != "ok":
			return l, nil
		}
		l.Damage = ""
		l.Tables++
	}
	return l, nil
}

// ErrPooled says that a pooler stands between, and how it has to be set.
var ErrPooled = errors.New("a pooler of connections, such as PgBouncer, stands in front of PostgreSQL")

// CheckPooling returns ErrPooled, as unavailable, where a pooler gives connections of
// PostgreSQL to others between two transactions: prepared statements, the lock on
// migrations and notifications belong to a connection. Whatever else is wrong with the
// database, it returns nil.
func (db *DB) CheckPooling(ctx context.Context) error {
	if db.engine.direct == nil {
		return nil
	}
	one, err := db.engine.direct(ctx)
	if err != nil {
		return refusedByPooler(err)
	}
	defer one.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing of it is used again
	pid, err := backend(ctx, one)
	if err != nil || pid == one.PgConn().PID() { // a pooler gives numbers of its own
		return nil
	}
	other, err := db.engine.direct(ctx)
	if err != nil {
		return nil //nolint:nilerr // a pool of one connection, held by us, is one of sessions
	}
	defer other.Close(context.WithoutCancel(ctx)) //nolint:errcheck // likewise
	if shared(ctx, one, other) {
		return fault(fmt.Errorf("%w, and gives its connections to others between two transactions: set pool_mode = session there for this database, or name PostgreSQL itself in --database", ErrPooled))
	}
	return nil
}

const startupRefused = "unsupported startup parameter"

func refusedByPooler(err error) error {
	if !strings.Contains(err.Error(), startupRefused) {
		return nil
	}
	return fault(fmt.Errorf("%w, and refuses Doorward's settings of a connection: set ignore_startup_parameters = idle_in_transaction_session_timeout,lock_timeout and pool_mode = session there, and ALTER ROLE … SET idle_in_transaction_session_timeout = '2s' in PostgreSQL; or name PostgreSQL itself in --database", ErrPooled))
}

// shared reports whether two connections of ours are given the same one of PostgreSQL
// in turn, which those of a session aren't. A pooler in use may give another at once, so
// it is asked more than once.
func shared(ctx context.Context, one, other *pgx.Conn) bool {
	for range 3 {
		before, err := backend(ctx, one)
		if err != nil {
			return false
		}
		t, err := other.Begin(ctx)
		if err != nil {
			return ctx.Err() == nil // not in this mode
		}
		during, errDuring := backend(ctx, t.Conn())
		after, errAfter := backend(ctx, one)
		_ = t.Rollback(ctx) // there is nothing in it
		if errDuring == nil && errAfter == nil && (during == before || after != before) {
			return true
		}
	}
	return false
}

func backend(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	return pid, err
}
