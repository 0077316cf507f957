package account

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// The rows that an answer shows.
type (
	Session     = store.StoredSession
	Browser     = store.Browser
	Factor      = store.Factor
	EmailChange = store.EmailChange
	Mail        = store.Mail
)

// Held is what is held about a person, without secrets and hashes.
type Held struct {
	Account      doorward.Account
	Memberships  []doorward.User
	Sessions     []Session
	Browsers     []Browser
	Factors      []Factor
	EmailChanges []EmailChange
	APIKeys      []doorward.APIKey
	Invitations  []doorward.Invitation // to the address
	Mails        []Mail
	Events       []doorward.Event // what the person did, of each tenant the newest first
	MoreEvents   bool             // there are more than MaxEvents
}

// MaxEvents bounds the events in one answer, and with them its memory.
const MaxEvents = 10_000

const eventBatch = 500

// Held returns what is held about the caller. Events are those in the trails of the
// caller's tenants and of the installation.
func (a *Accounts) Held(ctx context.Context, by doorward.Caller) (h Held, err error) {
	read := a.db.Read()
	if h.Account, err = read.Account(ctx, by.ID); err != nil {
		return h, err
	}
	for _, part := range []func() error{
		func() error { h.Memberships, err = read.Memberships(ctx, by.ID); return err },
		func() error { h.Sessions, err = read.UserSessions(ctx, by.ID); return err },
		func() error { h.Browsers, err = read.Browsers(ctx, by.ID); return err },
		func() error { h.Factors, err = read.Factors(ctx, by.ID); return err },
		func() error { h.EmailChanges, err = read.EmailChanges(ctx, by.ID); return err },
		func() error { h.APIKeys, err = read.APIKeysOf(ctx, by.ID, a.db.Now()); return err },
		func() error { h.Invitations, err = read.InvitationsTo(ctx, h.Account.Email); return err },
		func() error { h.Mails, err = read.MailsTo(ctx, h.Account.Email); return err },
	} {
		if err := part(); err != nil {
			return h, err
		}
	}
	trails := []string{""}
	for _, m := range h.Memberships {
		trails = append(trails, m.TenantID)
	}
	for _, tenantID := range trails {
		if err := h.addEvents(ctx, read, tenantID, by.ID); err != nil || h.MoreEvents {
			return h, err
		}
	}
	return h, nil
}

func (h *Held) addEvents(ctx context.Context, read store.Reader, tenantID, userID string) error {
	for w := (doorward.Window{Limit: eventBatch}); ; {
		page, err := read.EventPage(ctx, tenantID, store.EventFilter{Actor: userID}, w)
		if err != nil {
			return err
		}
		h.Events = append(h.Events, page.Items...)
		if len(h.Events) > MaxEvents {
			h.Events, h.MoreEvents = h.Events[:MaxEvents], true
			return nil
		}
		if page.Next == nil {
			return nil
		}
		w.After = *page.Next
	}
}
