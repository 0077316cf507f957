package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store/internal/rows"
)

// Reader has all queries that change nothing. A Tx has them too, inside its
// transaction.
type Reader struct {
	rows.Conn
	rules  *rulesCache
	engine *engine // for the few statements that each has of its own
}

// reader returns the queries, run on a pool or in a transaction.
func (db *DB) reader(q rows.Querier) Reader {
	if db.watch != nil {
		q = watched{q, db.watch}
	}
	return Reader{Conn: rows.NewConn(q), rules: db.rules, engine: &db.engine}
}

// fields lists the fields of T that the columns of a row are scanned into.
type fields[T any] = rows.Fields[T]

func textField(s *string) []any { return []any{s} }

// one returns the single row of query with its rules (see withRules), or ErrNone.
func one[T any](ctx context.Context, r Reader, dest fields[T], query string, args ...any) (T, error) {
	v, err := rows.One(ctx, r.Conn, dest, query, args...)
	if err == nil {
		err = withRules(ctx, r, &v)
	}
	return v, err
}

// list returns all rows of query with their rules.
func list[T any](ctx context.Context, r Reader, dest fields[T], query string, args ...any) ([]T, error) {
	all, err := rows.List(ctx, r.Conn, dest, query, args...)
	for i := range all {
		if err == nil {
			err = withRules(ctx, r, &all[i])
		}
	}
	return all, err
}

// each is rows.Each. It doesn't read the rules of the rows.
func each[T any](ctx context.Context, r Reader, dest fields[T], fn func(T) error, query string, args ...any) error {
	return rows.Each(ctx, r.Conn, dest, fn, query, args...)
}

// page makes a page of up to w.Limit+1 rows: the extra row shows that the list
// continues. For a window that goes back, all has the rows in reverse order.
func page[T any](all []T, w doorward.Window, positionOf func(T) doorward.Position) doorward.Page[T] {
	more := len(all) > w.Limit
	if more {
		all = all[:w.Limit]
	}
	if w.IsBackward() {
		slices.Reverse(all)
	}
	p := doorward.Page[T]{Items: all}
	if len(all) == 0 {
		return p
	}
	first, last := positionOf(all[0]), positionOf(all[len(all)-1])
	if w.IsBackward() && more || w.After != (doorward.Position{}) {
		p.Prev = &first
	}
	if more || w.IsBackward() {
		p.Next = &last
	}
	return p
}

// exec runs a statement and returns how many rows it changed.
func (tx *Tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	return rows.Exec(ctx, tx.Conn, query, args...)
}

// run runs a statement whose row count doesn't matter.
func (tx *Tx) run(ctx context.Context, query string, args ...any) error {
	_, err := tx.exec(ctx, query, args...)
	return err
}

// affected runs a conditional statement and reports whether it changed a row. So of
// concurrent callers only one succeeds.
func (tx *Tx) affected(ctx context.Context, query string, args ...any) (bool, error) {
	n, err := tx.exec(ctx, query, args...)
	return n > 0, err
}

// micros converts a time to its stored form.
func micros(t time.Time) int64 { return t.UnixMicro() }

// storedTime scans a stored time.
type storedTime time.Time

// Scan implements sql.Scanner.
func (i *storedTime) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*i = storedTime(doorward.Instant(time.UnixMicro(n)))
	return nil
}

// nullableTime scans an instant that may be absent.
type nullableTime struct{ dest **time.Time }

// Scan implements sql.Scanner.
func (m nullableTime) Scan(v any) error {
	if v == nil {
		*m.dest = nil
		return nil
	}
	var i storedTime
	if err := i.Scan(v); err != nil {
		return err
	}
	t := time.Time(i)
	*m.dest = &t
	return nil
}

// optionalTime is an instant that may be absent in a column, as NULL or 0.
type optionalTime struct{ dest *time.Time }

// Scan implements sql.Scanner.
func (o optionalTime) Scan(v any) error {
	*o.dest = time.Time{}
	if n, ok := v.(int64); v == nil || ok && n == 0 {
		return nil
	}
	return (*storedTime)(o.dest).Scan(v)
}

// Value implements driver.Valuer.
func (o optionalTime) Value() (driver.Value, error) { return orNull(microsOrZero(*o.dest)), nil }

// microsOrZero stores the zero Time as 0.
func microsOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return micros(t)
}

// microsOrNone stores an absent time as 0.
func microsOrNone(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return micros(*t)
}

// nullable stores an empty string as NULL, and nullableText scans it back.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// storable turns any bytes into text that both databases accept: PostgreSQL refuses NUL and
// invalid UTF-8.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

// nullableText scans a text that may be absent, as empty.
type nullableText struct{ dest *string }

// Scan implements sql.Scanner.
func (t nullableText) Scan(v any) error {
	var s sql.NullString
	err := s.Scan(v)
	*t.dest = s.String
	return err
}
