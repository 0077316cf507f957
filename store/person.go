package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// The queries here return what is held about one person.

const sqlOwnedAPIKeys = selectAPIKey + `WHERE k.owner_id = $2 ORDER BY k.created_at, k.id`

// OwnedAPIKeys returns the API keys that the user owns in any tenant, in any state.
func (r Reader) OwnedAPIKeys(ctx context.Context, userID string, now time.Time) ([]doorward.APIKey, error) {
	return list(ctx, r, apiKeyFields, sqlOwnedAPIKeys, micros(now), userID)
}

// An account may have had another address when it accepted an invitation.
const acceptedBy = `(SELECT target_id FROM events WHERE actor_id = $1 AND action = 'invitation.accept' AND outcome = 'done')`

// With OR in place of UNION, PostgreSQL would read all invitations.
const sqlInvitationsOf = selectInvitation + `WHERE i.email = $2
UNION ` + selectInvitation + `WHERE i.email <> '' AND i.state = 'ACCEPTED' AND i.id IN ` + acceptedBy + ` ORDER BY created_at, id`

// InvitationsOf returns the invitations to the address of an account, and those that it
// has accepted.
func (r Reader) InvitationsOf(ctx context.Context, userID, email string) ([]doorward.Invitation, error) {
	return list(ctx, r, invitationFields, sqlInvitationsOf, userID, email)
}

const sqlMailsOf = selectMail + `WHERE recipient = $2 AND recipient <> ''
UNION ` + selectMail + `WHERE subject_id IN (SELECT id FROM email_changes WHERE user_id = $1) ORDER BY created_at, id`

// MailsOf returns the mails to the address of an account, and those about changes of it,
// that are queued or kept.
func (r Reader) MailsOf(ctx context.Context, userID, email string) ([]Mail, error) {
	return list(ctx, r, mailFields, sqlMailsOf, userID, email)
}

const sqlEmailChanges = selectEmailChange + `WHERE e.user_id = $1 ORDER BY e.created_at, e.id`

// EmailChanges returns the changes of the account's address that are kept.
func (r Reader) EmailChanges(ctx context.Context, userID string) ([]EmailChange, error) {
	return list(ctx, r, emailChangeFields, sqlEmailChanges, userID)
}

const sqlChallengesOf = `SELECT purpose, user_id, tenant_id, session_id, generation, issuer, methods, state, ends_at FROM challenges
WHERE user_id = $1 AND ends_at > $2 ORDER BY ends_at`

// ChallengesOf returns the account's challenges that have not ended.
func (r Reader) ChallengesOf(ctx context.Context, userID string, now time.Time) ([]Challenge, error) {
	return list(ctx, r, challengeFields, sqlChallengesOf, userID, micros(now))
}

const sqlResetsOf = `SELECT id, user_id, created_at, expires_at, used_at FROM resets WHERE user_id = $1 ORDER BY created_at, id`

// ResetsOf returns the resets of the account's password that are kept, the oldest first.
func (r Reader) ResetsOf(ctx context.Context, userID string) ([]Reset, error) {
	return list(ctx, r, resetFields, sqlResetsOf, userID)
}

const sqlDecisionsBy = `SELECT decided, id, tenant_id, at, actor_id FROM decisions WHERE actor_id = $1 ORDER BY at DESC, id DESC LIMIT $2`

// DecisionsBy returns the kept decisions about the user's requests, the newest first, at most
// limit.
func (r Reader) DecisionsBy(ctx context.Context, userID string, limit int) ([]KeptDecision, error) {
	return list(ctx, r, decisionFields, sqlDecisionsBy, userID, limit)
}

// Browser is a known browser of an account.
type Browser struct {
	CreatedAt time.Time
	UsedAt    time.Time // the last use, to the day; the Unix epoch: it was not used again
	SecondAt  time.Time // see KnownDevice; IP and UserAgent are of that instant
	IP        string
	UserAgent string
}

func browserFields(b *Browser) []any {
	return []any{(*storedTime)(&b.CreatedAt), (*storedTime)(&b.UsedAt), optionalTime{&b.SecondAt}, &b.IP, &b.UserAgent}
}

const sqlBrowsers = `SELECT created_at, used_at, second_at, ip, user_agent FROM devices WHERE user_id = $1 ORDER BY created_at`

// Browsers returns the known browsers of the user, the oldest first.
func (r Reader) Browsers(ctx context.Context, userID string) ([]Browser, error) {
	return list(ctx, r, browserFields, sqlBrowsers, userID)
}

const (
	sqlEventsBy    = selectEvent + `WHERE actor_id = $1 AND (at, id) > ($2, $3) ORDER BY at, id LIMIT $4`
	sqlEventsAbout = selectEvent + `WHERE target_id = $1 AND actor_id <> $1 AND (at, id) > ($2, $3) ORDER BY at, id LIMIT $4`
)

// EventsBy returns events by the user in any trail, the oldest first. It continues after the
// time and id of after; zero: from the beginning.
func (r Reader) EventsBy(ctx context.Context, userID string, after doorward.Position, limit int) ([]doorward.Event, error) {
	return list(ctx, r, eventFields, sqlEventsBy, userID, after.At, after.ID, limit)
}

// EventsAbout is EventsBy for events about the user by others.
func (r Reader) EventsAbout(ctx context.Context, userID string, after doorward.Position, limit int) ([]doorward.Event, error) {
	return list(ctx, r, eventFields, sqlEventsAbout, userID, after.At, after.ID, limit)
}

// As in sqlDueMails, a list contains an action if removing it makes the text shorter.
const (
	sqlLatestEventsBy    = selectEvent + `WHERE actor_id = $1 AND at > $2 AND replace($3, ' ' || action || ' ', '') <> $3 AND ($5 = '' OR tenant_id = $5) ORDER BY at DESC, id DESC LIMIT $4`
	sqlLatestEventsAbout = selectEvent + `WHERE target_id = $1 AND actor_id <> $1 AND at > $2 AND replace($3, ' ' || action || ' ', '') <> $3 AND ($5 = '' OR tenant_id = $5) ORDER BY at DESC, id DESC LIMIT $4`
)

// LatestEvents returns events of the actions by the user or about the user, in the trail of the tenant
// (empty: in any trail), since an instant, the newest first.
func (r Reader) LatestEvents(ctx context.Context, userID, tenantID string, actions []doorward.Action, since time.Time, limit int) ([]doorward.Event, error) {
	names := " "
	for _, a := range actions {
		names += string(a) + " "
	}
	all, err := list(ctx, r, eventFields, sqlLatestEventsBy, userID, micros(since), names, limit, tenantID)
	if err != nil {
		return nil, err
	}
	about, err := list(ctx, r, eventFields, sqlLatestEventsAbout, userID, micros(since), names, limit, tenantID)
	all = append(all, about...)
	slices.SortStableFunc(all, func(a, b doorward.Event) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(b.ID, a.ID)) })
	return all[:min(limit, len(all))], err
}
