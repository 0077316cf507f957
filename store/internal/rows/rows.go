// Package rows runs statements and scans their results, for store and the packages
// below it: store/lease and store/transfer have their own statements.
//
// Packages outside of store can't import it, so they can't use the [Conn] that
// every store.Reader and store.Tx embeds; they call store's methods.
package rows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/doorward/doorward"
)

// ErrNone is returned when the one row asked for doesn't exist.
var ErrNone = errors.New("store: no such row")

// Querier is a connection pool or a transaction of database/sql.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Conn is where statements run.
type Conn struct{ q Querier }

// NewConn returns a Conn on a pool or a transaction.
func NewConn(q Querier) Conn { return Conn{q} }

// Fields lists the fields of T that the columns of a row are scanned into.
type Fields[T any] func(*T) []any

// One returns the single row of query, or ErrNone. Errors: unavailable.
func One[T any](ctx context.Context, c Conn, dest Fields[T], query string, args ...any) (T, error) {
	var v T
	err := c.q.QueryRowContext(ctx, query, args...).Scan(dest(&v)...)
	if errors.Is(err, sql.ErrNoRows) {
		return v, ErrNone
	}
	return v, Fault(err)
}

// List returns all rows of query. Errors: unavailable.
func List[T any](ctx context.Context, c Conn, dest Fields[T], query string, args ...any) ([]T, error) {
	var all []T
	err := Each(ctx, c, dest, func(v T) error { all = append(all, v); return nil }, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Each calls fn with every row of query, one at a time, until fn fails, and returns fn's
// error unchanged. fn must run no other query in the same transaction: the connection is busy
// with the rows.
func Each[T any](ctx context.Context, c Conn, dest Fields[T], fn func(T) error, query string, args ...any) error {
	all, err := Query(ctx, c, query, args...)
	if err != nil {
		return err
	}
	defer all.Close()
	for all.Next() {
		var v T
		if err := all.Scan(dest(&v)...); err != nil {
			return Fault(err)
		}
		if err := fn(v); err != nil {
			return err
		}
	}
	return Fault(all.Err())
}

// Query returns the rows of query, for the caller to scan and close.
func Query(ctx context.Context, c Conn, query string, args ...any) (*sql.Rows, error) {
	all, err := c.q.QueryContext(ctx, query, args...)
	return all, Fault(err)
}

// Exec runs a statement and returns how many rows it changed. Errors: unavailable.
func Exec(ctx context.Context, c Conn, query string, args ...any) (int64, error) {
	res, err := c.q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, Fault(err)
	}
	n, err := res.RowsAffected()
	return n, Fault(err)
}

// Fault turns an error of the database into unavailable, so that no caller can
// mistake it for a missing row. Nil stays nil.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	return doorward.Unavailable(fmt.Errorf("store: %w", err))
}
