package api

import (
	"context"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

type feedView struct {
	Items      []doorward.EventView `json:"items"`
	NextCursor string               `json:"nextCursor" example:"1042" doc:"Send as after to go on, at once or later; always there. Within a tenant it is the last seq that was looked at"`
}

var docEvents = front.Doc{
	ID: "followEvents", Tag: "Audit", Summary: "Read events in order: those after a position, the oldest first",
	Description: "A program that follows a tenant, or all tenants, keeps `nextCursor` and sends it as `after`. Without `after` it begins with the oldest event that is kept. No event is missed, whenever it is committed. Within a tenant `after` is a `seq`. A service key with `events.read` that names no tenant gets the events of all tenants that it covers, and of the installation's trail those about tenants; `after` is then an opaque cursor, and the events of each tenant come in the order of `seq`.",
	Query: []front.Parameter{
		{Name: "after", Description: "Only events after this place: nextCursor of an earlier answer", Example: "1042", Unbound: true},
		{Name: "limit", Description: "How many events, 1 to 200; 50 if absent", Example: "50", Unbound: true},
		{Name: "types", Description: "Only these actions, separated by commas; user.* are all that begin with user.", Example: "user.*,session.open", Unbound: true},
	},
	Errors: []doorward.Code{doorward.CodeInvalidQuery, doorward.CodeValidationFailed, doorward.CodeInvalidCursor, doorward.CodeEventsGone},
}

func (a *api) events(ctx context.Context, c *front.Call, _ front.None) (feedView, error) {
	if err := c.RefuseUnknownParameters(); err != nil {
		return feedView{}, err
	}
	limit, err := c.Limit()
	if err != nil {
		return feedView{}, err
	}
	types, err := c.Filter("types")
	if err != nil {
		return feedView{}, err
	}
	after, err := c.Filter("after")
	if err != nil {
		return feedView{}, err
	}
	if c.Caller.TenantID == "" {
		return a.eventsOfAllTenants(ctx, c, after, types, limit)
	}
	return a.eventsOfTenant(ctx, c, after, types, limit)
}

func (a *api) eventsOfTenant(ctx context.Context, c *front.Call, after, types string, limit int) (feedView, error) {
	var from *int64
	if after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil || n < 0 {
			return feedView{}, doorward.InvalidFields(doorward.FieldError{Parameter: "after", Code: "invalid", Message: "Send the number of an event, seq, or nextCursor of an earlier answer."})
		}
		from = &n
	}
	events, last, err := a.app.Audit.Feed(ctx, c.Caller, from, types, limit)
	return viewFeed(events, strconv.FormatInt(last, 10)), err
}

func (a *api) eventsOfAllTenants(ctx context.Context, c *front.Call, after, types string, limit int) (feedView, error) {
	var at doorward.Position
	if after != "" {
		var err error
		if at, err = c.OpenCursor(ctx, after); err != nil {
			return feedView{}, err
		}
	}
	events, next, err := a.app.Audit.FeedAll(ctx, c.Caller, at, types, limit)
	if err != nil {
		return feedView{}, err
	}
	cursor, err := c.Cursor(ctx, &next)
	return viewFeed(events, cursor), err
}

func viewFeed(events []doorward.Event, next string) feedView {
	v := feedView{Items: make([]doorward.EventView, 0, len(events)), NextCursor: next}
	for _, e := range events {
		v.Items = append(v.Items, e.View())
	}
	return v
}
