package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/progress"
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

// Cursor is the position from which an export continues, as a text that the caller can store. The
// empty Cursor is the position before the oldest event.
type Cursor string

var errCursor = errors.New("the place to begin after is not one that \"doorward audit export\" has written for these events")

// Export returns the events of a scope after a cursor, by number within each trail, and the next
// cursor. At the end it returns no events. Errors: not_found if there is no such trail;
// events_gone; unavailable; errCursor if after is not a cursor of this scope.
func (t *Trail) Export(ctx context.Context, scope Scope, after Cursor) ([]doorward.Event, Cursor, error) {
	events, next, err := t.export(ctx, scope, after)
	progress.Add(ctx, int64(len(events)))
	return events, next, err
}

func (t *Trail) export(ctx context.Context, scope Scope, after Cursor) ([]doorward.Event, Cursor, error) {
	if !scope.All {
		return t.exportTrail(ctx, scope.TenantID, after)
	}
	var at store.FeedPosition
	if after != "" {
		if n, err := fmt.Sscanf(strings.ReplaceAll(string(after), ".", " "), "%d %d %d %s", &at.Pos, &at.Trims, &at.Seq, &at.Epoch); n != 4 || err != nil {
			return nil, after, errCursor
		}
	}
	events, next, err := t.feed(ctx, at, feedBatch, func(doorward.Event) bool { return true })
	if err != nil {
		return nil, after, err
	}
	return events, Cursor(fmt.Sprintf("%d.%d.%d.%s", next.Pos, next.Trims, next.Seq, next.Epoch)), nil
}

func (t *Trail) exportTrail(ctx context.Context, tenantID string, after Cursor) ([]doorward.Event, Cursor, error) {
	var from *int64
	if after != "" {
		seq, err := strconv.ParseInt(string(after), 10, 64)
		if err != nil || seq < 0 {
			return nil, after, errCursor
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
	return events, Cursor(strconv.FormatInt(last, 10)), nil
}
