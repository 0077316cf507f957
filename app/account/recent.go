package account

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Recent is an event of an account, shown to its owner, who should recognise it.
type Recent struct {
	At     time.Time
	Action doorward.Action
	// What is the kind of the factor, or one of the constants below; empty if the action
	// has no variants.
	What      string
	Times     int    // more than 1 for similar refusals
	ByOthers  bool   // an administrator or the operator did it; IP and UserAgent are empty then
	IP        string // from where
	UserAgent string
}

// The values of Recent.What that are not kinds of factors.
const (
	Renamed   = "renamed"   // a factor
	Codes     = "codes"     // new recovery codes
	Confirmed = "confirmed" // the address has changed
	Undone    = "undone"    // a change of the address that was not confirmed
)

// RecentActions are sign-ins, refused second factors, suspected copies of passkeys, and the
// actions that change how somebody signs in.
var RecentActions = []doorward.Action{
	doorward.SessionOpen, doorward.SessionStepUp, doorward.PasswordChange, doorward.PasswordReset, doorward.AccountEmail,
	doorward.MFAEnrol, doorward.MFARemove, doorward.MFARefuse, doorward.MFARecover, doorward.MFAReset, doorward.MFAClone,
}

// Limits of Recent: age and number of the events.
const (
	recentLife = 30 * 24 * time.Hour
	recentMax  = 20
)

// Recent returns what happened last to the caller's account, in any tenant, the newest
// first. Errors: unavailable.
func (a *Accounts) Recent(ctx context.Context, by doorward.Caller) ([]Recent, error) {
	events, err := a.db.Read().LatestEvents(ctx, by.ID, RecentActions, a.db.Now().Add(-recentLife), recentMax)
	var all []Recent
	for _, e := range events {
		all = append(all, recent(e, by.ID))
	}
	// A change of the account is recorded in the trail of each of its tenants: show it once.
	return slices.Compact(all), err
}

func recent(e doorward.Event, userID string) Recent {
	r := Recent{At: e.At, Action: e.Action, Times: e.Times(), What: what(e)}
	if r.ByOthers = e.ActorID != userID && e.ActorType != doorward.Anonymous; !r.ByOthers {
		r.IP, r.UserAgent = e.IP, changeOf(e, access.FieldUserAgent).To
	}
	return r
}

func what(e doorward.Event) string {
	factor, email := changeOf(e, "factor"), changeOf(e, "email")
	switch {
	case factor.To+factor.From != "":
		return factor.To + factor.From
	case changeOf(e, "factorRenamed").To != "":
		return Renamed
	case changeOf(e, "recoveryCodes").To != "":
		return Codes
	case email.To != "" && email.To == email.From: // undone before it was confirmed
		return Undone
	case email.To != "":
		return Confirmed
	}
	return ""
}

func changeOf(e doorward.Event, field string) doorward.Change {
	for _, c := range e.Changes {
		if c.Field == field {
			return c
		}
	}
	return doorward.Change{}
}
