package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// migration is one file of the folder schema. docs/upgrades.md says how one is written.
type migration struct {
	number     int64
	statements []string
}

// migrations are those of this binary, in their order. The first makes the whole schema.
var migrations = func() (all []migration) {
	files, err := fs.Glob(schemaFiles, "schema/*.sql")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		text, err := schemaFiles.ReadFile(file)
		if err != nil {
			panic(err)
		}
		number, err := strconv.ParseInt(strings.TrimPrefix(file, "schema/")[:4], 10, 64)
		if err != nil {
			panic(err)
		}
		all = append(all, migration{number, statementsOf(string(text))})
	}
	return all
}()

// firstSchema is the number of the first migration, schemaNeeded that of the newest.
var firstSchema, schemaNeeded = migrations[0].number, migrations[len(migrations)-1].number

var (
	stringOrComment = regexp.MustCompile(`'[^']*'|--[^\n]*`)
	statementText   = regexp.MustCompile(`((?:'[^']*'|[^;'])*);`)
)

// statementsOf returns the statements in a file, without comments.
func statementsOf(text string) (all []string) {
	text = stringOrComment.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "--") {
			return ""
		}
		return found
	})
	for _, m := range statementText.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.TrimSpace(m[1]))
	}
	return all
}

var (
	makesTable = regexp.MustCompile(`^CREATE TABLE (\w+)`)
	makesIndex = regexp.MustCompile(`^CREATE (UNIQUE )?INDEX (\w+) ON (\w+)`)
	dropsIndex = regexp.MustCompile(`^DROP INDEX (\w+)$`)
	// fillsBatch is a statement that changes some rows, and other ones when it is repeated.
	fillsBatch = regexp.MustCompile(`(?s)^(UPDATE|DELETE FROM|INSERT INTO) (\w+) .*\bLIMIT \d+\)?$`)
)

// split returns the statements that run in one transaction, and those that PostgreSQL runs
// after it, each on its own, so that they block nobody: indexes of tables that are there
// already, and batches.
func (m migration) split() (together, apart []string) {
	made := map[string]bool{}
	for _, s := range m.statements {
		if table := makesTable.FindStringSubmatch(s); table != nil {
			made[table[1]] = true
		}
		index := makesIndex.FindStringSubmatch(s)
		if index != nil && !made[index[3]] || dropsIndex.MatchString(s) || fillsBatch.MatchString(s) {
			apart = append(apart, s)
		} else {
			together = append(together, s)
		}
	}
	return together, apart
}

// migrator runs migrations on one connection. In PostgreSQL that connection holds the lock of
// engine.exclusive: if it breaks, no other node begins while a statement is still running.
type migrator struct {
	db   *DB
	conn *sql.Conn
}

const (
	// migrationLockTimeout is how long a migration waits for a lock, while all queries queue
	// behind it: a fraction of the 2 s in which a check is answered.
	migrationLockTimeout = 300 * time.Millisecond
	// A transaction that did not get its lock is retried every retryInterval, for retryTimeout.
	retryInterval, retryTimeout = time.Second, time.Minute
	// progressInterval is how often a migration that fills rows says how many.
	progressInterval = 5 * time.Second
)

const (
	sqlMigrationState  = `SELECT is_applied FROM goose_db_version WHERE version_id = $1`
	sqlRecordMigration = `INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, $2)`
	sqlFinishMigration = `UPDATE goose_db_version SET is_applied = $2 WHERE version_id = $1`
)

// up applies the missing migrations.
func (m migrator) up(ctx context.Context, all []migration) error {
	if err := m.makeVersions(ctx); err != nil {
		return err
	}
	for _, next := range all {
		if err := m.apply(ctx, next); err != nil {
			return fmt.Errorf("migration %d: %w", next.number, err)
		}
	}
	return nil
}

// makeVersions makes the table of versions. It is that of goose, which earlier commits used: its
// first row is the version 0.
func (m migrator) makeVersions(ctx context.Context) error {
	if tables, err := one(ctx, m.db.Read(), countColumn, m.db.engine.hasMigrations); err != nil || tables > 0 {
		return err
	}
	return m.transaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, m.db.engine.versions); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, sqlRecordMigration, 0, true)
		return err
	})
}

