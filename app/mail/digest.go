package mail

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/store"
)

// A recipient gets at most noticesPerHour mails about the same action, such as user.role, within
// noticeWindow, of the kinds in store.HeldBack. The notices beyond that are told in a digest at the end of
// the hour. They are counted when they would be sent, so that the actions don't wait for each other.
const (
	noticesPerHour = 3
	noticeWindow   = time.Hour
)

// holdBack counts a notice that is about to be sent for the first time. Beyond noticesPerHour it moves
// it to the recipient's digest, and reports true.
func holdBack(ctx context.Context, tx *store.Tx, row store.Mail) (bool, error) {
	action, isHeldBack := store.HeldBack[row.Kind]
	if !isHeldBack || row.Tries > 0 {
		return false, nil
	}
	t, err := tx.HitThrottle(ctx, store.NoticeBucket(row.Recipient, action), noticeWindow)
	if err != nil || t.Hits <= noticesPerHour {
		return false, err
	}
	e, err := tx.Event(ctx, row.SubjectID)
	if errors.Is(err, store.ErrNone) { // compose deletes the mail
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, tx.HoldNotice(ctx, row, e, tx.Now.Add(noticeWindow))
}

// composeDigest makes the mail that tells the notices that were held back. It leaves out those that have
// become obsolete.
func (m *Mail) composeDigest(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	held, err := tx.HeldNotices(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	total, items := 0, []text{}
	for _, h := range held {
		item, err := m.composeHeld(ctx, tx, row.Recipient, h)
		if errors.Is(err, store.ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		total, items = total+h.Notices, append(items, item...)
	}
	if total == 0 {
		return nil, store.ErrNone
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	digest := m.texts.render(row.Kind, locale, variables{Site: m.site(), Count: strconv.Itoa(total)})
	digest.Paragraphs = append(digest.Paragraphs, items...)
	return digest, err
}

// composeHeld returns the part of a digest about notices that were held back: their number, and the
// text of the newest one.
func (m *Mail) composeHeld(ctx context.Context, tx *store.Tx, recipient string, h store.HeldNotice) ([]text, error) {
	compose := composers[h.Kind]
	if compose == nil {
		return nil, fmt.Errorf("mail: a digest has a notice of the unknown kind %q; a node of the newer version will send it", h.Kind)
	}
	// The notice has no ID: it is no mail of its own.
	notice, err := compose(m, ctx, tx, store.Mail{Kind: h.Kind, Recipient: recipient, SubjectID: h.EventID})
	if err != nil {
		return nil, err
	}
	return notice.asItem(h.Notices)
}

// asItem returns the paragraphs of the mail for a digest, under its subject and a number.
func (r *renderedMail) asItem(n int) ([]text, error) {
	v := variables{Notice: r.Subject.Plain(), Count: strconv.Itoa(n)}
	heading, err := r.item.fill(v.sanitized())
	var details []string
	for _, d := range r.Details {
		details = append(details, string(d))
	}
	item := append([]text{heading}, r.Paragraphs...)
	if len(details) > 0 {
		item = append(item, text(strings.Join(details, "; ")))
	}
	return item, err
}
