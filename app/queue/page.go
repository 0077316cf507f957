package queue

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// What the operator's commands and the operator's page show of a row.

// StateOfMail is the state of a mail as the commands name it: queued, failed or dropped.
func StateOfMail(m store.Mail) string {
	if m.IsDropped() {
		return string(doorward.DeliveryDropped)
	}
	return string(m.State)
}

// TenantOfMail is the share of a mail if that is a tenant, else empty; a mail that somebody has asked for counts in the
// share of a network.
func TenantOfMail(m store.Mail) string {
	if strings.HasPrefix(m.Share, doorward.PrefixTenant) {
		return m.Share
	}
	return ""
}

// token matches what could be a token of a link (256 bits), which the answer of a mail server may quote.
var token = regexp.MustCompile(`[A-Za-z0-9_-]{32,}`)

// WithoutTokens makes an error that others have worded fit to be shown: in one line, without what could be a token.
func WithoutTokens(text string) string {
	return token.ReplaceAllString(strings.Join(strings.Fields(text), " "), "…")
}

// LastAttempt is the status or the error of the last attempt, without what the endpoint has answered; empty for none.
func (d Delivery) LastAttempt() string {
	if len(d.Attempts) == 0 {
		return ""
	}
	last := d.Attempts[len(d.Attempts)-1]
	if last.Error != "" {
		return WithoutTokens(last.Error)
	}
	return strconv.Itoa(last.Status)
}

// Mail is a mail as the operator's page shows it.
type Mail struct {
	ID, Kind, To, TenantID, State, LastError string
	Tries                                    int
	QueuedAt, NextAt                         time.Time
}

func mailOf(m store.Mail) Mail {
	return Mail{m.ID, string(m.Kind), m.Recipient, TenantOfMail(m), StateOfMail(m), WithoutTokens(m.LastError), m.Tries, m.CreatedAt, m.NextAt}
}

// The queues, for Waits.
const (
	Mails      = store.MailQueue
	Deliveries = store.WebhookQueue
)

// The states of rows that the lists have: those that wait come first.
var (
	MailStates     = []string{string(doorward.DeliveryQueued), string(doorward.DeliveryFailed), string(doorward.DeliveryDropped)}
	DeliveryStates = []string{string(doorward.DeliveryPending), string(doorward.DeliveryGivenUp), string(doorward.DeliveryDropped)}
)

// MailKinds returns the kinds of mails.
func MailKinds() (names []string) {
	for _, k := range store.MailKinds {
		names = append(names, string(k))
	}
	return names
}

// MailSearch selects mails for a page. It has not been checked yet.
type MailSearch struct {
	State    string // one of MailStates; empty: the first
	Kind     string // one of MailKinds; empty: all
	To       string // an address, or "@acme.example" for all of a domain; empty: all
	TenantID string // of the action that the mail is about; empty: all
}

func (s MailSearch) filter() (f store.MailFilter, err error) {
	f = store.MailFilter{Kind: store.MailKind(s.Kind), To: strings.ToLower(s.To), TenantID: s.TenantID}
	f.Failed, f.Dropped = s.State != "" && s.State != MailStates[0], s.State == MailStates[2]
	var faults []doorward.FieldError
	if s.State != "" && !slices.Contains(MailStates, s.State) {
		faults = append(faults, wrongFilter("state"))
	}
	if s.Kind != "" && !slices.Contains(MailKinds(), s.Kind) {
		faults = append(faults, wrongFilter("kind"))
	}
	if f.To != "" && f.To[0] != '@' {
		if f.To, err = mailaddr.Parse(s.To); err != nil {
			faults = append(faults, wrongFilter("to"))
		}
	}
	if len(faults) > 0 {
		return f, doorward.InvalidFields(faults...)
	}
	return f, nil
}

func wrongFilter(parameter string) doorward.FieldError {
	return doorward.FieldError{Parameter: parameter, Code: "invalid", Message: "There are none such."}
}

// DeliverySearch selects deliveries for a page. It has not been checked yet.
type DeliverySearch struct {
	State     string // one of DeliveryStates; empty: the first
	TenantID  string // empty: of all, and of the installation
	WebhookID string // empty: of all
}

func (s DeliverySearch) filter() (store.DeliveryFilter, error) {
	f := store.DeliveryFilter{State: doorward.DeliveryState(cmp.Or(s.State, DeliveryStates[0])), TenantID: s.TenantID, WebhookID: s.WebhookID, AllTenants: s.TenantID == ""}
	if s.State != "" && !slices.Contains(DeliveryStates, s.State) {
		return f, doorward.InvalidFields(wrongFilter("state"))
	}
	return f, nil
}

