package apikey

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Reports from one client network that are looked at in a window.
const (
	reports      = 30
	reportWindow = 10 * time.Minute
)

// Report ends a key that somebody has found, and notifies its owner and those who manage
// keys. Whoever shows a secret may end its key. A secret that is unknown, or has ended, is
// no error: the answer says nothing about it. Errors: validation_failed for what has not
// the form of a key, too_many_attempts.
func (k *Keys) Report(ctx context.Context, by doorward.Caller, text string) (doorward.Revocation, error) {
	found, err := secret.ParseKey(text)
	if err != nil {
		return doorward.Revocation{}, doorward.Invalid("/key", "invalid", "This is no key: its form or its checksum is wrong.")
	}
	if err := k.countReport(ctx, by); err != nil {
		return doorward.Revocation{}, err
	}
	hash := found.Hash()
	cred, err := k.db.Read().APIKeyBySecret(ctx, hash[:], k.db.Now())
	if errors.Is(err, store.ErrNone) || err == nil && hasEnded(cred, k.db.Now()) {
		return doorward.Revocation{}, nil
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	return k.writer.Do(ctx, by, doorward.APIKeyLeak, object(cred.Key), func(tx *access.Tx) error {
		revoked, err := tx.RevokeAPIKey(ctx, cred.Key.ID)
		if err != nil || !revoked {
			tx.SkipEvent()
			return err
		}
		tx.Changed("status", string(cred.Key.Status), string(doorward.APIKeyRevoked))
		return notifyOfLeak(ctx, tx, cred.Key)
	})
}

func hasEnded(c store.KeyCredential, now time.Time) bool {
	return c.Key.Ended(now) || c.SecretEndsAt != nil && !now.Before(*c.SecretEndsAt)
}

func (k *Keys) countReport(ctx context.Context, by doorward.Caller) error {
	var t store.Throttle
	err := k.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		t, err = tx.HitThrottle(ctx, "report:"+doorward.Network(by.IP), reportWindow)
		return err
	})
	if err == nil && t.Hits > reports {
		err = &doorward.Error{Code: doorward.CodeTooManyAttempts, RetryAfter: max(time.Second, t.Since.Add(reportWindow).Sub(k.db.Now()))}
	}
	return err
}

// managers are the roles whose holders learn of a leak, besides the owner of the key.
var managers = []doorward.Role{doorward.RoleOwner, doorward.RoleAdmin}

// managersNotified bounds the mails of one leak to holders of one role.
const managersNotified = 100

func notifyOfLeak(ctx context.Context, tx *access.Tx, key doorward.APIKey) error {
	to := map[string]bool{}
	owner, err := tx.User(ctx, key.TenantID, key.OwnerID)
	if err == nil {
		to[owner.Email] = true
	} else if !errors.Is(err, store.ErrNone) {
		return err
	}
	for _, role := range managers {
		page, err := tx.UserPage(ctx, key.TenantID, store.UserFilter{Role: role, Status: doorward.UserActive}, doorward.Window{Limit: managersNotified})
		if err != nil {
			return err
		}
		for _, u := range page.Items {
			to[u.Email] = true
		}
	}
	for email := range to {
		if err := tx.Notify(ctx, store.MailAPIKeyLeaked, email); err != nil {
			return err
		}
	}
	return nil
}
