package mail

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// confirmLifetime is how long a new address can be confirmed, from the moment the mail to
// it is made.
const confirmLifetime = 30 * time.Minute

// composeEmailConfirm makes the mail to the new address of an account. It is the same
// whether that address has an account or not. A second try keeps the time of the first,
// and the code of either mail works.
func (m *Mail) composeEmailConfirm(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	if err := tx.StartEmailChange(ctx, row.SubjectID, tx.Now.Add(confirmLifetime)); err != nil {
		return nil, err
	}
	change, err := tx.EmailChange(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	if change.Confirmed != nil || change.Undone != nil || !tx.Now.Before(*change.ExpiresAt) {
		return nil, tx.MailFailed(ctx, row.ID, "not sent: the change of the address is over")
	}
	account, err := tx.Account(ctx, change.UserID)
	if err != nil {
		return nil, err
	}
	token, err := newLinkToken(ctx, tx, change.ID)
	return renderMail(row.Kind, account.Locale, variables{
		Email: row.Recipient, Site: m.site(), Link: m.baseURL + "/confirm-email#token=" + token, Code: token,
	}).withStyle(m.styleOf(doorward.Tenant{})), err
}

// composeEmailNotice makes the notices of a change of the address. Those to the old
// address carry a code that undoes the change.
func (m *Mail) composeEmailNotice(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	change, err := tx.EmailChange(ctx, changeOf(e, access.FieldEmailChange).To)
	if err != nil {
		return nil, err
	}
	account, err := tx.Account(ctx, change.UserID)
	if err != nil {
		return nil, err
	}
	agent := changeOf(e, access.FieldUserAgent).To
	w := variables{
		Email: row.Recipient, NewEmail: changeOf(e, "email").To, Site: m.site(), At: minute(e.At), IP: e.IP,
		Browser: nameOf(browsers, agent), System: nameOf(systems, agent),
	}
	if row.Kind != store.MailEmailUndone {
		w.Until = minute(change.UndoUntil)
		if w.Code, err = newLinkToken(ctx, tx, change.UndoID); err != nil {
			return nil, err
		}
		w.Link = m.baseURL + "/undo-email#token=" + w.Code
	}
	return renderMail(row.Kind, account.Locale, w), nil
}
