package user

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// All returns the members of every tenant, or of the one named, for an
// operator.
func (u *Users) All(ctx context.Context, tenantID string) ([]doorward.User, error) {
	if tenantID == "" {
		return u.db.Read().AllUsers(ctx)
	}
	return u.db.Read().Users(ctx, tenantID)
}

// Find returns the memberships that an operator means by an address, or a user
// id, and perhaps a tenant id. Errors: not_found.
func (u *Users) Find(ctx context.Context, who, tenantID string) ([]doorward.User, error) {
	id, err := u.accountID(ctx, who)
	if err != nil {
		return nil, err
	}
	all, err := u.db.Read().Memberships(ctx, id)
	if err != nil {
		return nil, err
	}
	var found []doorward.User
	for _, m := range all {
		if tenantID == "" || m.TenantID == tenantID {
			found = append(found, m)
		}
	}
	if len(all) == 0 {
		return nil, doorward.Fail(doorward.CodeNotFound, "Nobody with the address or id %s is in a tenant. \"doorward user list\" shows all.", who)
	}
	if len(found) == 0 {
		return nil, doorward.Fail(doorward.CodeNotFound, "%s is not in that tenant. \"doorward user list\" shows who is where.", who)
	}
	return found, nil
}

func (u *Users) accountID(ctx context.Context, who string) (string, error) {
	email, err := mailaddr.Parse(who)
	if err != nil {
		return who, nil // an id
	}
	account, err := u.db.Read().AccountByEmail(ctx, email)
	if errors.Is(err, store.ErrNone) {
		return "", doorward.Fail(doorward.CodeNotFound, "No account has the address %s. \"doorward user list\" shows all.", email)
	}
	return account.ID, err
}