// apply applies a migration, or what is missing of it. is_applied is false from the commit of
// its transaction until the statements after that have succeeded; these can be repeated.
func (m migrator) apply(ctx context.Context, next migration) error {
	var complete bool
	err := m.conn.QueryRowContext(ctx, sqlMigrationState, next.number).Scan(&complete)
	isNew := errors.Is(err, sql.ErrNoRows)
	if complete || err != nil && !isNew {
		return err
	}
	together, apart := next.split()
	if m.db.engine.path != "" {
		together, apart = next.statements, nil
	}
	if isNew {
		if err := m.applyTogether(ctx, next.number, together, len(apart) == 0); err != nil {
			return err
		}
	}
	if len(apart) == 0 {
		return nil
	}
	for _, s := range apart {
		if err := m.runApart(ctx, s); err != nil {
			return err
		}
	}
	_, err = m.conn.ExecContext(ctx, sqlFinishMigration, next.number, true)
	return err
}

func (m migrator) applyTogether(ctx context.Context, number int64, statements []string, complete bool) error {
	return m.transaction(ctx, func(tx *sql.Tx) error {
		for _, s := range statements {
			run := func() (int64, error) { return changedRows(tx.ExecContext(ctx, s)) }
			var err error
			if fillsBatch.MatchString(s) {
				err = m.fill(ctx, s, run)
			} else {
				_, err = run()
			}
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, sqlRecordMigration, number, complete)
		return err
	})
}

// transaction runs fn in a transaction, and again while it does not get a lock.
//
// A change to a table waits for its readers, and later queries queue behind it: during a
// dump of an hour no check could be answered. So the wait is short and is retried.
func (m migrator) transaction(ctx context.Context, fn func(tx *sql.Tx) error) error {
	for began := time.Now(); ; {
		err := m.tryTransaction(ctx, fn)
		switch {
		case err == nil || !m.db.engine.lockTimedOut(err):
			return err
		case time.Since(began) > retryTimeout:
			return fmt.Errorf("another program, such as a backup, has held a table for %v; try again when it is done: %w", retryTimeout, err)
		}
		if err := pause(ctx, retryInterval); err != nil {
			return err
		}
	}
}

func (m migrator) tryTransaction(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := m.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if m.db.engine.path == "" {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d`, migrationLockTimeout.Milliseconds())); err != nil {
			return err
		}
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// runApart runs a statement outside of the migration's transaction, on PostgreSQL. Running it
// again after a failure does no harm.
func (m migrator) runApart(ctx context.Context, s string) error {
	if index := makesIndex.FindStringSubmatch(s); index != nil {
		return m.buildIndex(ctx, index[2], s)
	}
	if index := dropsIndex.FindStringSubmatch(s); index != nil {
		return m.dropIndex(ctx, index[1])
	}
	return m.fill(ctx, s, func() (rows int64, err error) {
		err = m.transaction(ctx, func(tx *sql.Tx) error {
			rows, err = changedRows(tx.ExecContext(ctx, s))
			return err
		})
		return rows, err
	})
}

// indexIsValid is false for an index whose building has failed, which nothing reads.
const indexIsValid = `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`

// buildIndex builds an index, without blocking writers, unless it is there already. It waits
// until all transactions that are open when it begins have ended.
func (m migrator) buildIndex(ctx context.Context, name, statement string) error {
	var valid bool
	err := m.conn.QueryRowContext(ctx, indexIsValid, name).Scan(&valid)
	switch {
	case valid || err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	case err == nil:
		if err := m.dropIndex(ctx, name); err != nil {
			return err
		}
	}
	m.db.log.Info("building an index", "index", name)
	_, err = m.conn.ExecContext(ctx, strings.Replace(statement, "INDEX", "INDEX CONCURRENTLY", 1))
	return err
}

func (m migrator) dropIndex(ctx context.Context, name string) error {
	m.db.log.Info("dropping an index", "index", name)
	_, err := m.conn.ExecContext(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+name)
	return err
}

// fill repeats a batch until it changes no row, and reports the progress.
func (m migrator) fill(ctx context.Context, statement string, batch func() (rows int64, err error)) error {
	table := fillsBatch.FindStringSubmatch(statement)[2]
	total, reported := int64(0), time.Time{}
	for {
		rows, err := batch()
		if err != nil {
			return err
		}
		total += rows
		if total > 0 && (rows == 0 || time.Since(reported) >= progressInterval) {
			m.db.log.Info("filling rows", "table", table, "rows", total, "complete", rows == 0)
			reported = time.Now()
		}
		if rows == 0 {
			return ctx.Err()
		}
	}
}

func changedRows(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// pause waits, or returns the error of a context that ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
