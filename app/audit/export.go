package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// record is an event as Export writes it: the members that the API has, and seq.
type record struct {
	ID        string            `json:"id"`
	Seq       int64             `json:"seq"`
	At        time.Time         `json:"at"`
	Action    doorward.Action   `json:"action"`
	Outcome   doorward.Outcome  `json:"outcome"`
	Actor     recordActor       `json:"actor"`
	Target    recordTarget      `json:"target"`
	TenantID  string            `json:"tenantId"`
	IP        string            `json:"ip"`
	RequestID string            `json:"requestId"`
	Changes   []doorward.Change `json:"changes,omitempty"`
}

type recordActor struct {
	Type  doorward.PrincipalKind `json:"type"`
	ID    string                 `json:"id,omitempty"`
	Email string                 `json:"email,omitempty"`
}

type recordTarget struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// AppendLine appends an event as a line of JSON.
func AppendLine(to []byte, e doorward.Event) ([]byte, error) {
	line, err := json.Marshal(record{
		ID: e.ID, Seq: e.Seq, At: e.At, Action: e.Action, Outcome: e.Outcome,
		Actor:  recordActor{e.ActorType, e.ActorID, e.ActorEmail},
		Target: recordTarget{e.Target.Type, e.Target.ID}, TenantID: e.Target.TenantID, IP: e.IP, RequestID: e.RequestID, Changes: e.Changes,
	})
	return append(append(to, line...), '\n'), err
}

// Scope is a trail: that of a tenant, of the installation (""), or all of them.
type Scope struct {
	TenantID string
	All      bool
}

// Place is where an export goes on, as text to keep. The empty one is the oldest event
// that is kept.
type Place string

var errPlace = errors.New("it is not a place that \"doorward audit export\" has written for these events")

// Export returns events of a scope after a place, the oldest first, and the next place;
// at the end none. Errors: events_gone, unavailable, and of a place that isn't one.
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
	return events, Place(strconv.FormatInt(last, 10)), nil
}
