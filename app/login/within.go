package login

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
)

// Within is what another feature does in the transaction of a sign-in.
type Within struct {
	// Before runs first. It may make the account of the proof, and its membership.
	Before func(context.Context, *access.Tx) error
	// Use, unless nil, uses up what proved the account, under the lock on it.
	Use func(context.Context, *access.Tx) error
	// Changed is the error if the account has changed since it was read.
	Changed error
}

// EnterWith is Enter for the word of a connection, with what another feature writes in the same transaction:
// if the sign-in is refused, nothing of that is written. Errors: those of Within and of Next.
func (l *Login) EnterWith(ctx context.Context, by doorward.Caller, proved proof.Proof, w Within) (Outcome, error) {
	return l.enter(ctx, entry{by: by, proof: proved, tenantID: proved.TenantID, before: w.Before, use: w.Use, changed: w.Changed})
}
