package console

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// operatorTrail is the installation's own trail, as a link of "doorward audit link" shows it.
type operatorTrail struct {
	eventTable
	Actions []doorward.Action
	// ExpiresAt is when the access to this page expires.
	ExpiresAt time.Time
}

// operatorPage shows the trail, or asks for the link that opens the page.
func (h *console) operatorPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	by, expiresAt, err := h.operator(ctx, c)
	if doorward.HasCode(err, doorward.CodeUnauthenticated) {
		return h.askOperatorLink(ctx, c)
	}
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, auditFilters, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	body := operatorTrail{eventTable: eventTable{pager: pages, Label: "title"}, ExpiresAt: expiresAt}
	// Permissions are left out: their events are in the trails of tenants. The exception is
	// tenant.destroy, which is recorded here and can't be filtered for.
	for _, v := range doorward.Verbs() {
		if hasMessage(v.Action) && !v.IsPermission() {
			body.Actions = append(body.Actions, v.Action)
		}
	}
	found, err := h.app.Audit.List(ctx, by, auditFilter(pages.Filter), window)
	var shown []entry
	for _, e := range found.Items {
		shown = append(shown, entry{Event: e, MessageKey: eventKey(e), Actor: identity{ID: e.ActorID, Name: actorOf(e)}, Target: identity{ID: e.Target.ID, Name: e.Target.ID}, Fields: describeChanges(e.Changes, nil)})
	}
	body.setItems(c, shown)
	if err == nil {
		err = h.setBars(ctx, &body.eventTable, by, auditFilter(pages.Filter), c.Now())
	}
	if err == nil {
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	return badFilter(ui.View{Page: "operator", Body: body, Wide: true, Connects: true, Styles: []string{"console.css"}, Scripts: []string{"console.js"}}, err)
}

func actorOf(e doorward.Event) string {
	if e.ActorEmail != "" {
		return e.ActorEmail
	}
	return e.ActorID
}

// operator returns the caller of the page and when the access expires, by the first token that is
// valid. Errors: unauthenticated if none is, unavailable.
func (h *console) operator(ctx context.Context, c *ui.Call) (by doorward.Caller, expiresAt time.Time, err error) {
	err = doorward.Fail(doorward.CodeUnauthenticated, "")
	for _, token := range c.OperatorPages() {
		by, expiresAt, err = h.app.Installation.Page(ctx, c.Caller, token)
		if !doorward.HasCode(err, doorward.CodeUnauthenticated) {
			break
		}
	}
	return by, expiresAt, err
}

func (h *console) askOperatorLink(context.Context, *ui.Call) (ui.View, error) {
	return ui.View{Page: "operatorlink", Scripts: []string{"code.js"}}, nil
}

// openOperatorPage opens the page with the code of a link, which works once.
func (h *console) openOperatorPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	token, err := h.app.Installation.OpenPage(ctx, c.Caller, ui.PastedCode(c.Value("token")))
	if err != nil {
		return ui.View{}, err
	}
	c.SetOperatorPage(token)
	return c.To(front.OperatorPage), nil
}

func (h *console) leaveOperatorPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	for _, token := range c.OperatorPages() {
		if err := h.app.Installation.LeavePage(ctx, c.Caller, token); err != nil {
			return ui.View{}, err
		}
	}
	c.ClearOperatorPage()
	return c.To(front.OperatorPage + "?done=left"), nil
}
