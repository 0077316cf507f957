package console

import (
	"context"
	"net/http"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// The paths of the operator's page. All are below front.OperatorPage, where the browser sends its cookie.
const (
	operatorTenantsPath    = front.OperatorPage + "/tenants"
	operatorTrailPath      = front.OperatorPage + "/trail"
	operatorNodesPath      = front.OperatorPage + "/nodes"
	operatorMailsPath      = front.OperatorPage + "/mails"
	operatorDeliveriesPath = front.OperatorPage + "/deliveries"
)

// operatorLinks are the links of the navigation of the operator's page.
var operatorLinks = []link{
	{"tenants", front.OperatorPage, "", "operator", []string{"operatortenant", "operatoract"}},
	{"audit", operatorTrailPath, "", "operatortrail", nil},
	{"nodes", operatorNodesPath, "", "operatornodes", nil},
	{"mails", operatorMailsPath, "", "operatormails", nil},
	{"deliveries", operatorDeliveriesPath, "", "operatordeliveries", nil},
}

// opened is what all pages of an open operator's page share.
type opened struct {
	pageData
	installation.Page
}

// Links are the links of the navigation.
func (opened) Links() []link { return operatorLinks }

// May reports whether the link lets the page do the act.
func (o opened) May(act string) bool { return slices.Contains(o.Acts, act) }

// operatorHandler handles a page or a form of an open operator's page.
type operatorHandler = func(ctx context.Context, c *ui.Call, o opened) (ui.View, error)

func (h *console) operatorRoutes() []front.Route {
	show := func(path string, fn operatorHandler, filters ...string) front.Route {
		return front.On("GET "+path, front.Public(), set.Show(h.onOperatorPage(fn)), front.Doc{Query: filterParameters(filters)})
	}
	take := func(path string, take, again page) front.Route {
		return front.On("POST "+path, front.Public(), set.Take(front.OperatorPage, take, again), front.Doc{})
	}
	return []front.Route{
		show(front.OperatorPage, h.operatorTenants, operatorTenantFilters...),
		show(operatorTenantsPath+"/{id}", h.operatorTenant),
		show(operatorTenantsPath+"/{id}/{act}", h.askOperatorAct),
		take(operatorTenantsPath+"/{id}/{act}", h.onOperatorPage(h.operatorAct), h.onOperatorPage(h.askOperatorAct)),
		show(operatorTrailPath, h.operatorTrail, auditFilters...),
		show(operatorNodesPath, h.operatorNodes),
		show(operatorMailsPath, h.operatorMails, operatorMailFilters...),
		show(operatorDeliveriesPath, h.operatorDeliveries, operatorDeliveryFilters...),
		take(front.OperatorPage+"/open", h.openOperatorPage, h.askOperatorLink),
		take(front.OperatorPage+"/leave", h.leaveOperatorPage, h.askOperatorLink),
	}
}

// anotherLink is the query parameter by which the script asks for the form of a link, in place of the page that is open.
const anotherLink = "next"

// onOperatorPage returns the handler of a page for callers who have opened the operator's page. Others are asked for
// the link, also when the page has ended while the request waited. On each page the script takes the code of another
// link out of the address, else it would stay there, and in the history, unused.
func (h *console) onOperatorPage(fn operatorHandler) page {
	return func(ctx context.Context, c *ui.Call) (ui.View, error) {
		if front.Safe(c.R.Method) && c.R.URL.Query().Has(anotherLink) {
			return h.askOperatorLink(ctx, c)
		}
		o, err := h.operator(ctx, c)
		var v ui.View
		if err == nil {
			v, err = fn(ctx, c, o)
		}
		if doorward.HasCode(err, doorward.CodeUnauthenticated) {
			return h.operatorPageOver(ctx, c)
		}
		v.Wide = v.Wide || v.Page != "operatoract"
		v.Styles, v.Scripts = []string{"console.css"}, []string{"console.js", "code.js"}
		return v, err
	}
}

// operator returns the open page by the first token of the request that is valid. Errors: unauthenticated if none is,
// unavailable.
func (h *console) operator(ctx context.Context, c *ui.Call) (o opened, err error) {
	err = doorward.Fail(doorward.CodeUnauthenticated, "")
	for _, token := range c.OperatorPages() {
		o.Page, err = h.app.Installation.Page(ctx, c.Caller, token)
		if !doorward.HasCode(err, doorward.CodeUnauthenticated) {
			break
		}
	}
	o.List = listQueryOf(c)
	if c.R.URL.Query().Has("sessions") {
		o.Ended = &ended{Sessions: queryNumber(c, "sessions")}
	}
	return o, err
}

// operatorPageOver asks for a link; after a form, whose effect somebody expects, it says that the page has ended.
func (h *console) operatorPageOver(ctx context.Context, c *ui.Call) (ui.View, error) {
	v, err := h.askOperatorLink(ctx, c)
	if !front.Safe(c.R.Method) {
		v.Status, v.Note = http.StatusUnauthorized, "operatorlink.over"
	}
	return v, err
}

func (h *console) askOperatorLink(context.Context, *ui.Call) (ui.View, error) {
	return ui.View{Page: "operatorlink", Scripts: []string{"code.js"}}, nil
}

// openOperatorPage opens the page with the code of a link, which works once. It ends the one that the browser had: nobody
// has its cookie any more, unless it was stolen.
func (h *console) openOperatorPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	token, err := h.app.Installation.OpenPage(ctx, c.Caller, ui.PastedCode(c.Value("token")))
	if err != nil {
		return ui.View{}, err
	}
	c.SetOperatorPage(token)
	return c.To(front.OperatorPage), h.endOperatorPages(ctx, c)
}

func (h *console) leaveOperatorPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.endOperatorPages(ctx, c); err != nil {
		return ui.View{}, err
	}
	c.ClearOperatorPage()
	return c.To(front.OperatorPage + "?done=left"), nil
}

// endOperatorPages ends the pages whose cookies came with the request. Errors: unavailable.
func (h *console) endOperatorPages(ctx context.Context, c *ui.Call) error {
	for _, token := range c.OperatorPages() {
		if err := h.app.Installation.LeavePage(ctx, c.Caller, token); err != nil {
			return err
		}
	}
	return nil
}
