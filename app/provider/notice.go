package provider

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// noticesBefore are the times before the end of a secret, or of a provider's last certificate, at which OWNERs are told, the last first: its
// notice makes the earlier ones undue.
var noticesBefore = []struct {
	number int
	within time.Duration
}{{3, day}, {2, 7 * day}, {1, 30 * day}}

// sweepSecrets tells OWNERs of secrets that end soon. Of several nodes one does.
func (c *Client) sweepSecrets(ctx context.Context) error {
	var errs []error
	for _, notice := range noticesBefore {
		errs = append(errs, access.EachDue(func(s store.ExpiringSecret) string { return s.ID }, func(limit int) ([]store.ExpiringSecret, error) {
			now := c.db.Now()
			return c.db.Read().ExpiringSecrets(ctx, now, now.Add(notice.within), notice.number, limit)
		}, func(s store.ExpiringSecret) error { return c.notifyBefore(ctx, s, notice.number) }))
	}
	return errors.Join(errs...)
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
	var errs []error
	for _, notice := range noticesBefore {
		errs = append(errs, access.EachDue(func(e store.EndingCertificates) string { return e.ConnectionID }, func(limit int) ([]store.EndingCertificates, error) {
			now := c.db.Now()
			return c.db.Read().EndingCertificates(ctx, now, now.Add(notice.within), notice.number, limit)
		}, func(e store.EndingCertificates) error { return c.notifyOfCertificate(ctx, e, notice.number) }))
	}
	return errors.Join(errs...)
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
