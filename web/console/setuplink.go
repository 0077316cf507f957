package console

import (
	"context"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

func (h *console) setupLinkRoutes() []front.Route {
	manage := front.Allowed(doorward.SSOManage)
	at := connectionPath + "/{id}/setup-link"
	return []front.Route{
		get(at, manage, h.askSetupLink),
		post(at, connectionPath, manage, h.makeSetupLink, h.askSetupLink),
	}
}

// setupLinkQuestion is the page that asks how long a set-up link is to work.
type setupLinkQuestion struct {
	pageData
	Connection provider
	Link       *doorward.SetupLink // that the connection has; nil: none
	Chosen     int                 // days
	HasDomain  bool                // a domain belongs to the connection, so that the link shows its record
}

// Days are the choices.
func (setupLinkQuestion) Days() (all []int) {
	for n := range doorward.SetupLinkDaysMax {
		all = append(all, n+1)
	}
	return all
}

func (h *console) askSetupLink(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	q := setupLinkQuestion{pageData: s, Chosen: doorward.SetupLinkDays}
	if q.Connection, err = h.connectionAt(ctx, c); err != nil {
		return ui.View{}, err
	}
	if typed, err := strconv.Atoi(c.Value("days")); err == nil {
		q.Chosen = typed
	}
	domains, err := h.app.Domains.OfConnection(ctx, c.Caller, q.Connection.ID)
	if err != nil {
		return ui.View{}, err
	}
	q.HasDomain = len(domains) > 0
	q.Link, err = h.setupLinkOf(ctx, c, q.Connection.ID)
	return ui.View{Page: "setuplink", Title: "sso.link", Body: q}, err
}

// setupLinkOf returns the set-up link of a connection; nil: it has none that is good now.
func (h *console) setupLinkOf(ctx context.Context, c *ui.Call, conID string) (*doorward.SetupLink, error) {
	link, isAlive, err := h.app.SetupLinks.Of(ctx, c.Caller, conID)
	if !isAlive {
		return nil, err
	}
	return &link, err
}

// madeSetupLink is the only page that shows the address of a set-up link.
type madeSetupLink struct {
	pageData
	setuplink.Made
	Connection provider
}

// makeSetupLink shows the address in its answer, which can't be loaded again.
func (h *console) makeSetupLink(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	days, err := strconv.Atoi(c.Value("days"))
	if err != nil || days == 0 {
		days = -1 // refused: 0 would be the default
	}
	made, err := h.app.SetupLinks.Make(ctx, c.Caller, p.ID, days)
	if err != nil {
		return ui.View{}, err
	}
	s, err := h.pageData(ctx, c)
	c.DropForm() // the language switch would send the form again, and the address would be lost
	return ui.View{Page: "setuplinkmade", Title: "sso.link.made.title", Scripts: []string{"secret.js"}, Body: madeSetupLink{s, made, p}}, err
}
