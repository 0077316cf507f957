package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Deliveries returns deliveries of a webhook in a state, empty for all, the newest first.
// Errors: not_found, validation_failed.
func (w *Webhooks) Deliveries(ctx context.Context, by doorward.Caller, id, state string, window doorward.Window) (doorward.Page[doorward.WebhookDelivery], error) {
	if _, err := w.Get(ctx, by, id); err != nil {
		return doorward.Page[doorward.WebhookDelivery]{}, err
	}
	if state != "" && !slices.Contains(doorward.DeliveryStates, doorward.DeliveryState(state)) {
		return doorward.Page[doorward.WebhookDelivery]{}, doorward.InvalidFields(doorward.FieldError{
			Parameter: "state", Code: "invalid", Message: "The state is pending, delivered, failed or dropped.",
		})
	}
	return w.db.Read().DeliveryPage(ctx, id, doorward.DeliveryState(state), window)
}

// Message is a delivery, and what is sent with it. Only the times and the answers of attempts
// are stored. The body and the signatures are made again, from the event and the webhook as
// they are now.
type Message struct {
	Delivery doorward.WebhookDelivery
	Webhook  doorward.Webhook
	Body     []byte  // empty: the event is no longer kept
	signer   *signer // nil: the event is no longer kept, or the server lacks the master key
}

// Headers returns the headers of an attempt at the time, signed with the secrets in use now.
// There is no signature if the event is no longer kept or the server lacks the master key.
func (m Message) Headers(at time.Time) http.Header {
	if m.signer == nil {
		h := headers(m.Delivery.EventID, at, m.Body, signer{})
		h.Del("Webhook-Signature")
		return h
	}
	return headers(m.Delivery.EventID, at, m.Body, *m.signer)
}

// Delivery returns a delivery with what is sent. Errors: not_found.
func (w *Webhooks) Delivery(ctx context.Context, by doorward.Caller, id string) (m Message, err error) {
	read := w.db.Read()
	if m.Delivery, m.Webhook, err = w.find(ctx, read, by, id); err != nil {
		return m, err
	}
	event, err := read.Event(ctx, m.Delivery.EventID)
	if errors.Is(err, store.ErrNone) {
		return m, nil
	}
	if err == nil {
		m.Body, err = payload(m.Webhook, event)
	}
	if err != nil {
		return m, err
	}
	s, err := w.signer(ctx, read, m.Webhook.ID, w.db.Now())
	if doorward.HasCode(err, doorward.CodeMasterKeyMissing) {
		return m, nil
	}
	m.signer = &s
	return m, err
}

