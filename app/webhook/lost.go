package webhook

import (
	"context"
	"errors"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// forgetSecrets disables webhooks whose secrets nothing can open any more, and mails ADMINs; OWNERs get one mail with all that
// their tenant has lost (package masterkey). Their
// deliveries are dropped. Each has another secret and signing key then, which its receiver doesn't know: it can be
// enabled when somebody has rotated the secret.
func (w *Webhooks) forgetSecrets(ctx context.Context, tx *access.Tx, ids []string) error {
	disabled := 0
	for _, id := range ids {
		hook, err := tx.Webhook(ctx, id)
		if errors.Is(err, store.ErrNone) { // deleted since it was read
			continue
		}
		if err == nil {
			err = w.forget(ctx, tx, hook)
		}
		if err != nil {
			return err
		}
		if hook.TenantID != store.RetiredWebhooksTenant {
			disabled++
		}
	}
	if tx.Changed("webhooksDisabled", "", strconv.Itoa(disabled)); disabled == 0 {
		tx.SkipEvent()
	}
	return nil
}

func (w *Webhooks) forget(ctx context.Context, tx *access.Tx, hook doorward.Webhook) error {
	private, public := newSigningKey()
	sealed, err := w.seal(ctx, tx, hook.ID, newSecret(), private)
	if err != nil {
		return err
	}
	if err := tx.ReplaceWebhookSecrets(ctx, hook.ID, public, sealed); err != nil {
		return err
	}
	if _, err := tx.DropDeliveries(ctx, hook.ID); err != nil || hook.TenantID == store.RetiredWebhooksTenant {
		return err
	}
	to, err := w.recipients(ctx, tx, hook, doorward.RoleAdmin)
	if err != nil {
		return err
	}
	return tx.NotifyAlso(ctx, store.MailWebhookDisabled, to, doorward.WebhookDisable, object(hook),
		doorward.Change{Field: doorward.FieldURL, To: withoutQuery(hook.URL)},
		doorward.Change{Field: doorward.FieldReason, To: string(doorward.DisabledKeyLost)})
}

// recipients returns the addresses that get mails about the webhook: of members with one of the roles, or of the operator.
func (w *Webhooks) recipients(ctx context.Context, tx *access.Tx, hook doorward.Webhook, roles ...doorward.Role) ([]string, error) {
	if hook.TenantID != "" {
		return access.EmailsOf(ctx, tx.Reader, hook.TenantID, roles...)
	}
	if w.mailTo == "" {
		return nil, nil
	}
	return []string{w.mailTo}, nil
}
