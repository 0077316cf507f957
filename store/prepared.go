package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// openKeeping opens a SQLite pool whose connections prepare each statement once.
// Preparing is most of what a small query costs there (go test ./store -bench
// SessionByToken: four times the time without this). For PostgreSQL, pgx does the
// same.
func openKeeping(dsn string) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(keeper{connector}), nil
}

type keeper struct{ driver.Connector }

// Connect hides that of the driver.
func (k keeper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &keeping{conn: c.(conn), kept: map[string]driver.Stmt{}}, nil
}

// conn is what database/sql makes use of in the driver's connections.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// maxKept bounds what a connection keeps. The texts of this package are some two
// hundred; a text beyond is prepared for each use.
const maxKept = 256

// keeping is a connection that keeps what it has prepared. database/sql uses it
// from one goroutine at a time. A statement is taken out while it runs: the same
// text may be wanted again before the rows of the first are read.
type keeping struct {
	conn
	kept map[string]driver.Stmt
}

func (k *keeping) take(ctx context.Context, query string) (driver.Stmt, error) {
	if s := k.kept[query]; s != nil {
		delete(k.kept, query)
		return s, nil
	}
	return k.PrepareContext(ctx, query)
}

func (k *keeping) giveBack(query string, s driver.Stmt) error {
	if k.kept[query] != nil || len(k.kept) >= maxKept {
		return s.Close()
	}
	k.kept[query] = s
	return nil
}

// ExecContext is for database/sql.
func (k *keeping) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(ctx, args)
	return res, errors.Join(err, k.giveBack(query, s))
}

// QueryContext is for database/sql.
func (k *keeping) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, k.giveBack(query, s))
	}
	return &keptRows{rows, k, query, s}, nil
}

// Close ends the statements first: SQLite closes no file that one is open on.
func (k *keeping) Close() error {
	var errs []error
	for _, s := range k.kept {
		errs = append(errs, s.Close())
	}
	clear(k.kept)
	return errors.Join(append(errs, k.conn.Close())...)
}

// keptRows give their statement back when they are closed.
type keptRows struct {
	driver.Rows
	of        *keeping
	query     string
	statement driver.Stmt
}

// Close is for database/sql, which calls it once.
func (r *keptRows) Close() error {
	return errors.Join(r.Rows.Close(), r.of.giveBack(r.query, r.statement))
}
