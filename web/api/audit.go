package api

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/web/front"
)

// viewEvent returns the event without seq, which only the feed, webhooks and exports have.
func viewEvent(e doorward.Event) doorward.EventView {
	v := e.View()
	v.Seq = nil
	return v
}

type eventList struct {
	Items []doorward.EventView `json:"items"`
	front.PageInfo
}

var docAuditEvents = front.Doc{
	ID: "listAuditEvents", Tag: "Audit", Summary: "List what was done and refused in the tenant",
	Description: "The newest first. Pages neither repeat nor skip events that are added in between. With `format=csv` the answer is a file for spreadsheets, for which a session needs a recent proof of identity: a header line, then a line for each event, `changes` as JSON, and names and addresses of actor and target as they are in the tenant now; text that a spreadsheet would take for a formula begins with an apostrophe. With an operator key, of a limited one with `events.read`, the list has the events of all tenants and of the installation, by time and then by id; `actor` then finds an address by the account that has it now, and one that nobody has and no event is refused.",
	List:        true,
	Sort:        []string{"at"},
	Query: []front.Parameter{
		{Name: "action", Description: "Only events of this action", Example: "user.role"},
		{Name: "actor", Description: "Only events by this user, key, connection or set-up link: the id, or the address of a user; `operator`: only those by the operator; a system user such as `root@db1`: only commands that it has run at the operator's terminal. What can be none of these is 422", Example: "ann@acme.example"},
		{Name: "target", Description: "Only events about the object with this id"},
		{Name: "from", Description: "Only events at this time or later (RFC 3339)", Example: "2031-05-06T12:00:00Z"},
		{Name: "to", Description: "Only events before this time (RFC 3339)", Example: "2031-05-07T12:00:00Z"},
		{Name: "outcome", Description: "Only events with this outcome", Enum: []string{"done", "refused"}},
		{Name: "ip", Description: "Only events from this address of a client, exactly", Example: "192.0.2.7"},
		{Name: "request", Description: "Only events of the request with this id, as in X-Request-Id"},
		csvFormat,
	},
	Errors: []doorward.Code{doorward.CodeStepUpRequired},
}

// docInstallationEvents describes the same list for the events that belong to no tenant.
func docInstallationEvents() front.Doc {
	d := docAuditEvents
	d.ID, d.Summary, d.Errors = "listInstallationEvents", "List what was done and refused in the installation itself", nil
	d.Description, _, _ = strings.Cut(d.Description, " With an operator key")
	d.Description = "The trail that belongs to no tenant: keys of operators and services, models, backups, pauses, destroyed tenants, refused requests without one. " + d.Description
	return d
}

// listEvents is a list of events, such as audit.Trail.List.
type listEvents func(context.Context, doorward.Caller, audit.Filter, doorward.Window) (doorward.Page[doorward.Event], error)

// trailOf returns the list of the tenant's events, or for the operator of all.
func (a *api) trailOf(c *front.Call) listEvents {
	if c.Caller.Kind == doorward.Operator {
		return a.app.Audit.ListAll
	}
	return a.app.Audit.List
}

func (a *api) auditEvents(ctx context.Context, c *front.Call, _ front.None) (eventList, error) {
	return viewEvents(ctx, c, a.trailOf(c))
}

func (a *api) installationEvents(ctx context.Context, c *front.Call, _ front.None) (eventList, error) {
	return viewEvents(ctx, c, a.app.Audit.List)
}

func viewEvents(ctx context.Context, c *front.Call, list listEvents) (out eventList, err error) {
	window, err := c.Window(ctx)
	if err != nil {
		return out, err
	}
	page, err := auditPage(ctx, c, list, window)
	if err != nil {
		return out, err
	}
	out.Items, out.PageInfo, err = front.Show(ctx, c, page, viewEvent)
	return out, err
}

func auditPage(ctx context.Context, c *front.Call, list listEvents, w doorward.Window) (doorward.Page[doorward.Event], error) {
	var f audit.Filter
	err := c.Filters(
		front.To("action", &f.Action), front.To("actor", &f.Actor), front.To("target", &f.Target), front.To("from", &f.From),
		front.To("to", &f.To), front.To("outcome", &f.Outcome), front.To("ip", &f.IP), front.To("request", &f.Request),
	)
	if err != nil {
		return doorward.Page[doorward.Event]{}, err
	}
	return list(ctx, c.Caller, f, w)
}

// auditColumns are the names in the first line of the CSV.
var auditColumns = []string{
	"id", "at", "action", "outcome", "actorType", "actorId", "actorEmail",
	"targetType", "targetId", "tenantId", "ip", "requestId", "changes", "actorName", "targetName", "targetEmail",
}

func (a *api) auditRows(ctx context.Context, c *front.Call, w doorward.Window) ([][]string, *doorward.Position, error) {
	return a.eventRows(ctx, c, a.trailOf(c), w)
}

func (a *api) installationRows(ctx context.Context, c *front.Call, w doorward.Window) ([][]string, *doorward.Position, error) {
	return a.eventRows(ctx, c, a.app.Audit.List, w)
}

func (a *api) eventRows(ctx context.Context, c *front.Call, list listEvents, w doorward.Window) ([][]string, *doorward.Position, error) {
	page, err := auditPage(ctx, c, list, w)
	if err != nil {
		return nil, nil, err
	}
	names, err := a.app.Audit.Names(ctx, c.Caller, page.Items)
	rows := [][]string{append([]string(nil), auditColumns...)}
	for _, e := range page.Items {
		v := viewEvent(e)
		changes, err := json.Marshal(append([]doorward.Change{}, v.Changes...))
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, []string{
			v.ID, v.At.Format(time.RFC3339Nano), string(v.Action), string(v.Outcome), string(v.Actor.Type), v.Actor.ID, v.Actor.Email,
			v.Target.Type, v.Target.ID, v.TenantID, v.IP, v.RequestID, string(changes),
			names[v.Actor.ID].Name, names[v.Target.ID].Name, names[v.Target.ID].Email,
		})
	}
	return rows, page.Next, err
}
