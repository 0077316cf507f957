package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// Reader has all queries that change nothing. A Tx has them too, inside its
// transaction.
type Reader struct{ q querier }

// querier is a connection pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// columns lists where the columns of a row of T are scanned to.
type columns[T any] func(*T) []any

func textColumn(s *string) []any { return []any{s} }

// one returns the single row of query, or ErrNone.
func one[T any](ctx context.Context, r Reader, cols columns[T], query string, args ...any) (T, error) {
	var v T
	err := r.q.QueryRowContext(ctx, query, args...).Scan(cols(&v)...)
	if errors.Is(err, sql.ErrNoRows) {
		return v, ErrNone
	}
	return v, fault(err)
}

// list returns all rows of query.
func list[T any](ctx context.Context, r Reader, cols columns[T], query string, args ...any) ([]T, error) {
	var all []T
	err := each(ctx, r, cols, func(v T) error { all = append(all, v); return nil }, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// each calls fn with every row of query, one at a time, until it fails, and
// returns its error as it is. fn may ask the same transaction nothing: its
// connection is busy with the rows.
func each[T any](ctx context.Context, r Reader, cols columns[T], fn func(T) error, query string, args ...any) error {
	rows, err := r.q.QueryContext(ctx, query, args...)
	if err != nil {
		return fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(cols(&v)...); err != nil {
			return fault(err)
		}
		if err := fn(v); err != nil {
			return err
		}
	}
	return fault(rows.Err())
}

// page cuts rows, of which one more was asked for than the window has, to the
// window, and says where the list goes on and where it has begun. The rows of a
// window that lies before a row come the nearest first.
func page[T any](rows []T, w doorward.Window, at func(T) doorward.Position) doorward.Page[T] {
	more := len(rows) > w.Limit
	if more {
		rows = rows[:w.Limit]
	}
	if w.Back() {
		slices.Reverse(rows)
	}
	p := doorward.Page[T]{Items: rows}
	if len(rows) == 0 {
		return p
	}
	first, last := at(rows[0]), at(rows[len(rows)-1])
	if w.Back() && more || w.After != (doorward.Position{}) {
		p.Prev = &first
	}
	if more || w.Back() {
		p.Next = &last
	}
	return p
}

// edge is the row that the window begins behind, or ends before.
func edge(w doorward.Window) doorward.Position {
	if w.Back() {
		return w.Before
	}
	return w.After
}

// exec runs a statement and returns how many rows it changed.
func (tx *Tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := tx.q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, fault(err)
	}
	n, err := res.RowsAffected()
	return n, fault(err)
}

// run runs a statement whose row count says nothing.
func (tx *Tx) run(ctx context.Context, query string, args ...any) error {
	_, err := tx.exec(ctx, query, args...)
	return err
}

// hit runs a conditional statement and reports whether it changed a row: the
// way to let something succeed at most once.
func (tx *Tx) hit(ctx context.Context, query string, args ...any) (bool, error) {
	n, err := tx.exec(ctx, query, args...)
	return n > 0, err
}

// micros is how an instant is stored.
func micros(t time.Time) int64 { return t.UnixMicro() }

// instant scans a stored instant.
type instant time.Time

// Scan is for database/sql.
func (i *instant) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*i = instant(doorward.Instant(time.UnixMicro(n)))
	return nil
}

// maybe scans an instant that may be absent.
type maybe struct{ to **time.Time }

// Scan is for database/sql.
func (m maybe) Scan(v any) error {
	if v == nil {
		*m.to = nil
		return nil
	}
	var i instant
	if err := i.Scan(v); err != nil {
		return err
	}
	t := time.Time(i)
	*m.to = &t
	return nil
}

// nullable stores an empty string as NULL, and textOrNone scans it back.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// storable makes text of any bytes one that both databases take: PostgreSQL
// refuses NUL and what is not UTF-8.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

type textOrNone struct{ to *string }

// Scan is for database/sql.
func (t textOrNone) Scan(v any) error {
	var s sql.NullString
	err := s.Scan(v)
	*t.to = s.String
	return err
}
