package provider

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// sweepSecrets tells OWNERs of secrets that end soon. Of several nodes one does.
func (c *Client) sweepSecrets(ctx context.Context) error {
	return access.EachEnding(c.db.Now, func(s store.ExpiringSecret) string { return s.ID }, func(from, to time.Time, number, limit int) ([]store.ExpiringSecret, error) {
		return c.db.Read().ExpiringSecrets(ctx, from, to, number, limit)
	}, func(s store.ExpiringSecret, number int) error { return c.notifyBefore(ctx, s, number) })
}

func (c *Client) notifyBefore(ctx context.Context, s store.ExpiringSecret, number int) error {
	on := doorward.Object{Type: "connection", ID: s.ConnectionID, TenantID: s.TenantID}
	_, err := c.writer.Do(ctx, access.System, doorward.ConnectionSecretChange, on, func(tx *access.Tx) error {
		due, err := tx.MarkSecretNotice(ctx, s.ID, number)
		if err != nil || !due {
			tx.SkipEvent()
			return err
		}
		tx.Changed(doorward.FieldClientSecret, s.Hint, s.Hint)
		tx.Changed(doorward.FieldEndsAt, "", s.ExpiresAt.Format(time.RFC3339))
		return tx.NotifyHolders(ctx, store.MailClientSecretExpiring, s.TenantID, doorward.RoleOwner)
	})
	return err
}

// sweepCertificates tells OWNERs of active connections whose provider's last certificate ends soon. Of several nodes one
// does.
func (c *Client) sweepCertificates(ctx context.Context) error {
	return access.EachEnding(c.db.Now, func(e store.EndingCertificates) string { return e.ConnectionID }, func(from, to time.Time, number, limit int) ([]store.EndingCertificates, error) {
		return c.db.Read().EndingCertificates(ctx, from, to, number, limit)
	}, func(e store.EndingCertificates, number int) error { return c.notifyOfCertificate(ctx, e, number) })
}

func (c *Client) notifyOfCertificate(ctx context.Context, e store.EndingCertificates, number int) error {
	on := doorward.Object{Type: "connection", ID: e.ConnectionID, TenantID: e.TenantID}
	_, err := c.writer.Do(ctx, access.System, doorward.ConnectionUpdate, on, func(tx *access.Tx) error {
		due, err := tx.MarkCertificateNotice(ctx, e, number)
		if err != nil || !due {
			tx.SkipEvent()
			return err
		}
		tx.Changed(doorward.FieldEndsAt, "", e.Until.Format(time.RFC3339))
		return tx.NotifyHolders(ctx, store.MailCertificateExpiring, e.TenantID, doorward.RoleOwner)
	})
	return err
}
