package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// ErrSchema is what Migrate and CheckSchema return when the database's schema
// isn't the one that this binary needs.
var ErrSchema = errors.New("schema not as needed")

// migrator is goose behind a lock that holds across processes.
type migrator struct {
	*goose.Provider
	locked func(func() error) error
}

// Migrate brings the schema up to what this binary needs, under a lock: of two
// nodes that start at once one migrates and the other waits. A schema that is
// newer than the binary is left alone and is ErrSchema.
func (db *DB) Migrate(ctx context.Context) error {
	m, err := db.engine.migrations(db)
	if err != nil {
		return fmt.Errorf("store: migrations: %w", err)
	}
	return m.locked(func() error {
		have, want, err := versions(ctx, m)
		if err != nil {
			return err
		}
		if have > want {
			return tooNew(have, want)
		}
		if _, err := m.Up(ctx); err != nil {
			return fmt.Errorf("store: migrate: %w", err)
		}
		return nil
	})
}

// CheckSchema returns nil when the schema is the one that this binary needs,
// else an ErrSchema that says what to do.
func (db *DB) CheckSchema(ctx context.Context) error {
	m, err := db.engine.migrations(db)
	if err != nil {
		return fmt.Errorf("store: migrations: %w", err)
	}
	have, want, err := versions(ctx, m)
	switch {
	case err != nil:
		return err
	case have > want:
		return tooNew(have, want)
	case have < want:
		return fmt.Errorf("store: the database has schema %d, this binary needs %d: run \"doorward migrate\", or \"doorward serve\" without --migrate=false: %w", have, want, ErrSchema)
	}
	return nil
}

func tooNew(have, want int64) error {
	return fmt.Errorf("store: the database has schema %d, newer than the %d this binary knows: run the newer doorward that made it: %w", have, want, ErrSchema)
}

func versions(ctx context.Context, m migrator) (have, want int64, err error) {
	have, want, err = m.GetVersions(ctx)
	if err != nil {
		err = fault(err)
	}
	return have, want, err
}

func provider(db *DB, dialect database.Dialect, opts ...goose.ProviderOption) (*goose.Provider, error) {
	files, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, db.write, files, opts...)
}

func postgresMigrations(db *DB) (migrator, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	if err != nil {
		return migrator{}, err
	}
	p, err := provider(db, goose.DialectPostgres, goose.WithSessionLocker(locker))
	return migrator{p, func(do func() error) error { return do() }}, err
}

// sqliteMigrations locks a file beside the database: goose opens a transaction
// per migration, too late to keep a second process from starting the same one.
func sqliteMigrations(path string) func(*DB) (migrator, error) {
	return func(db *DB) (migrator, error) {
		p, err := provider(db, goose.DialectSQLite3)
		return migrator{p, func(do func() error) error { return withFileLock(path+".lock", do) }}, err
	}
}

func withFileLock(path string, do func() error) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("store: lock for migration: %w", err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("store: lock for migration: %w", err)
	}
	return do() // closing the file gives the lock back
}
