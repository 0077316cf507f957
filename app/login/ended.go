package login

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// checkEnded refuses a sign-in by a connection that was disabled since it began, or whose provider has ended the
// person's sign-ins since, or those of its own session. The caller has locked tenant and account, as the one who ends them
// does: it has committed, or deletes the session that this one opens. Errors: sign_on_refused, unavailable.
func (e entry) checkEnded(ctx context.Context, tx *access.Tx) error {
	p := e.proof
	if p.Issuer == doorward.OwnIssuer {
		return nil
	}
	ended := []string{doorward.EndedEverybody, doorward.EndedUser(p.Account.ID)}
	if p.ProviderSession != "" {
		ended = append(ended, doorward.EndedSession(p.ProviderSession))
	}
	for _, who := range ended {
		isEnded, err := tx.SignInsEnded(ctx, string(p.Issuer), who, p.BegunAt)
		if err != nil {
			return err
		}
		if isEnded {
			return &doorward.Error{Code: doorward.CodeSignOnRefused, Check: checkState}
		}
	}
	return nil
}

// checkState is what the protocol calls it: a sign-in that is over.
const checkState = "state"