func (w *Webhooks) find(ctx context.Context, read store.Reader, by doorward.Caller, id string) (doorward.WebhookDelivery, doorward.Webhook, error) {
	d, err := read.Delivery(ctx, id)
	if errors.Is(err, store.ErrNone) {
		return d, doorward.Webhook{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return d, doorward.Webhook{}, err
	}
	hook, err := find(ctx, read, by, d.WebhookID)
	return d, hook, err
}

// Retry tries a delivery again, whatever its state, and starts the schedule from the
// beginning. Errors: not_found, webhook_disabled.
func (w *Webhooks) Retry(ctx context.Context, by doorward.Caller, id string) error {
	d, _, err := w.find(ctx, w.db.Read(), by, id)
	if err != nil {
		return err
	}
	return w.change(ctx, by, doorward.WebhookRetry, d.WebhookID, func(tx *access.Tx, hook doorward.Webhook) error {
		if !hook.Enabled {
			return doorward.Fail(doorward.CodeWebhookDisabled, "")
		}
		tx.Changed("deliveryId", "", id)
		return tx.RetryDelivery(ctx, id)
	})
}

// Replay says which events of the past are sent again; empty fields select all that are
// kept.
type Replay struct {
	After    *int64 // a number in the tenant's trail
	From, To *time.Time
	Events   []string // patterns; empty: those of the webhook
}

// Replay queues events of the past for a webhook, the oldest first, at most
// doorward.WebhookReplayMax, and returns how many. It searches for them before its transaction,
// since other writers wait for the transaction. Errors: not_found, webhook_disabled,
// validation_failed.
func (w *Webhooks) Replay(ctx context.Context, by doorward.Caller, id string, r Replay) (queued int64, err error) {
	hook, err := w.Get(ctx, by, id)
	if err != nil {
		return 0, err
	}
	var events []string
	faults := r.check(hook)
	if len(faults) == 0 && hook.Enabled {
		if events, err = w.db.Read().EventsToReplay(ctx, r.query(hook)); err != nil {
			return 0, err
		}
	}
	err = w.change(ctx, by, doorward.WebhookReplay, id, func(tx *access.Tx, hook doorward.Webhook) error {
		switch {
		case len(faults) > 0:
			return doorward.InvalidFields(faults...)
		case !hook.Enabled:
			return doorward.Fail(doorward.CodeWebhookDisabled, "")
		}
		if queued, err = tx.QueueReplay(ctx, id, events); err != nil {
			return err
		}
		tx.Changed("queued", "", strconv.FormatInt(queued, 10))
		return nil
	})
	return queued, err
}

// query selects the events that both the webhook and the replay want.
func (r Replay) query(w doorward.Webhook) store.Replay {
	p := store.Replay{TenantID: w.TenantID, From: r.From, To: r.To, Limit: doorward.WebhookReplayMax}
	if r.After != nil {
		p.After = *r.After
	}
	for _, a := range doorward.EventActions(r.Events) {
		if w.Wants(a) && a != doorward.WebhookTest {
			p.Actions = append(p.Actions, a)
		}
	}
	return p
}

func (r Replay) check(w doorward.Webhook) (faults []doorward.FieldError) {
	if r.After != nil && w.TenantID == "" {
		faults = append(faults, fault("/after", "invalid", "Numbers count in one tenant's trail, and this webhook gets the events of all: use from and to."))
	}
	if r.After != nil && *r.After < 0 {
		faults = append(faults, fault("/after", "out_of_range", "The number of an event is 1 or more; 0 is before all."))
	}
	if r.From != nil && r.To != nil && r.To.Before(*r.From) {
		faults = append(faults, fault("/to", "out_of_range", "The end is before the beginning."))
	}
	for i, e := range r.Events {
		if !doorward.IsEventPattern(e) {
			faults = append(faults, fault(fmt.Sprintf("/events/%d", i), "invalid", "Write an event such as user.invite, a group such as user.*, or *."))
		}
	}
	return faults
}

const (
	// testsAtOnce bounds the tests that a node makes at once.
	testsAtOnce = 8
	// testTimeout leaves time to answer within 3 s.
	testTimeout = 2 * time.Second
)

// Test sends an event webhook.test now, also to a webhook that is disabled, and returns the
// attempt. A success within quickWithin makes the endpoint a healthy one. Errors: not_found,
// master_key_missing, unavailable while too many tests are under way.
func (w *Webhooks) Test(ctx context.Context, by doorward.Caller, id string) (doorward.DeliveryAttempt, error) {
	select {
	case w.tests <- struct{}{}:
	default:
		return doorward.DeliveryAttempt{}, doorward.Unavailable(errors.New("webhook: too many tests at once"))
	}
	defer func() { <-w.tests }()
	hook, err := w.Get(ctx, by, id)
	if err != nil {
		return doorward.DeliveryAttempt{}, err
	}
	signer, err := w.signer(ctx, w.db.Read(), id, w.db.Now())
	if err != nil {
		return doorward.DeliveryAttempt{}, err
	}
	event := doorward.Event{
		ID: doorward.NewID(doorward.PrefixEvent), At: w.db.Now(), Action: doorward.WebhookTest, Outcome: doorward.Done,
		ActorType: by.Kind, ActorID: by.ID, ActorEmail: by.Email, Target: object(hook), RequestID: by.RequestID,
	}
	body, err := payload(hook, event)
	if err != nil {
		return doorward.DeliveryAttempt{}, err
	}
	posting, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	attempt, _ := w.post(posting, hook.URL, event.ID, body, signer)
	if attempt.Error == Late {
		attempt.Error = LateForTest
	}
	return attempt, w.change(ctx, by, doorward.WebhookTest, id, func(tx *access.Tx, _ doorward.Webhook) error {
		tx.Changed("status", "", strconv.Itoa(attempt.Status))
		if failure(attempt) != nil {
			return nil
		}
		return tx.RecordWebhookSuccess(ctx, id, attempt.Ms < quickWithin.Milliseconds())
	})
}
