package storetest

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

// Events returns the audit trail of a tenant, oldest event first; that of the
// installation for an empty id.
func Events(ctx context.Context, read store.Reader, tenantID string) (all []doorward.Event, err error) {
	err = read.EachEvent(ctx, tenantID, func(e doorward.Event) error { all = append(all, e); return nil })
	return all, err
}

// CountMails counts the mails in a state.
func CountMails(ctx context.Context, read store.Reader, state doorward.Delivery) (int, error) {
	return rows.One(ctx, read.Conn, func(n *int) []any { return []any{n} }, `SELECT count(*) FROM mails WHERE state = $1`, state)
}
