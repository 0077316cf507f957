package audit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// PersonDays is what has happened with a person in a tenant, by day of UTC.
type PersonDays struct {
	Days []PersonDay // the oldest first, the last is today
	// KeptDays is for how many days the tenant keeps events, if that is why there are fewer days than asked for; else 0.
	KeptDays int
	// IsCapped: there are more events than were counted, so that the oldest days have too few.
	IsCapped bool
}

// PersonDay is a day of a person.
type PersonDay struct {
	Day     time.Time   // its midnight
	SignIns int         // sessions that the person opened
	Refused int         // what was refused at the account, such as wrong passwords: it is the target of these events
	Changes []DayChange // by action
}

// DayChange is how often an action changed what the person is or signs in with.
type DayChange struct {
	Action doorward.Action
	Target string // the person, or the invitation that the person accepted
	Times  int
}

// personChanges are the actions that PersonDay.Changes has. What only belongs to signing in is left out: mfa.challenge,
// session.step_up and requests for a reset.
var personChanges = []doorward.Action{
	doorward.UserInvite, doorward.InvitationResend, doorward.InvitationAccept, doorward.UserImport, doorward.UserJoin, doorward.IdentityLink, doorward.IdentityUnlink,
	doorward.UserRole, doorward.UserSuspend, doorward.UserResume, doorward.UserRemove, doorward.UserLeave, doorward.UserRename, doorward.UserProfile,
	doorward.MFAEnrol, doorward.MFARemove, doorward.MFAReset, doorward.MFARecover, doorward.MFAKeep, doorward.MFAClone,
	doorward.PasswordChange, doorward.PasswordReset, doorward.PasswordLink, doorward.IncidentForceReset, doorward.AccountEmail, doorward.AccountUnlock,
}

// maxInvitations is of how many of a person's accepted invitations the days tell: one for each time that somebody
// came back to the tenant.
const maxInvitations = 3

// OfPerson returns the last days of a member of the caller's tenant, from its trail alone. It counts the newest
// doorward.MaxTotal+1 events by the person, about the person and about each invitation, of more than doorward.MaxTotal.
// A refused sign-in is in the trail of one tenant of the person, the one that the person would have signed in to.
// Errors: unavailable.
func (t *Trail) OfPerson(ctx context.Context, by doorward.Caller, person doorward.User, days int) (PersonDays, error) {
	t.recordPending(ctx)
	read := t.db.Read()
	found, err := t.shownDays(ctx, read, by.TenantID, days)
	if err != nil {
		return found, err
	}
	invitations, err := read.AcceptedInvitations(ctx, by.TenantID, person.Email, maxInvitations)
	if err != nil {
		return found, err
	}
	for _, filter := range append(targets(invitations...), store.EventFilter{Target: person.ID}, store.EventFilter{Actor: person.ID}) {
		filter.From = &found.Days[0].Day
		counted, err := read.EventDays(ctx, by.TenantID, filter, doorward.MaxTotal+1)
		if err != nil {
			return found, err
		}
		found.add(counted, filter.Target, person.ID)
	}
	for _, d := range found.Days {
		slices.SortFunc(d.Changes, func(a, b DayChange) int {
			return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.Target, b.Target))
		})
	}
	return found, nil
}

func targets(ids ...string) (all []store.EventFilter) {
	for _, id := range ids {
		all = append(all, store.EventFilter{Target: id})
	}
	return all
}

// shownDays returns so many empty days, or fewer if the tenant keeps events for fewer.
func (t *Trail) shownDays(ctx context.Context, read store.Reader, tenantID string, days int) (PersonDays, error) {
	var found PersonDays
	kept, err := t.kept(ctx, read, tenantID)
	if n := int(kept / (24 * time.Hour)); kept > 0 && n < days {
		found.KeptDays = max(n, 1)
		days = found.KeptDays
	}
	today := t.db.Now().UTC().Truncate(24 * time.Hour)
	for n := range days {
		found.Days = append(found.Days, PersonDay{Day: today.AddDate(0, 0, n-days+1)})
	}
	return found, err
}

// add adds the counts of events about the target, the person or an invitation; of those by the person, if it is empty.
func (p *PersonDays) add(counted []store.EventDay, target, personID string) {
	var events int64
	for _, c := range counted {
		events += c.Events
		n := int(c.Day - doorward.DayOf(p.Days[0].Day))
		if n < 0 || n >= len(p.Days) { // a clock was ahead
			continue
		}
		switch day := &p.Days[n]; {
		case target == "" && c.Action == doorward.SessionOpen && c.Outcome == doorward.Done:
			day.SignIns += int(c.Times)
		case target == personID && c.Outcome == doorward.Refused:
			day.Refused += int(c.Times)
		case target != "" && c.Outcome == doorward.Done && slices.Contains(personChanges, c.Action):
			day.Changes = append(day.Changes, DayChange{c.Action, target, int(c.Times)})
		}
	}
	p.IsCapped = p.IsCapped || events > doorward.MaxTotal
}
