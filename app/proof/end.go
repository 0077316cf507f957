package proof

import (
	"context"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Keep is what EndAccess leaves to the person who asks for it.
type Keep struct {
	SessionID string // of the session that goes on; empty for none
	Browser   []byte // that stays known, see CurrentDevice; nil for none
}

// EndAccess ends what lets somebody into the account, whichever tenant it was for: its sessions, the
// trust in its browsers, and what is under way with a proof from before, such as a sign-in that waits
// for its second factor or a change of the address. If no session stays, it also ends factors that are
// being set up, since somebody else may have begun that. It locks the account. The caller records the
// ended sessions, which it counts by tenant; see access.Tx.RecordEndedByTenant. Mailed links
// stay: they end with what they are for.
func EndAccess(ctx context.Context, tx *access.Tx, life store.SessionLifetime, accountID string, keep Keep) (ended map[string]int64, err error) {
	// First, since this locks the account: a switch that holds the lock then ends before the sessions do.
	if err := tx.RaiseCredentialGeneration(ctx, accountID, keep.Browser); err != nil {
		return nil, err
	}
	if keep.SessionID == "" {
		if err := tx.DeleteUnconfirmedFactors(ctx, accountID); err != nil {
			return nil, err
		}
	}
	return tx.DeleteUserSessions(ctx, life, accountID, keep.SessionID)
}
