package store

import (
	"context"
	"time"
)

// ClientAddress is a column with the address of a client that may get old.
type ClientAddress int

// The columns, except that of events. Those of other tables end with their rows or are blanked within 90 days, see
// the test of this list.
const (
	AddressOfSession ClientAddress = iota // where it was opened
	AddressOfKey                          // where an API key was used last
)

// ClientAddresses are all columns.
var ClientAddresses = []ClientAddress{AddressOfSession, AddressOfKey}

const (
	sqlOldSessionAddresses   = `SELECT id FROM sessions WHERE id > $1 AND created_at <= $2 AND ip <> '' ORDER BY id LIMIT $3`
	sqlForgetSessionAddress  = `UPDATE sessions SET ip = '' WHERE id = $1 AND created_at <= $2`
	sqlOldAPIKeyAddresses    = `SELECT id FROM api_keys WHERE id > $1 AND last_used_at <= $2 AND last_used_ip <> '' ORDER BY id LIMIT $3`
	sqlForgetAPIKeyAddresses = `UPDATE api_keys SET last_used_ip = '' WHERE id = $1 AND last_used_at <= $2`
)

// OldAddresses returns the ids of up to limit rows that are greater than after, in order, and have the address of a
// client that was written until a time. It may read the whole table, so it is no part of a transaction for which others wait.
func (r Reader) OldAddresses(ctx context.Context, of ClientAddress, after string, until time.Time, limit int) ([]string, error) {
	query := sqlOldSessionAddresses
	if of == AddressOfKey {
		query = sqlOldAPIKeyAddresses
	}
	return list(ctx, r, textField, query, after, micros(until), limit)
}

// ForgetAddresses blanks those of the rows' addresses that were written until the time.
func (tx *Tx) ForgetAddresses(ctx context.Context, of ClientAddress, ids []string, until time.Time) error {
	query := sqlForgetSessionAddress
	if of == AddressOfKey {
		query = sqlForgetAPIKeyAddresses
	}
	for _, id := range ids {
		if err := tx.run(ctx, query, id, micros(until)); err != nil {
			return err
		}
	}
	return nil
}