// MailPage returns mails in the order of EachMail, at most limit, after a position; zero: from the beginning. Errors:
// validation_failed.
func (q *Queues) MailPage(ctx context.Context, s MailSearch, after doorward.Position, limit int) (page doorward.Page[Mail], err error) {
	f, err := s.filter()
	if err != nil {
		return page, err
	}
	from := store.Mail{}
	if after != (doorward.Position{}) {
		at := time.UnixMicro(after.At)
		from = store.Mail{ID: after.ID, NextAt: at, CreatedAt: at}
	}
	found, err := q.db.Read().SelectedMails(ctx, f, q.db.Now(), from, limit+1)
	for _, m := range found[:min(len(found), limit)] {
		page.Items = append(page.Items, mailOf(m))
	}
	if err == nil && len(found) > limit {
		last := found[limit-1]
		at := last.NextAt
		if f.Failed {
			at = last.CreatedAt
		}
		page.Next = &doorward.Position{At: at.UnixMicro(), ID: last.ID}
	}
	return page, err
}

// DeliveryPage returns deliveries in the order of EachDelivery, at most limit, after a position; zero: from the
// beginning. Errors: validation_failed.
func (q *Queues) DeliveryPage(ctx context.Context, s DeliverySearch, after doorward.Position, limit int) (page doorward.Page[Delivery], err error) {
	f, err := s.filter()
	if err != nil {
		return page, err
	}
	if page.Items, err = q.restOf(ctx, f, after, limit+1); err != nil {
		return page, err
	}
	for hook := after.Key; len(page.Items) <= limit; {
		hooks, err := q.db.Read().WebhooksWith(ctx, f, q.db.Now(), hook, limit+1)
		if err != nil {
			return page, err
		}
		if len(hooks) == 0 {
			return page, nil
		}
		for _, w := range hooks {
			hook = w.ID
			more, err := q.deliveriesOf(ctx, w, f, doorward.WebhookDelivery{}, limit+1-len(page.Items))
			if err != nil {
				return page, err
			}
			page.Items = append(page.Items, more...)
			if len(page.Items) > limit {
				break
			}
		}
	}
	page.Items = page.Items[:limit]
	last := page.Items[limit-1]
	page.Next = &doorward.Position{At: last.CreatedAt.UnixMicro(), ID: last.ID, Key: last.WebhookID}
	return page, nil
}

// restOf returns the deliveries after the position that are of the same webhook; none if it was deleted.
func (q *Queues) restOf(ctx context.Context, f store.DeliveryFilter, after doorward.Position, limit int) ([]Delivery, error) {
	if after == (doorward.Position{}) {
		return nil, nil
	}
	hook, err := q.db.Read().Webhook(ctx, after.Key)
	if errors.Is(err, store.ErrNone) || err == nil && hook.TenantID == store.RetiredWebhooksTenant {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from := doorward.WebhookDelivery{ID: after.ID, CreatedAt: time.UnixMicro(after.At)}
	return q.deliveriesOf(ctx, store.WebhookName{ID: hook.ID, TenantID: hook.TenantID}, f, from, limit)
}

// deliveriesOf returns deliveries of a webhook that the filter selects, at most limit, after one.
func (q *Queues) deliveriesOf(ctx context.Context, w store.WebhookName, f store.DeliveryFilter, after doorward.WebhookDelivery, limit int) (all []Delivery, err error) {
	found, err := q.db.Read().SelectedDeliveries(ctx, w.ID, f, q.db.Now(), after, limit)
	for _, d := range found {
		all = append(all, Delivery{d, w.TenantID})
	}
	return all, err
}

// Waiting is how much of a queue waits.
type Waiting struct {
	Rows   int
	Since  time.Time // when the oldest was queued; zero for none
	Pauses []store.QueuePause
}

// Waits returns what waits in the queue, of all tenants. Errors: unavailable.
func (q *Queues) Waits(ctx context.Context, of store.Queue) (w Waiting, err error) {
	v, err := q.db.Read().Vitals(ctx, q.db.Now())
	if err != nil {
		return w, err
	}
	w.Rows, w.Since = v.MailsQueued, v.OldestMail
	if of == store.WebhookQueue {
		w.Rows, w.Since = int(v.Deliveries), v.OldestDelivery
	}
	if w.Rows == 0 {
		w.Since = time.Time{}
	}
	all, err := q.Pauses(ctx)
	for _, p := range all {
		if p.Queue == of {
			w.Pauses = append(w.Pauses, p)
		}
	}
	return w, err
}
