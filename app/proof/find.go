package proof

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// FindAccount returns the account of an address as somebody has typed it. Errors: not_found.
func FindAccount(ctx context.Context, read store.Reader, address string) (doorward.Account, error) {
	email, err := mailaddr.Parse(address)
	if err != nil {
		return doorward.Account{}, doorward.Fail(doorward.CodeNotFound, "This is %s.", err)
	}
	account, err := read.AccountByEmail(ctx, email)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "No account has this address.")
	}
	return account, err
}
