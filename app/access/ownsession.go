package access

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// RequireOwnSession refuses to open a session of the membership by what the account itself proves, where the
// tenant's sign-on comes first. A managed account has a passkey as a second factor only. After its first
// password, which takes no more than a mailbox, its person signs in by the connection once. What the tenant
// demands of all its members is decided apart (decide.SignOn). Errors: sso_required, managed_account,
// unavailable.
func RequireOwnSession(ctx context.Context, read store.Reader, u doorward.User) error {
	if u.ManagedBy == "" && u.ManagedUntil != u.TenantID {
		return nil
	}
	connection, err := read.SigningConnection(ctx, u.TenantID, u.ID)
	switch {
	case err != nil:
		return err
	case connection != "":
		return &doorward.Error{Code: doorward.CodeSSORequired, ConnectionID: connection}
	case u.ManagedBy != "":
		return doorward.Fail(doorward.CodeManagedAccount, "")
	}
	return nil
}

// opensByPassword reports whether an active tenant opens a session by the password of the user, as a sign-in
// at now would decide.
func opensByPassword(ctx context.Context, read store.Reader, userID string, now time.Time) (bool, error) {
	memberships, err := read.Memberships(ctx, userID)
	if err != nil {
		return false, err
	}
	for _, m := range memberships {
		if opens, err := admitsPassword(ctx, read, m, now); err != nil || opens {
			return opens, err
		}
	}
	return false, nil
}

func admitsPassword(ctx context.Context, read store.Reader, m doorward.User, now time.Time) (bool, error) {
	if !m.IsActive() || !m.HasPassword {
		return false, nil
	}
	err := RequireOwnSession(ctx, read, m)
	if doorward.HasCode(err, doorward.CodeSSORequired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	policy, err := read.SSOPolicy(ctx, m.TenantID, now)
	if err != nil || policy.Mode != doorward.SSORequired {
		return err == nil, err
	}
	member, err := read.SSOMember(ctx, m.TenantID, m.ID)
	return decide.SignOn(policy, member, doorward.Assurance{AAL: 1}).Err("") == nil, err
}
