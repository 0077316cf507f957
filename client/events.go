package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ErrEventsGone means that events after the position are no longer kept (410). Read the
// present state from the lists, and begin again with an empty position.
var ErrEventsGone = errors.New("doorward: events after this position are no longer kept")

// Event is an event of the audit trail.
type Event struct {
	ID      string    `json:"id"`
	Seq     int64     `json:"seq"` // its number in the trail of its tenant, without gaps
	At      time.Time `json:"at"`
	Action  string    `json:"action"`
	Outcome string    `json:"outcome"` // done or refused
	Actor   struct {
		Type  string `json:"type"`
		ID    string `json:"id"`
		Email string `json:"email"`
	} `json:"actor"`
	Target struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"target"`
	TenantID  string `json:"tenantId"`
	IP        string `json:"ip"`
	RequestID string `json:"requestId"`
	Changes   []struct {
		Field string `json:"field"`
		From  string `json:"from"`
		To    string `json:"to"`
	} `json:"changes"`
}

const (
	followEvery    = time.Second      // between requests when there is nothing new
	followRetryMax = 30 * time.Second // at most between requests while there is no answer
)

// Follow calls handle with events, the oldest first, and with the position in the feed after
// them, until ctx ends or handle fails; it returns that error. The events are empty if only
// events of other types precede that position. Store the position together with what handle
// has done, and pass it as after when the program starts again; "" is the oldest event that
// is kept. No event is missed. If the program stops between handling events and storing the
// position, they come again: recognise them by ID. types selects actions, such as "user.*";
// none: all.
//
// It needs the option [OperatorKey] with a service key that may events.read, for the
// events of all tenants. While Doorward doesn't answer, or limits requests, it waits and
// goes on. Other errors end it: ErrEventsGone; ErrForbidden or ErrUnauthenticated for the key;
// status 400 or 422 for a malformed position or malformed types.
func (c *Client) Follow(ctx context.Context, after string, types []string, handle func(events []Event, next string) error) error {
	for wait := followEvery; ; {
		events, next, err := c.events(ctx, after, types)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrUnavailable), errors.Is(err, ErrRateLimited):
			var e *Error
			if errors.As(err, &e) {
				wait = max(wait, min(e.RetryAfter, followRetryMax))
			}
		case err != nil:
			return err
		case next != after:
			if err := handle(events, next); err != nil {
				return err
			}
			after, wait = next, followEvery
			continue
		default:
			wait = followEvery
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
		if err != nil {
			wait = min(2*wait, followRetryMax)
		}
	}
}

// events returns one page and the position after it.
func (c *Client) events(ctx context.Context, after string, types []string) ([]Event, string, error) {
	if c.key == nil || *c.key == "" {
		return nil, "", errors.New("client: following events needs the option OperatorKey")
	}
	query := url.Values{"limit": {"200"}}
	if after != "" {
		query.Set("after", after)
	}
	if len(types) > 0 {
		query.Set("types", strings.Join(types, ","))
	}
	a, err := c.send(ctx, call{
		method: http.MethodGet, path: "/api/v2/events?" + query.Encode(),
		header:   http.Header{"Authorization": {"Bearer " + *c.key}, "X-Request-Id": {requestID(nil)}},
		refusals: []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusGone, http.StatusUnprocessableEntity, http.StatusTooManyRequests},
	})
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Items      []Event
		NextCursor string
	}
	if json.Unmarshal(a.body, &page) != nil || page.NextCursor == "" {
		return nil, "", a.notDoorward("is no page of events")
	}
	return page.Items, page.NextCursor, nil
}
