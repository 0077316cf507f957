package sqlitefile

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"

	"modernc.org/sqlite"
)

// OpenCaching opens a pool whose connections prepare each statement once. Preparing is
// most of what a small query costs (go test ./store -bench SessionByToken: four times
// the time without this). For PostgreSQL, pgx does the same.
func OpenCaching(dsn string) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(cachingConnector{connector}), nil
}

type cachingConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (k cachingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &cachingConn{conn: c.(conn), idle: map[string]driver.Stmt{}}, nil
}

// conn is the part of the driver's connections that database/sql uses.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// maxIdle bounds the statements that a connection caches; further ones are prepared for each
// use. Package store has some four hundred.
const maxIdle = 512

// cachingConn caches the statements that it has prepared. database/sql uses it from one
// goroutine at a time. A statement leaves the cache while it runs: the same text may be
// run again before the rows of the first are read.
type cachingConn struct {
	conn
	idle map[string]driver.Stmt
}

// take returns a statement for the caller alone, who must release it.
func (c *cachingConn) take(ctx context.Context, query string) (driver.Stmt, error) {
	if s := c.idle[query]; s != nil {
		delete(c.idle, query)
		return s, nil
	}
	return c.PrepareContext(ctx, limitParameter.ReplaceAllString(query, "${0}+0"))
}

// The plan depends on the value of a limit that is a parameter, so SQLite prepares the statement
// again for each value, even an equal one. For a sum it doesn't, so take adds 0.
var limitParameter = regexp.MustCompile(`\bLIMIT \$\d+`)

func (c *cachingConn) release(query string, s driver.Stmt) error {
	if c.idle[query] != nil || len(c.idle) >= maxIdle {
		return s.Close()
	}
	c.idle[query] = s
	return nil
}

// ExecContext implements driver.ExecerContext.
func (c *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(ctx, args)
	return res, errors.Join(err, c.release(query, s))
}

// QueryContext implements driver.QueryerContext.
func (c *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, c.release(query, s))
	}
	return &cachedRows{rows, c, query, s}, nil
}

// Close closes the statements first: SQLite keeps the file open while it has any.
func (c *cachingConn) Close() error {
	var errs []error
	for _, s := range c.idle {
		errs = append(errs, s.Close())
	}
	clear(c.idle)
	return errors.Join(append(errs, c.conn.Close())...)
}

// cachedRows release their statement when they are closed.
type cachedRows struct {
	driver.Rows
	conn      *cachingConn
	query     string
	statement driver.Stmt
}

// Close implements driver.Rows. database/sql calls it once.
func (r *cachedRows) Close() error {
	return errors.Join(r.Rows.Close(), r.conn.release(r.query, r.statement))
}
