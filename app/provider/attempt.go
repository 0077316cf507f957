package provider

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// checkEmail is the check of the address, joining.CheckEmail.
const checkEmail = "email"

// hideAddress leaves of an address that was refused the domain: who signs in is none of the business of a
// customer's IT. Of whom the provider ends the sessions it leaves nothing else, since a subject may be an address, too.
// Whom a request of a directory names isn't in what is seen.
func hideAddress(a *doorward.Attempt) {
	if a.Kind == doorward.AttemptSCIM {
		a.Subject, a.Address, a.UserID = mailaddr.Domain(a.Address), "", ""
		return
	}
	isNamed := a.Kind == doorward.AttemptRevoke && (a.Subject != "" || a.Check == oidcrp.CheckSub)
	if isNamed {
		a.Subject = ""
	}
	switch {
	case a.Address != "" && a.Seen != "":
		a.Seen = mailaddr.Domain(a.Address)
	case isNamed && (a.Check == oidcrp.CheckSub || a.Check == checkEmail):
		a.Seen = ""
	}
	a.Address = ""
}

// Attempts returns the protocol of a connection, the newest first. Errors: not_found; validation_failed for
// an unknown order. A set-up link sees no addresses.
func (c *Client) Attempts(ctx context.Context, by doorward.Caller, id string, w doorward.Window) (doorward.Page[doorward.Attempt], error) {
	read := c.db.Read()
	if _, err := Find(ctx, read, by, id); err != nil {
		return doorward.Page[doorward.Attempt]{}, err
	}
	page, err := read.AttemptPage(ctx, id, w)
	if by.Kind == doorward.BySetupLink {
		for i := range page.Items {
			hideAddress(&page.Items[i])
		}
	}
	return page, err
}

// LastAttempt returns the newest entry of the kind in the protocol of a connection; one with a Count of 0 if there is none.
// Errors: not_found. A set-up link sees no addresses.
func (c *Client) LastAttempt(ctx context.Context, by doorward.Caller, id string, kind doorward.AttemptKind) (doorward.Attempt, error) {
	read := c.db.Read()
	if _, err := Find(ctx, read, by, id); err != nil {
		return doorward.Attempt{}, err
	}
	last, err := read.LastAttempt(ctx, id, kind)
	if errors.Is(err, store.ErrNone) {
		return doorward.Attempt{}, nil
	}
	if by.Kind == doorward.BySetupLink {
		hideAddress(&last)
	}
	return last, err
}
