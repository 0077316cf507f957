package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// schemaNeeded is the schema that this binary needs: the number of the newest
// migration.
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

// ErrSchema is what Migrate, CheckSchema and OwnSchema return when this binary
// can't work on the database's schema.
var ErrSchema = errors.New("schema not as needed")

// Migrate brings the schema up to what this binary needs, under a lock: of two
// nodes that start at once one migrates and the other waits. A schema that is
// newer than the binary is left alone; it is ErrSchema when the binary can't go
// on with it.
func (db *DB) Migrate(ctx context.Context) error {
	return db.engine.exclusive(ctx, db, func() error {
		have, err := db.schema(ctx)
		if err != nil {
			return err
		}
		if have > schemaNeeded {
			return db.goesOn(ctx, have)
		}
		return db.up(ctx)
	})
}

// CheckSchema returns nil when the schema is the one that this binary needs, or
// a newer one that it can go on with; else an ErrSchema that says what to do. It
// changes nothing.
func (db *DB) CheckSchema(ctx context.Context) error {
	have, err := db.schema(ctx)
	switch {
	case err != nil:
		return err
	case have > schemaNeeded:
		return db.goesOn(ctx, have)
	case have < schemaNeeded:
		return fmt.Errorf("store: the database has schema %d, this binary needs %d: run \"doorward migrate\", or \"doorward serve\" without --migrate=false: %w", have, schemaNeeded, ErrSchema)
	}
	return nil
}

// OwnSchema is CheckSchema for those who must know every table and column there
// is: to them a newer schema is ErrSchema, whether they can go on with it or not.
func (db *DB) OwnSchema(ctx context.Context) error {
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

// goesOn returns nil when this binary can go on with a schema that is newer than
// it: what was added since is in nobody's way, and nothing was taken away that
// it needs. The migrations themselves keep the record of that.
func (db *DB) goesOn(ctx context.Context, have int64) error {
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
	// lockWithin is how long a migration waits for a lock, and everybody else
	// behind it: a fraction of the 2 s in which a check is answered.
	lockWithin = 300 * time.Millisecond
	// yieldEvery is when it is tried again, yieldFor until when.
	yieldEvery, yieldFor = time.Second, time.Minute
)

// up must hold the lock on migrations. Goose knows a lock of its own, but takes
// it only after it has made its table of versions.
//
// A change to a table waits for whoever reads it, and everybody who comes later
// waits behind it: beside a dump, which reads for an hour, nobody could be
// checked. So the wait is cut short, others go first, and it is tried again.
func (db *DB) up(ctx context.Context) error {
	on := db.write
	if db.engine.migrator != nil {
		on = db.engine.migrator()
		defer on.Close()
	}
	for began := time.Now(); ; {
		err := upOnce(ctx, db.engine.dialect, on)
		switch {
		case err == nil || !db.engine.behind(err):
			return fault(err)
		case time.Since(began) > yieldFor:
			return fault(fmt.Errorf("another program, such as a backup, has held a table for %v; try again when it is done: %w", yieldFor, err))
		}
		select {
		case <-ctx.Done():
			return fault(ctx.Err())
		case <-time.After(yieldEvery):
		}
	}
}

// upOnce does each migration in a transaction of its own.
func upOnce(ctx context.Context, dialect database.Dialect, on *sql.DB) error {
	files, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, on, files)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err = p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

const sqlSchema = `SELECT coalesce(max(version_id), 0) FROM goose_db_version`

// Schema is the number of the newest migration in the database, 0 without any. It is
// ErrSchema besides when the schema is newer than this binary can go on with. Other
// errors: unavailable.
func (db *DB) Schema(ctx context.Context) (have int64, err error) {
	if have, err = db.schema(ctx); err == nil && have > schemaNeeded {
		err = db.goesOn(ctx, have)
	}
	return have, err
}

// schema doesn't ask goose, which would make its table first.
func (db *DB) schema(ctx context.Context) (int64, error) {
	tables, err := one(ctx, db.Read(), countColumn, db.engine.versioned)
	if err != nil || tables == 0 {
		return 0, err
	}
	return one(ctx, db.Read(), int64Column, sqlSchema)
}

// exclusivePostgres holds an advisory lock meanwhile, on a connection of its
// own: a transaction open for so long would be cut by the server.
func exclusivePostgres(ctx context.Context, db *DB, do func() error) (err error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return fault(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, migrationLock); err != nil {
		return fault(fmt.Errorf("lock for migration: %w", err))
	}
	defer func() {
		// Not ctx: a lock kept by a pooled connection would outlive its end.
		_, unlockErr := conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, migrationLock)
		err = errors.Join(err, fault(unlockErr))
	}()
	return do()
}

// migrationLock is "doorward" in ASCII; advisory locks are numbers.
const migrationLock int64 = 0x646f6f7277617264
