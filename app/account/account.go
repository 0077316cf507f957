// Package account lets people change the address of their account and export the data that
// Doorward has about them.
//
// Anybody who reads mail to the address can reset the password. So a change must be
// confirmed from the new mailbox, in a session of the account, and can be undone from the
// old one for a week: see email.go.
package account

import (
	"context"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/store"
)

// Accounts is the feature. Make it with New.
type Accounts struct {
	writer   *access.Writer
	db       *store.DB
	verifier *proof.Verifier
	lifetime store.SessionLifetime
	owners   member.Owners
}

// New returns the feature. lifetime determines which sessions have
// expired; these are left out of the counts of ended sessions. owners says who learns of tenants
// without an OWNER.
func New(writer *access.Writer, db *store.DB, verifier *proof.Verifier, lifetime store.SessionLifetime, owners member.Owners) *Accounts {
	return &Accounts{writer, db, verifier, lifetime, owners}
}

// Sweep deletes changes of addresses that can no longer be undone.
func (a *Accounts) Sweep(ctx context.Context) error {
	return a.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteOldEmailChanges(ctx, limit) })
}
