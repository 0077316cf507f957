package connection

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

const (
	secretMax = 1000 // bytes
	// hintLength is how many characters of a secret are shown, of one that has three times as many.
	hintLength = 4
	// secretYearsMax bounds the end of a secret, which is typed by hand.
	secretYearsMax = 10
)

// NewSecret is a client secret, as typed.
type NewSecret struct {
	Secret    string
	ExpiresAt *time.Time // as the provider says; nil: never, or not known
}

// check returns the faults of what is typed.
func (s NewSecret) check(now time.Time) (faults []doorward.FieldError) {
	switch {
	case s.Secret == "":
		faults = append(faults, fault("/clientSecret", "required", "Copy the secret from the provider."))
	case len(s.Secret) > secretMax || hasControl(s.Secret) || strings.TrimSpace(s.Secret) != s.Secret:
		faults = append(faults, fault("/clientSecret", "invalid", "Copy the secret from the provider: at most 1,000 bytes, without blanks around it."))
	}
	if s.ExpiresAt != nil && (!s.ExpiresAt.After(now) || s.ExpiresAt.After(now.AddDate(secretYearsMax, 0, 0))) {
		faults = append(faults, fault("/expiresAt", "out_of_range", "A secret ends in the future, within ten years. Leave this out if it doesn't."))
	}
	return faults
}

// hint returns the last characters of a secret that is long enough to stay secret.
func hint(secret string) string {
	runes := []rune(secret)
	if len(runes) < 3*hintLength {
		return ""
	}
	return string(runes[len(runes)-hintLength:])
}

// AddSecret adds a client secret. The newest is tried first. What was tested with other secrets has to be
// tested again before the connection is enabled or switched; an active one goes on. Errors: not_found,
// too_many_secrets, master_key_missing, validation_failed.
func (c *Connections) AddSecret(ctx context.Context, by doorward.Caller, id string, typed NewSecret) (made doorward.ConnectionSecret, err error) {
	if faults := typed.check(c.db.Now()); len(faults) > 0 {
		return made, doorward.InvalidFields(faults...)
	}
	found, err := find(ctx, c.db.Read(), by, id)
	if err == nil && found.Type == doorward.SAML {
		err = doorward.Invalid("/clientSecret", "invalid", "A connection of type saml has no client secrets.")
	}
	if err != nil {
		return made, err
	}
	made = doorward.ConnectionSecret{ID: doorward.NewID(doorward.PrefixClientSecret), ConnectionID: id, Hint: hint(typed.Secret)}
	if typed.ExpiresAt != nil {
		at := doorward.Instant(*typed.ExpiresAt)
		made.ExpiresAt = &at
	}
	_, err = c.perform(ctx, by, false, onConnection(ctx, by, doorward.ConnectionSecretChange, found, func(tx *access.Tx, _ doorward.Connection) error {
		if err := tx.DropLostSecrets(ctx, id); err != nil { // this one takes their place
			return err
		}
		had, err := tx.ConnectionSecrets(ctx, id)
		if err == nil && len(had) >= doorward.ConnectionSecretsMax {
			err = doorward.Fail(doorward.CodeTooManySecrets, "")
		}
		if err != nil {
			return err
		}
		made.CreatedAt = tx.Now
		if err := c.insertSecret(ctx, tx, made, typed.Secret); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, made)
	}))
	return made, err
}

func (c *Connections) insertSecret(ctx context.Context, tx *access.Tx, made doorward.ConnectionSecret, secret string) error {
	sealed, err := c.SealSecret(ctx, tx.Tx, made.ID, secret)
	if err != nil {
		return err
	}
	tx.Changed(doorward.FieldClientSecret, "", made.Hint)
	if made.ExpiresAt != nil {
		tx.Changed(doorward.FieldEndsAt, "", made.ExpiresAt.Format(time.RFC3339))
	}
	if err := tx.InsertConnectionSecret(ctx, store.SealedConnectionSecret{ConnectionSecret: made, Sealed: sealed}); err != nil {
		return err
	}
	if err := tx.ClearClientNotice(ctx, made.ConnectionID); err != nil {
		return err
	}
	return tx.VoidTestsOfSecrets(ctx, made.ConnectionID)
}

// DeleteSecret deletes a client secret. Errors: not_found.
func (c *Connections) DeleteSecret(ctx context.Context, by doorward.Caller, id, secretID string) error {
	found, err := find(ctx, c.db.Read(), by, id)
	if err != nil {
		return err
	}
	_, err = c.perform(ctx, by, false, onConnection(ctx, by, doorward.ConnectionSecretChange, found, func(tx *access.Tx, _ doorward.Connection) error {
		all, err := tx.ConnectionSecrets(ctx, id)
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.ID == secretID {
				tx.Changed(doorward.FieldClientSecret, s.Hint, "")
			}
		}
		deleted, err := tx.DeleteConnectionSecret(ctx, id, secretID)
		if err == nil && !deleted {
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return err
		}
		return tx.VoidTestsOfSecrets(ctx, id)
	}))
	return err
}

// noticesBefore are the times before the end of a secret at which OWNERs are told, the last first: its
// notice makes the earlier ones undue.
var noticesBefore = []struct {
	number int
	within time.Duration
}{{3, day}, {2, 7 * day}, {1, 30 * day}}

const day = 24 * time.Hour

// sweepSecrets tells OWNERs of secrets that end soon. Of several nodes one does.
func (c *Connections) sweepSecrets(ctx context.Context) error {
	var errs []error
	for _, notice := range noticesBefore {
		errs = append(errs, access.EachDue(func(s store.ExpiringSecret) string { return s.ID }, func(limit int) ([]store.ExpiringSecret, error) {
			now := c.db.Now()
			return c.db.Read().ExpiringSecrets(ctx, now, now.Add(notice.within), notice.number, limit)
		}, func(s store.ExpiringSecret) error { return c.notifyBefore(ctx, s, notice.number) }))
	}
	return errors.Join(errs...)
}

func (c *Connections) notifyBefore(ctx context.Context, s store.ExpiringSecret, number int) error {
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
