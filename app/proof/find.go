package proof

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// FindAccount returns the account of an address as an operator has typed it. Errors: validation_failed if it is none;
// not_found.
func FindAccount(ctx context.Context, read store.Reader, address string) (doorward.Account, error) {
	email, err := mailaddr.Parse(address)
	if err != nil {
		return doorward.Account{}, doorward.Invalid("", "invalid", "This is "+err.Error()+".")
	}
	account, err := read.AccountByEmail(ctx, email)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "No account has this address. \"doorward user list\" shows all.")
	}
	return account, err
}
