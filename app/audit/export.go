package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// AppendLine appends an event as a line of JSON.
func AppendLine(to []byte, e doorward.Event) ([]byte, error) {
	line, err := json.Marshal(e.View())
	return append(append(to, line...), '\n'), err
}

// Scope is a trail: that of a tenant, of the installation (""), or all of them.
type Scope struct {
	TenantID string
	All      bool
}

// Place says where an export continues, as text to keep. The empty one is the oldest event
// that is kept.
type Place string

var errPlace = errors.New("the place to begin after is not one that \"doorward audit export\" has written for these events")

// Export returns events of a scope after a place, by number within each trail, and the next
// place. At the end there are no events. Errors: not_found for a trail that isn't there;
// events_gone; unavailable; errPlace if after is not a place of this scope.
func (t *Trail) Export(ctx context.Context, of Scope, after Place) ([]doorward.Event, Place, error) {
	if !of.All {
		return t.exportTrail(ctx, of.TenantID, after)
	}
	var at store.FeedPosition
	if after != "" {
		if n, err := fmt.Sscanf(strings.ReplaceAll(string(after), ".", " "), "%d %d %d %s", &at.Pos, &at.Trims, &at.Seq, &at.Epoch); n != 4 || err != nil {
			return nil, after, errPlace
		}
	}
	events, next, err := t.feed(ctx, at, feedBatch, func(doorward.Event) bool { return true })
	if err != nil {
		return nil, after, err
	}
	return events, Place(fmt.Sprintf("%d.%d.%d.%s", next.Pos, next.Trims, next.Seq, next.Epoch)), nil
}

func (t *Trail) exportTrail(ctx context.Context, tenantID string, after Place) ([]doorward.Event, Place, error) {
	var from *int64
	if after != "" {
		seq, err := strconv.ParseInt(string(after), 10, 64)
		if err != nil || seq < 0 {
			return nil, after, errPlace
		}
		from = &seq
	}
	by := doorward.Caller{Principal: doorward.Principal{TenantID: tenantID}}
	events, last, err := t.Feed(ctx, by, from, "", feedBatch)
	if err != nil {
		return nil, after, err
	}
	if len(events) == 0 && from == nil && tenantID != "" { // even a trail whose events were all deleted has a chain
		if _, err := t.db.Read().Chain(ctx, tenantID); errors.Is(err, store.ErrNone) {
			return nil, after, noTrail()
		} else if err != nil {
			return nil, after, err
		}
	}
	return events, Place(strconv.FormatInt(last, 10)), nil
}
