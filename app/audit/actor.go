package audit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// search reads a page of one trail, or of all.
type search func(context.Context, store.EventFilter, doorward.Window) (doorward.Page[doorward.Event], error)

// searchIn returns the search in the trail of a tenant; "": of the installation.
func (t *Trail) searchIn(tenantID string) search {
	return func(ctx context.Context, f store.EventFilter, w doorward.Window) (doorward.Page[doorward.Event], error) {
		return t.db.Read().EventPage(ctx, tenantID, f, w)
	}
}

// choose checks the filter and finds out who its actor is. Errors: validation_failed.
func (t *Trail) choose(ctx context.Context, by doorward.Caller, f Filter, search search) (store.EventFilter, error) {
	chosen, faults := f.parse()
	who, err := t.actor(ctx, by, f.Actor, search)
	var fault *doorward.Error
	switch {
	case doorward.HasCode(err, doorward.CodeValidationFailed) && errors.As(err, &fault):
		faults = append(faults, fault.Fields...)
	case err != nil:
		return chosen, err
	}
	if len(faults) > 0 {
		return chosen, doorward.InvalidFields(faults...)
	}
	chosen.Actor, chosen.Operator, chosen.SystemUser = who.Actor, who.Operator, who.SystemUser
	return chosen, nil
}

// actorPrefixes are those of the ids that actors have.
var actorPrefixes = []string{doorward.PrefixUser, doorward.PrefixKey, doorward.PrefixConnection, doorward.PrefixSetupLink, doorward.PrefixPage}

// actor returns the filter for an actor alone. An id of nobody is taken: whose it was may be gone.
func (t *Trail) actor(ctx context.Context, by doorward.Caller, text string, search search) (store.EventFilter, error) {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(text, prefix) && text != prefix }
	switch {
	case text == string(doorward.Operator):
		return store.EventFilter{Operator: true}, nil
	case strings.Contains(text, "@"):
		return t.actorByName(ctx, by, text, search)
	case text != "" && !slices.ContainsFunc(actorPrefixes, hasPrefix):
		return store.EventFilter{}, badActor("Nobody acts under that.")
	}
	return store.EventFilter{Actor: text}, nil
}

// actorByName finds out whether a text with an @ is an address or a system user. The operator finds the events of the
// account that has the address now, and others those with the address, as their trail shows it.
func (t *Trail) actorByName(ctx context.Context, by doorward.Caller, text string, search search) (store.EventFilter, error) {
	address, parseErr := mailaddr.Parse(text)
	byAddress, bySystemUser := store.EventFilter{Actor: address}, store.EventFilter{SystemUser: text}
	switch {
	case parseErr != nil:
		return firstFound(ctx, search, bySystemUser)
	case by.Kind != doorward.Operator:
		who, err := firstFound(ctx, search, byAddress, bySystemUser)
		if doorward.HasCode(err, doorward.CodeValidationFailed) { // a member who has done nothing yet has no event
			return byAddress, nil
		}
		return who, err
	}
	account, err := t.db.Read().AccountByEmail(ctx, address)
	if errors.Is(err, store.ErrNone) {
		return firstFound(ctx, search, bySystemUser, byAddress) // the index of addresses is that of one trail
	}
	return store.EventFilter{Actor: account.ID}, err
}

// firstFound returns the first of the filters that selects an event.
func firstFound(ctx context.Context, search search, all ...store.EventFilter) (store.EventFilter, error) {
	for _, f := range all {
		page, err := search(ctx, f, doorward.Window{Limit: 1})
		if err != nil || len(page.Items) > 0 {
			return f, err
		}
	}
	return store.EventFilter{}, badActor("Nobody has the address, no event has it, and no system user of that name has run a command.")
}

func badActor(what string) *doorward.Error {
	return doorward.InvalidFields(doorward.FieldError{Parameter: "actor", Code: "invalid", Message: what +
		` Write "operator", a system user such as root@db1, the id of a user (usr_…), key (key_…), connection (con_…) or set-up link (stl_…), or an address.`})
}
