package console

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// operatorTrail is the installation's own trail.
type operatorTrail struct {
	opened
	eventTable
	Actions []doorward.Action
}

// operatorTrail shows the trail.
func (h *console) operatorTrail(ctx context.Context, c *ui.Call, o opened) (ui.View, error) {
	pages, window, err := readWindow(ctx, c, auditFilters, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	body := operatorTrail{opened: o, eventTable: eventTable{pager: pages, Label: "title"}}
	// Permissions are left out: their events are in the trails of tenants. The exception is
	// tenant.destroy, which is recorded here and can't be filtered for.
	for _, v := range doorward.Verbs() {
		if hasMessage(v.Action) && !v.IsPermission() {
			body.Actions = append(body.Actions, v.Action)
		}
	}
	found, err := h.app.Audit.List(ctx, o.By, auditFilter(pages.Filter), window)
	var shown []entry
	for _, e := range found.Items {
		shown = append(shown, entry{Event: e, MessageKey: eventKey(e), Actor: identity{ID: e.ActorID, Name: actorOf(e)}, Target: identity{ID: e.Target.ID, Name: e.Target.ID}, Fields: describeFields(e, nil)})
	}
	body.setItems(c, shown)
	if err == nil {
		err = h.setBars(ctx, &body.eventTable, o.By, auditFilter(pages.Filter), c.Now())
	}
	if err == nil {
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	return badFilter(ui.View{Page: "operatortrail", Body: body, Connects: true}, err)
}

func actorOf(e doorward.Event) string {
	if e.ActorEmail != "" {
		return e.ActorEmail
	}
	return e.ActorID
}
