package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// The queries here return what is held about one person.

const sqlOwnedAPIKeys = selectAPIKey + `WHERE k.owner_id = $2 ORDER BY k.created_at, k.id`

// OwnedAPIKeys returns the API keys that the user owns in any tenant, in any state.
func (r Reader) OwnedAPIKeys(ctx context.Context, userID string, now time.Time) ([]doorward.APIKey, error) {
	return list(ctx, r, apiKeyColumns, sqlOwnedAPIKeys, micros(now), userID)
}

const sqlInvitationsTo = selectInvitation + `WHERE i.email = $1 ORDER BY i.created_at, i.id`

// InvitationsTo returns all invitations to a canonical address.
func (r Reader) InvitationsTo(ctx context.Context, email string) ([]doorward.Invitation, error) {
	return list(ctx, r, invitationColumns, sqlInvitationsTo, email)
}

const sqlMailsTo = `SELECT id, kind, recipient, subject_id, state, tries, next_at, created_at, last_error, return_to, share
FROM mails WHERE recipient = $1 ORDER BY created_at, id`

// MailsTo returns the mails to a canonical address that are queued or kept.
func (r Reader) MailsTo(ctx context.Context, email string) ([]Mail, error) {
	return list(ctx, r, mailColumns, sqlMailsTo, email)
}

// Browser is a known browser of an account.
type Browser struct {
	CreatedAt time.Time
	UsedAt    time.Time // to the day; 1970 for not again
}

func browserColumns(b *Browser) []any {
	return []any{(*storedTime)(&b.CreatedAt), (*storedTime)(&b.UsedAt)}
}

const sqlBrowsers = `SELECT created_at, used_at FROM devices WHERE user_id = $1 ORDER BY created_at`

// Browsers returns the known browsers of the user, the oldest first.
func (r Reader) Browsers(ctx context.Context, userID string) ([]Browser, error) {
	return list(ctx, r, browserColumns, sqlBrowsers, userID)
}

const (
	sqlEventsBy    = selectEvent + `WHERE actor_id = $1 AND (at, id) > ($2, $3) ORDER BY at, id LIMIT $4`
	sqlEventsAbout = selectEvent + `WHERE target_id = $1 AND actor_id <> $1 AND (at, id) > ($2, $3) ORDER BY at, id LIMIT $4`
)

// EventsBy returns events by the user in any trail, the oldest first, after an At and an
// ID, zero for all.
func (r Reader) EventsBy(ctx context.Context, userID string, after doorward.Position, limit int) ([]doorward.Event, error) {
	return list(ctx, r, eventColumns, sqlEventsBy, userID, after.At, after.ID, limit)
}

// EventsAbout is EventsBy for events about the user by others.
func (r Reader) EventsAbout(ctx context.Context, userID string, after doorward.Position, limit int) ([]doorward.Event, error) {
	return list(ctx, r, eventColumns, sqlEventsAbout, userID, after.At, after.ID, limit)
}
