package account

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
)

// Recent is an event of an account that is shown to the person, to notice what others have done.
type Recent struct {
	At     time.Time
	Action doorward.Action
	// Variant is the kind of the factor, or one of the constants below; empty if the action has
	// no variants.
	Variant   string
	Times     int  // how many similar refusals the event stands for; else 1
	ByOthers  bool // an administrator or the operator did it; IP and UserAgent are empty then
	IP        string
	UserAgent string
}

// The values of Recent.Variant that are not kinds of factors.
const (
	Renamed   = "renamed"   // a factor was renamed
	Codes     = "codes"     // recovery codes were replaced
	Confirmed = "confirmed" // the address has changed
	Undone    = "undone"    // a change of the address was undone before it was confirmed
)

// RecentActions are sign-ins, refused second factors, suspected copies of passkeys, losses of apps, and the
// actions that change how somebody signs in.
var RecentActions = []doorward.Action{
	doorward.SessionOpen, doorward.SessionStepUp, doorward.PasswordChange, doorward.PasswordReset, doorward.AccountEmail,
	doorward.MFAEnrol, doorward.MFARemove, doorward.MFARefuse, doorward.MFARecover, doorward.MFAReset, doorward.MFAKeep, doorward.MFAClone,
	doorward.MasterKeyReplace,
}

// Limits on the age and the number of the events.
const (
	recentLife = 30 * 24 * time.Hour
	recentMax  = 20
)

// Recent returns the latest RecentActions of the caller's account in all tenants, the newest first; for a
// session that a connection vouches for, those in its tenant. Errors: unavailable.
func (a *Accounts) Recent(ctx context.Context, by doorward.Caller) ([]Recent, error) {
	tenantID := ""
	if by.Issuer != doorward.OwnIssuer {
		tenantID = by.TenantID
	}
	events, err := a.db.Read().LatestEvents(ctx, by.ID, tenantID, RecentActions, a.db.Now().Add(-recentLife), recentMax)
	var all []Recent
	for _, e := range events {
		all = append(all, recent(e, by.ID))
	}
	// A change of the account is recorded in the trail of each of its tenants: show it once.
	return slices.Compact(all), err
}

func recent(e doorward.Event, userID string) Recent {
	r := Recent{At: e.At, Action: e.Action, Times: e.RefusalCount(), Variant: variant(e)}
	if r.ByOthers = e.ActorID != userID && e.ActorType != doorward.Anonymous; !r.ByOthers {
		r.IP, r.UserAgent = e.IP, e.Change(doorward.FieldUserAgent).To
	}
	return r
}

func variant(e doorward.Event) string {
	factor, email := e.Change(doorward.FieldFactor), e.Change(doorward.FieldEmail)
	switch {
	case factor.To+factor.From != "": // added or removed: one of the two is empty
		return factor.To + factor.From
	case e.Change(doorward.FieldFactorRenamed).To != "":
		return Renamed
	case e.Change(doorward.FieldRecoveryCodes).To != "":
		return Codes
	case email.To != "" && email.To == email.From: // undone before it was confirmed
		return Undone
	case email.To != "":
		return Confirmed
	}
	return ""
}
