package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// schemaNeeded is the number of this binary's newest migration.
var schemaNeeded = func() int64 {
	files, err := fs.Glob(schemaFiles, "schema/*.sql")
	if err != nil {
		panic(err)
	}
	newest, err := goose.NumericComponent(files[len(files)-1])
	if err != nil {
		panic(err)
	}
	return newest
}()

// ErrSchema means that this binary doesn't support the database's schema.
var ErrSchema = errors.New("unsupported schema")

// Migrate applies the missing migrations, under a lock: of two nodes that start at
// once one migrates and the other waits. A newer schema is not changed; it is
// ErrSchema if the binary doesn't support it. So is another program's SQLite database.
func (db *DB) Migrate(ctx context.Context) error {
	return db.engine.exclusive(ctx, db, func() error {
		have, err := db.schema(ctx)
		if err != nil {
			return err
		}
		if have > schemaNeeded {
			return db.checkNewer(ctx, have)
		}
		if have == 0 {
			if err := db.refuseForeign(ctx); err != nil {
				return err
			}
		}
		return db.up(ctx)
	})
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

const (
	// migrationLockTimeout is how long a migration waits for a lock, while all queries queue
	// behind it: a fraction of the 2 s in which a check is answered.
	migrationLockTimeout = 300 * time.Millisecond
	// A migration that did not get its lock is retried every retryInterval, for retryTimeout.
	retryInterval, retryTimeout = time.Second, time.Minute
)

// up applies the missing migrations. The caller has the lock of engine.exclusive: Goose takes
// its own lock too late, when it has created its table of versions.
//
// A change to a table waits for its readers, and later queries queue behind it: during a
// dump of an hour no check could be answered. So the wait is short and is retried.
func (db *DB) up(ctx context.Context) error {
	pool := db.write
	if db.engine.migrator != nil {
		pool = db.engine.migrator()
		defer pool.Close()
	}
	for began := time.Now(); ; {
		err := upOnce(ctx, db.engine.dialect, pool)
		switch {
		case err == nil || !db.engine.lockTimedOut(err):
			return fault(err)
		case time.Since(began) > retryTimeout:
			return fault(fmt.Errorf("another program, such as a backup, has held a table for %v; try again when it is done: %w", retryTimeout, err))
		}
		select {
		case <-ctx.Done():
			return fault(ctx.Err())
		case <-time.After(retryInterval):
		}
	}
}

// upOnce runs each migration in its own transaction.
func upOnce(ctx context.Context, dialect database.Dialect, pool *sql.DB) error {
	files, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, pool, files)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err = p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

const sqlSchema = `SELECT coalesce(max(version_id), 0) FROM goose_db_version`

// Schema is the number of the newest migration in the database, 0 without any.
// Errors: ErrSchema (with the number) for a newer schema that this binary doesn't
// support, unavailable.
func (db *DB) Schema(ctx context.Context) (have int64, err error) {
	if have, err = db.schema(ctx); err == nil && have > schemaNeeded {
		err = db.checkNewer(ctx, have)
	}
	return have, err
}

// schema returns the number of the newest migration in the database, 0 without any. It doesn't
// use Goose, which would create its table.
func (db *DB) schema(ctx context.Context) (int64, error) {
	tables, err := one(ctx, db.Read(), countColumn, db.engine.hasMigrations)
	if err != nil || tables == 0 {
		return 0, err
	}
	return one(ctx, db.Read(), int64Column, sqlSchema)
}

// exclusivePostgres holds an advisory lock on its own connection: the server would
// abort a transaction that is open for so long.
func exclusivePostgres(ctx context.Context, db *DB, fn func() error) (err error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return fault(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, migrationLock); err != nil {
		return fault(fmt.Errorf("lock for migration: %w", err))
	}
	defer func() {
		// Also when ctx has ended: the connection goes back to the pool, and would keep the lock.
		_, unlockErr := conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, migrationLock)
		err = errors.Join(err, fault(unlockErr))
	}()
	return fn()
}

// migrationLock is "doorward" in ASCII; advisory locks are numbers.
const migrationLock int64 = 0x646f6f7277617264
