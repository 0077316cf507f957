package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/web/front"
)

type deliveryView struct {
	ID       string                 `json:"id" example:"whd_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	EventID  string                 `json:"eventId" example:"evt_3mq7m5x3yh4n6rj7wd2c5tpae7"`
	Type     doorward.Action        `json:"type" example:"user.invite"`
	State    doorward.DeliveryState `json:"state" enum:"pending,delivered,failed,dropped" doc:"failed: retries are used up. dropped: the webhook was disabled, or its tenant frozen or closed"`
	Attempts []attemptView          `json:"attempts"`
	NextAt   *time.Time             `json:"nextAt,omitempty" doc:"When the next attempt is due, while the delivery is pending"`
}

type attemptView struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty" doc:"The status of the endpoint's answer; absent if there was none"`
	Ms     int64     `json:"ms"`
	Error  string    `json:"error,omitempty" doc:"Why there is no answer"`
	Answer string    `json:"answer,omitempty" doc:"The first KiB of the endpoint's answer"`
}

type deliveryList struct {
	Items []deliveryView `json:"items"`
	front.PageInfo
}

func viewDelivery(d doorward.WebhookDelivery) deliveryView {
	v := deliveryView{ID: d.ID, EventID: d.EventID, Type: d.Type, State: d.State, Attempts: []attemptView{}, NextAt: d.NextAt}
	for _, attempt := range d.Attempts {
		v.Attempts = append(v.Attempts, attemptView(attempt))
	}
	return v
}

var docDeliveries = front.Doc{
	ID: "listWebhookDeliveries", Tag: "Webhooks", Summary: "List the deliveries of a webhook",
	Description: "The newest first, as long as they are kept (`--keep-deliveries`).",
	List:        true,
	Sort:        []string{"createdAt"},
	Query:       []front.Parameter{{Name: "state", Description: "Only deliveries in this state", Enum: []string{"pending", "delivered", "failed", "dropped"}}},
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) deliveries(ctx context.Context, c *front.Call, _ front.None) (out deliveryList, err error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return out, err
	}
	state, window, err := deliveryQuery(ctx, c)
	if doorward.HasCode(err, doorward.CodeValidationFailed) {
		if _, absent := a.app.Webhooks.Get(ctx, c.Caller, id); absent != nil { // 404 comes before 422
			err = absent
		}
	}
	if err != nil {
		return out, err
	}
	page, err := a.app.Webhooks.Deliveries(ctx, c.Caller, id, state, window)
	if err != nil {
		return out, err
	}
	out.Items, out.PageInfo, err = front.Show(ctx, c, page, viewDelivery)
	return out, err
}

func deliveryQuery(ctx context.Context, c *front.Call) (state string, w doorward.Window, err error) {
	if w, err = c.Window(ctx); err == nil {
		state, err = c.Filter("state")
	}
	return state, w, err
}

var docRetryDelivery = front.Doc{
	ID: "retryWebhookDelivery", Tag: "Webhooks", Summary: "Try a delivery again now",
	Description: "In any state: one that was delivered is sent once more, with the same `webhook-id`.",
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodeWebhookDisabled, doorward.CodeQuotaExceeded},
}

func (a *api) retryDelivery(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixDelivery)
	if err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.Webhooks.Retry(ctx, c.Caller, id)
}

type replayInput struct {
	After  *front.Int `json:"after,omitempty" minimum:"0" doc:"Only events with a greater seq; for a tenant's webhook"`
	From   *string    `json:"from,omitempty" format:"date-time" example:"2026-03-02T09:30:00Z" doc:"Only events at this time or later (RFC 3339)"`
	To     *string    `json:"to,omitempty" format:"date-time" example:"2026-03-03T09:30:00Z" doc:"Only events before this time (RFC 3339)"`
	Events []string   `json:"events,omitempty" doc:"Only events that match one of these patterns and one of the webhook's own"`
}

// OptionalBody implements front.OptionalBody.
func (replayInput) OptionalBody() {}

type replayResult struct {
	Queued int64 `json:"queued"`
}

var docReplay = front.Doc{
	ID: "replayWebhook", Tag: "Webhooks", Summary: "Send events of the past again",
	Description: "Those that the webhook's patterns match and that are kept, the oldest first, at most 10,000: send the next with another `after` or `from`.",
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodeWebhookDisabled, doorward.CodeQuotaExceeded},
}

func (a *api) replay(ctx context.Context, c *front.Call, in replayInput) (replayResult, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return replayResult{}, err
	}
	r := webhook.Replay{After: (*int64)(in.After), Events: in.Events}
	if r.From, err = instant("/from", in.From); err != nil {
		return replayResult{}, err
	}
	if r.To, err = instant("/to", in.To); err != nil {
		return replayResult{}, err
	}
	queued, err := a.app.Webhooks.Replay(ctx, c.Caller, id, r)
	return replayResult{queued}, err
}

// instant reads a time of a body; nil if it is absent.
func instant(pointer string, text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // it is optional
	}
	at, err := doorward.ParseTime(*text)
	if err != nil {
		return nil, doorward.Invalid(pointer, "invalid", "Write a time as RFC 3339 has it: 2031-05-06T12:00:00Z.")
	}
	return &at, nil
}
