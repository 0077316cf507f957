package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrSchema means that this binary doesn't support the database's schema.
var ErrSchema = errors.New("unsupported schema")

// Migrate applies the missing migrations, under a lock: of two nodes that start at
// once one migrates and the other waits. A newer schema is not changed; it is
// ErrSchema if the binary doesn't support it. So is one that is older than the first
// migration, and another program's SQLite database.
func (db *DB) Migrate(ctx context.Context) error { return db.migrate(ctx, migrations) }

func (db *DB) migrate(ctx context.Context, all []migration) error {
	needed := all[len(all)-1].number
	// Without the lock: a node of an older version also starts while a newer one migrates.
	if have, err := db.schemaUpTo(ctx, needed); err == nil && have > needed {
		return db.checkNewer(ctx, have)
	}
	return db.engine.exclusive(ctx, db, func(conn *sql.Conn) error {
		have, err := db.schemaUpTo(ctx, needed)
		switch {
		case err != nil:
			return err
		case have == needed:
			return nil
		case have > needed:
			return db.checkNewer(ctx, have)
		case have == 0:
			err = db.refuseForeign(ctx)
		default:
			err = checkOldest(have)
		}
		if err != nil {
			return err
		}
		if conn == nil {
			if conn, err = db.write.Conn(ctx); err != nil {
				return fault(err)
			}
			defer conn.Close()
		}
		return fault(migrator{db, conn}.up(ctx, all))
	})
}

// lastCommit is a commit that has the migrations before the first one of this binary.
const lastCommit = "a2960562"

// checkOldest returns ErrSchema for a schema that was made before the first migration of this
// binary, which makes everything at once.
func checkOldest(have int64) error {
	if have >= firstSchema {
		return nil
	}
	return fmt.Errorf("store: the database has schema %d, older than the %d that this binary can begin with: start doorward of commit %s on it once, which brings it there: %w", have, firstSchema, lastCommit, ErrSchema)
}

// refuseForeign refuses a SQLite database that has tables, but not that of migrations.
// PostgreSQL databases aren't checked: there, programs may share a schema.
func (db *DB) refuseForeign(ctx context.Context) error {
	if db.engine.path == "" {
		return nil
	}
	tables, err := list(ctx, db.Read(), textField, db.engine.tables)
	if err != nil || len(tables) == 0 || slices.Contains(tables, "goose_db_version") {
		return err
	}
	return fmt.Errorf("store: %s is the database of another program, with the table %q: name another file with --database: %w", db.engine.path, tables[0], ErrSchema)
}

// CheckSchema returns nil when the schema is the binary's own or a newer one that
// it supports; else an ErrSchema that says what to do. It changes nothing.
func (db *DB) CheckSchema(ctx context.Context) error {
	have, err := db.schema(ctx)
	switch {
	case err != nil:
		return err
	case have > schemaNeeded:
		return db.checkNewer(ctx, have)
	case have > 0 && have < firstSchema:
		return checkOldest(have)
	case have < schemaNeeded:
		return fmt.Errorf("store: the database has schema %d, this binary needs %d: run \"doorward migrate\", or \"doorward serve\" without --migrate=false: %w", have, schemaNeeded, ErrSchema)
	}
	return nil
}

// CheckOwnSchema is CheckSchema for callers that must know every table and column: any
// newer schema is ErrSchema.
func (db *DB) CheckOwnSchema(ctx context.Context) error {
	have, err := db.schema(ctx)
	if err == nil && have > schemaNeeded {
		return tooNew(have)
	}
	if err == nil {
		err = db.CheckSchema(ctx)
	}
	return err
}

const sqlOldestBinary = `SELECT knows FROM oldest_binary WHERE id = 1`

// checkNewer returns nil when this binary supports a newer schema. The migrations
// record the oldest binary that works with them.
func (db *DB) checkNewer(ctx context.Context, have int64) error {
	oldest, err := one(ctx, db.Read(), int64Column, sqlOldestBinary)
	if err != nil {
		return fault(fmt.Errorf("oldest binary: %w", err))
	}
	if schemaNeeded < oldest {
		return tooNew(have)
	}
	return nil
}

func tooNew(have int64) error {
	return fmt.Errorf("store: the database has schema %d, newer than the %d this binary knows: run the newer doorward that made it: %w", have, schemaNeeded, ErrSchema)
}

// sqlSchema counts a migration of this binary when it is complete, and a newer one as soon as it
// has begun: by then it may have taken something away.
const sqlSchema = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied OR version_id > $1`

// Schema is the number of the newest migration in the database, 0 without any.
// Errors: ErrSchema (with the number) for a newer schema that this binary doesn't
// support, and for one that is older than its first migration, unavailable.
func (db *DB) Schema(ctx context.Context) (have int64, err error) {
	have, err = db.schema(ctx)
	switch {
	case err != nil || have == 0:
	case have > schemaNeeded:
		err = db.checkNewer(ctx, have)
	default:
		err = checkOldest(have)
	}
	return have, err
}

func (db *DB) schema(ctx context.Context) (int64, error) { return db.schemaUpTo(ctx, schemaNeeded) }

// schemaUpTo returns the number of the newest migration in the database, 0 without any, for a
// binary that has migrations up to needed.
func (db *DB) schemaUpTo(ctx context.Context, needed int64) (int64, error) {
	tables, err := one(ctx, db.Read(), countColumn, db.engine.hasMigrations)
	if err != nil || tables == 0 {
		return 0, err
	}
	return one(ctx, db.Read(), int64Column, sqlSchema, needed)
}

// exclusivePostgres holds an advisory lock on its own connection: the server would
// abort a transaction that is open for so long. It polls for the lock: a statement that waits
// has a snapshot, and another node's CREATE INDEX CONCURRENTLY waits for that.
func exclusivePostgres(ctx context.Context, db *DB, fn func(conn *sql.Conn) error) (err error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return fault(err)
	}
	defer conn.Close()
	if err := lockForMigration(ctx, db, conn); err != nil {
		return fault(fmt.Errorf("lock for migration: %w", err))
	}
	defer func() {
		// Also when ctx has ended: the connection goes back to the pool, and would keep the lock.
		unlockErr := unlockAfterMigration(context.WithoutCancel(ctx), conn)
		if err == nil {
			err = fault(unlockErr)
		}
	}()
	return fn(conn)
}

// lockInterval is how often a node tries to get the lock for migrations.
const lockInterval = 100 * time.Millisecond

// migrationLock is "doorward" in ASCII; advisory locks are numbers.
const migrationLock int64 = 0x646f6f7277617264

// lockForMigration waits for the lock. It also lifts limits that the operator may have set for
// all statements: building an index waits for other transactions, without blocking anybody.
func lockForMigration(ctx context.Context, db *DB, conn *sql.Conn) error {
	for tries := 0; ; tries++ {
		var locked bool
		if err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, migrationLock).Scan(&locked); err != nil {
			return err
		}
		if locked {
			_, err := conn.ExecContext(ctx, `SET lock_timeout = 0; SET statement_timeout = 0`)
			return err
		}
		if tries == 0 {
			db.log.Info("waiting for another process that migrates the database")
		}
		if err := pause(ctx, lockInterval); err != nil {
			return err
		}
	}
}

func unlockAfterMigration(ctx context.Context, conn *sql.Conn) error {
	_, resetErr := conn.ExecContext(ctx, `RESET lock_timeout; RESET statement_timeout`)
	_, unlockErr := conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, migrationLock)
	return errors.Join(resetErr, unlockErr)
}
