package mail

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// confirmFor is how long a change of an address can be confirmed, from the moment the mail
// to the new address is made.
const confirmFor = 30 * time.Minute

// composeEmailConfirm makes the mail to a new address. It names the account by its present address:
// the reader must be able to tell whether it is their own. If the mail is made a second time, the time to confirm still counts from the first. It is obsolete once the change
// is confirmed, replaced or undone.
func (m *Mail) composeEmailConfirm(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	c, locale, err := emailChange(ctx, tx, row)
	if err != nil {
		return nil, err
	}
	if c.ConfirmedAt != nil || c.ReplacedAt != nil || c.UndoneAt != nil {
		return nil, store.ErrNone
	}
	if err := tx.StartEmailChange(ctx, c.ID, tx.Now.Add(confirmFor)); err != nil {
		return nil, err
	}
	token, err := newLinkToken(ctx, tx, c.ID)
	return m.texts.render(row.Kind, locale, variables{
		Email: c.Old, Address: c.New, Site: m.site(), Link: m.baseURL + "/confirm-email#token=" + token, Code: token,
	}).withStyle(m.styleOf(doorward.Tenant{})), err
}

// composeEmailUndo makes the notices to the old address. Unlike other security notices they
// have a link, which undoes the change: their reader may be unable to sign in.
func (m *Mail) composeEmailUndo(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	c, locale, err := emailChange(ctx, tx, row)
	if err != nil {
		return nil, err
	}
	at := c.CreatedAt
	if row.Kind == store.MailEmailChanged && c.ConfirmedAt != nil {
		at = *c.ConfirmedAt
	}
	token, err := newLinkToken(ctx, tx, c.UndoSubject())
	return m.texts.render(row.Kind, locale, variables{
		Email: row.Recipient, Site: m.site(), At: formatTime(at), Until: formatTime(c.UndoUntil),
		Link: m.baseURL + "/undo-email#token=" + token, Code: token,
	}), err
}

// composeEmailRestored makes the notice to the new address, after the change was undone.
func (m *Mail) composeEmailRestored(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	c, locale, err := emailChange(ctx, tx, row)
	if err == nil && c.UndoneAt == nil {
		err = store.ErrNone
	}
	if err != nil {
		return nil, err
	}
	return m.texts.render(row.Kind, locale, variables{Email: row.Recipient, Site: m.site(), At: formatTime(*c.UndoneAt)}), nil
}

// emailChange returns the change that the mail is about, and the language of its account.
func emailChange(ctx context.Context, tx *store.Tx, row store.Mail) (store.EmailChange, string, error) {
	c, err := tx.EmailChange(ctx, row.SubjectID)
	if err != nil {
		return c, "", err
	}
	account, err := tx.Account(ctx, c.UserID)
	return c, account.Locale, err
}
