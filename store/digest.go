package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

// HeldNotice is what a digest says of the notices of one kind about the same object.
type HeldNotice struct {
	Kind    MailKind
	EventID string // of the newest of them
	Notices int
}

func heldNoticeFields(h *HeldNotice) []any { return []any{&h.Kind, &h.EventID, &h.Notices} }

// HeldBack has the notices that a digest may tell, with the action of their event. Changes of the
// password, the address and the factors are told at once, and mails that somebody has asked for, or that
// have a code, are no notices.
var HeldBack = map[MailKind]doorward.Action{
	MailSignedIn: doorward.SessionOpen, MailRoleChanged: doorward.UserRole, MailSuspended: doorward.UserSuspend, MailRemoved: doorward.UserRemove,
	MailFactorsWord: doorward.MFAReset, MailFactorsDemanded: doorward.TenantUpdate, MailAPIKeyExpiring: doorward.APIKeyExpiring, MailAPIKeyLeaked: doorward.APIKeyLeak,
	MailOperatorKeyLeaked: doorward.APIKeyLeak, MailServiceKeyLeaked: doorward.APIKeyLeak,
	MailWebhookFailing: doorward.WebhookFailing, MailWebhookDisabled: doorward.WebhookDisable,
	MailSCIMSecretExpiring:   doorward.ConnectionSecretChange,
	MailSCIMSecretLeaked:     doorward.APIKeyLeak,
	MailCertificateExpiring:  doorward.ConnectionUpdate,
	MailProviderUnread:       doorward.ConnectionUpdate,
	MailCertificatesGone:     doorward.ConnectionUpdate,
	MailClientSecretExpiring: doorward.ConnectionSecretChange, MailClientRefused: doorward.ConnectionSecretChange,
	MailSecretsLost: doorward.MasterKeyReplace, MailDomainLapsed: doorward.DomainLapse, MailDomainTaken: doorward.DomainDelete,
	MailAccountErased: doorward.AccountErase, MailTenantOwnerless: doorward.TenantOwnerless, MailAddressSuspended: doorward.UserSuspend,
}

// digestLock takes the place of an action in the name of a bucket that is a lock on the recipient's digest.
const digestLock doorward.Action = "digest"

// NoticeBucket names the counter of notices of an action to a recipient.
func NoticeBucket(recipient string, action doorward.Action) string {
	return "notices:" + string(action) + ":" + recipient
}

const (
	// The update locks the digest: a worker that claims it at the same time either sees the notice,
	// or has claimed it before, and the notice begins another digest.
	sqlOpenDigest = `UPDATE mails SET recipient = recipient WHERE recipient = $1 AND recipient <> '' AND kind = 'digest' AND state = 'queued' AND tries = 0
RETURNING id`
	sqlInsertDigest = `INSERT INTO mails (id, kind, recipient, subject_id, state, tries, next_at, created_at, last_error, return_to, share)
VALUES ($1, 'digest', $2, '', 'queued', 0, $3, $4, '', '', $5)`

	// The digest shows the newest event. Concurrent deliveries hold notices back in any order.
	sqlHoldNotice = `INSERT INTO held_notices (mail_id, kind, about, event_id, notices) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (mail_id, kind, about) DO UPDATE SET
  event_id = CASE WHEN (SELECT at FROM events WHERE id = held_notices.event_id) > (SELECT at FROM events WHERE id = excluded.event_id)
    THEN held_notices.event_id ELSE excluded.event_id END,
  notices = held_notices.notices + 1`

	sqlHeldNotices = `SELECT kind, event_id, notices FROM held_notices WHERE mail_id = $1 ORDER BY event_id`
)

// HoldNotice replaces the mail, a notice of the event, by a line in the recipient's digest. If no
// digest is waiting, it queues one for the instant due.
func (tx *Tx) HoldNotice(ctx context.Context, m Mail, e doorward.Event, due time.Time) error {
	digest, err := tx.openDigest(ctx, m, due)
	if err != nil {
		return err
	}
	if err := tx.run(ctx, sqlHoldNotice, digest, m.Kind, e.Target.TenantID+" "+e.Target.ID, e.ID); err != nil {
		return err
	}
	return tx.DeleteMail(ctx, m.ID)
}

// openDigest locks the recipient's digest that still takes notices, or queues one, and returns its id.
func (tx *Tx) openDigest(ctx context.Context, m Mail, due time.Time) (string, error) {
	if _, err := tx.LockThrottle(ctx, NoticeBucket(m.Recipient, digestLock), due.Sub(tx.Now)); err != nil {
		return "", err
	}
	id, err := one(ctx, tx.Reader, textField, sqlOpenDigest, m.Recipient)
	if errors.Is(err, ErrNone) {
		id = doorward.NewID(doorward.PrefixMail)
		err = tx.run(ctx, sqlInsertDigest, id, m.Recipient, micros(due), micros(tx.Now), m.Share)
	}
	return id, err
}

// HeldNotices returns what the digest with the id tells.
func (r Reader) HeldNotices(ctx context.Context, mailID string) ([]HeldNotice, error) {
	return list(ctx, r, heldNoticeFields, sqlHeldNotices, mailID)
}
