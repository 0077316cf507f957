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

	"github.com/doorward/doorward"
)

// Queries of "doorward doctor", each bounded by its context. They leave no rows
// behind.

const sqlTryWrite = `INSERT INTO backups (id, completed_at, destination) VALUES ($1, 0, $2)`

// tryWriteBytes is more than the free pages of a table are likely to hold, so that
// a full disk is noticed.
const tryWriteBytes = 256 << 10

const sqlOwnerlessTenants = selectTenant + `WHERE EXISTS (SELECT 1 FROM memberships m WHERE m.tenant_id = t.id)
AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.tenant_id = t.id AND m.role = 'OWNER' AND m.status = 'active')
AND NOT EXISTS (SELECT 1 FROM invitations i WHERE i.tenant_id = t.id AND i.role = 'OWNER' AND i.state = 'PENDING' AND i.expires_at > $1)
ORDER BY t.created_at, t.id LIMIT $2`

// OwnerlessTenants returns the tenants that have members but no active OWNER, and nobody invited to
// be one, the oldest first, at most limit.
func (r Reader) OwnerlessTenants(ctx context.Context, now time.Time, limit int) ([]doorward.Tenant, error) {
	return list(ctx, r, tenantFields, sqlOwnerlessTenants, micros(now), limit)
}

// TryWrite writes and rolls back. Errors: unavailable, for a disk that is full and
// for a database that is locked or read-only.
func (db *DB) TryWrite(ctx context.Context) error {
	if db.engine.path != "" { // force the pages out of the cache onto the disk
		if _, err := db.write.ExecContext(ctx, `PRAGMA cache_size = 16`); err != nil {
			return fault(err)
		}
	}
	t, err := db.begin(ctx)
	if err != nil {
		return fault(err)
	}
	defer t.Rollback()                     //nolint:errcheck // always rolled back
	noise := make([]byte, tryWriteBytes/2) // random, so that it can't be compressed
	_, _ = rand.Read(noise)                // never fails
	tx := &Tx{Reader: db.reader(t.Tx)}
	return tx.run(ctx, sqlTryWrite, -time.Now().UnixNano(), hex.EncodeToString(noise))
}

// IsDiskFull reports whether an error means a full disk.
func (db *DB) IsDiskFull(err error) bool {
	return db.engine.full(err) || errors.Is(err, syscall.ENOSPC)
}

// IsLocked reports whether an error means that another program is writing.
func (db *DB) IsLocked(err error) bool { return db.engine.locked(err) }

// PageCheck is the result of CheckPages.
type PageCheck struct {
	Tables, Total int    // checked tables, and how many exist
	Damage        string // what SQLite found, or empty
}

// CheckPages lets SQLite check the pages, table by table, until all are done, one is
// damaged or ctx ends. ErrNone for PostgreSQL, which has its own tools.
func (db *DB) CheckPages(ctx context.Context) (check PageCheck, err error) {
	if db.engine.path == "" {
		return check, ErrNone
	}
	names, err := list(ctx, db.Read(), textField, `SELECT name FROM sqlite_master WHERE type = 'table'`)
	if err != nil {
		return check, err
	}
	check.Total = len(names)
	for _, name := range names {
		err := db.read.QueryRowContext(ctx, `PRAGMA quick_check("`+name+`")`).Scan(&check.Damage)
		switch {
		case ctx.Err() != nil:
			check.Damage = ""
			return check, nil
		case err != nil:
			return check, fault(err)
		case check.Damage != "ok":
			return check, nil
		}
		check.Damage = ""
		check.Tables++
	}
	return check, nil
}

// TableRows is how many rows a table has.
type TableRows struct {
	Name string
	Rows int64
}

// TableRows counts the rows of all tables, until ctx ends.
func (db *DB) TableRows(ctx context.Context) (all []TableRows, err error) {
	names, err := list(ctx, db.Read(), textField, db.engine.tables)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t := TableRows{Name: name}
		if err := db.read.QueryRowContext(ctx, `SELECT count(*) FROM "`+name+`"`).Scan(&t.Rows); err != nil {
			return all, fault(err)
		}
		all = append(all, t)
	}
	return all, nil
}

// ErrPooled says that a connection pooler is in front of PostgreSQL.
var ErrPooled = errors.New("a connection pooler, such as PgBouncer, is in front of PostgreSQL")

// CheckPooling returns ErrPooled, as unavailable, if a pooler reassigns
// connections between transactions: prepared statements, the migration lock and
// notifications belong to a connection. For any other fault of the database it
// returns nil.
func (db *DB) CheckPooling(ctx context.Context) error {
	if db.engine.direct == nil {
		return nil
	}
	first, err := db.engine.direct(ctx)
	if err != nil {
		return poolerRefusal(err)
	}
	defer first.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is not used again
	pid, err := backendPID(ctx, first)
	if err != nil || pid == first.PgConn().PID() { // a pooler reports another process id
		return nil
	}
	second, err := db.engine.direct(ctx)
	if err != nil {
		return nil //nolint:nilerr // a pooler that has no second connection while the first is open pools by session
	}
	defer second.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is not used again
	if shareBackend(ctx, first, second) {
		return fault(fmt.Errorf("%w, and reassigns connections between transactions: set pool_mode = session there for this database, or name PostgreSQL itself in --database", ErrPooled))
	}
	return nil
}

const startupRefused = "unsupported startup parameter"

// poolerRefusal returns ErrPooled, as unavailable, if a pooler has refused the connection.
func poolerRefusal(err error) error {
	if !strings.Contains(err.Error(), startupRefused) {
		return nil
	}
	return fault(fmt.Errorf("%w, and refuses a parameter of --database: leave the parameter out, or list it in ignore_startup_parameters there, with pool_mode = session; or name PostgreSQL itself in --database", ErrPooled))
}

// shareBackend reports whether two of our connections use the same PostgreSQL backend in
// turn, which session pooling never does. A busy pooler may assign another backend
// by chance, so it tries three times.
func shareBackend(ctx context.Context, first, second *pgx.Conn) bool {
	for range 3 {
		before, err := backendPID(ctx, first)
		if err != nil {
			return false
		}
		t, err := second.Begin(ctx)
		if err != nil {
			return ctx.Err() == nil // a session pooler would let it wait until ctx ends
		}
		during, errDuring := backendPID(ctx, t.Conn())
		after, errAfter := backendPID(ctx, first)
		_ = t.Rollback(ctx) // it wrote nothing
		if errDuring == nil && errAfter == nil && (during == before || after != before) {
			return true
		}
	}
	return false
}

func backendPID(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	return pid, err
}
