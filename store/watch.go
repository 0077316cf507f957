package store

import (
	"context"
	"database/sql"

	"github.com/doorward/doorward/store/internal/rows"
)

// Watch calls fn with the text of each statement that a Reader or a Tx has run without an error.
// Only tests call it, before anything else uses db.
func (db *DB) Watch(fn func(query string)) { db.watch = fn }

// watched calls fn with each statement that has run.
type watched struct {
	rows.Querier
	fn func(query string)
}

func (w watched) note(query string, err error) {
	if err == nil {
		w.fn(query)
	}
}

// QueryContext implements rows.Querier.
func (w watched) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	all, err := w.Querier.QueryContext(ctx, query, args...)
	w.note(query, err)
	return all, err
}

// QueryRowContext implements rows.Querier.
func (w watched) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	row := w.Querier.QueryRowContext(ctx, query, args...)
	w.note(query, row.Err())
	return row
}

// ExecContext implements rows.Querier.
func (w watched) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	res, err := w.Querier.ExecContext(ctx, query, args...)
	w.note(query, err)
	return res, err
}
