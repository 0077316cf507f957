package provider

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// UnreadNoticed is for how long what a provider says of itself couldn't be read when OWNERs get a mail: what it has changed
// since, such as a certificate, isn't known here.
const UnreadNoticed = 24 * time.Hour

// unread records that the reading has failed, and when to try again.
func (c *Client) unread(ctx context.Context, kept store.KeptDiscovery) error {
	return c.writer.Upkeep(ctx, func(tx *store.Tx) error {
		failing := time.Duration(0)
		if !kept.FailingSince.IsZero() {
			failing = tx.Now.Sub(kept.FailingSince)
		}
		_, err := tx.FailDiscovery(ctx, kept, tx.Now.Add(retryIn(failing)))
		return err
	})
}

// retryIn returns the pause before the next reading of what has failed for so long: 15 minutes, an hour, then four, so that
// an outage of a night costs few requests and one of minutes no day.
func retryIn(failing time.Duration) time.Duration {
	switch {
	case failing < 15*time.Minute:
		return 15 * time.Minute
	case failing < 75*time.Minute:
		return time.Hour
	}
	return 4 * time.Hour
}

// sweepUnread tells OWNERs of providers that couldn't be read for UnreadNoticed, once until they can be.
func (c *Client) sweepUnread(ctx context.Context) error {
	return access.EachDue(func(u store.UnreadProvider) string { return u.ConnectionID }, func(limit int) ([]store.UnreadProvider, error) {
		return c.db.Read().UnreadProviders(ctx, c.db.Now().Add(-UnreadNoticed), limit)
	}, func(u store.UnreadProvider) error {
		on := doorward.Object{Type: "connection", ID: u.ConnectionID, TenantID: u.TenantID}
		_, err := c.writer.Do(ctx, access.System, doorward.ConnectionUpdate, on, func(tx *access.Tx) error {
			isDue, err := tx.MarkUnreadNotice(ctx, u.ConnectionID, tx.Now.Add(-UnreadNoticed))
			if err != nil || !isDue {
				tx.SkipEvent()
				return err
			}
			tx.Changed(doorward.FieldFailingSince, "", u.Since.Format(time.RFC3339))
			return tx.NotifyHolders(ctx, store.MailProviderUnread, u.TenantID, doorward.RoleOwner)
		})
		return err
	})
}
