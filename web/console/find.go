package console

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/web/ui"
)

// findPath is the page that searches pages, people, keys, webhooks and roles. The script shows its
// results on every page.
const findPath = "/console/find"

// maxHits is how many results of a kind are shown.
const maxHits = 8

// findPage is the content of the page with the results of a search.
type findPage struct {
	pageData
	Query  string
	Groups []foundGroup // those with results
}

// Count is how many results there are.
func (p findPage) Count() (n int) {
	for _, g := range p.Groups {
		n += len(g.Items)
	}
	return n
}

// foundGroup are the results of a kind.
type foundGroup struct {
	Name  string // of the message nav.Name, and of the icon
	Items []found
	More  string // link to the list, if it has more results; else empty
}

// Icon is the shape of a result's icon.
func (g foundGroup) Icon(one found) string { return cmp.Or(one.Icon, icons[g.Name]) }

// found is a result.
type found struct {
	Path   string // below the path of the base URL
	Name   string
	Detail string // text beside the name; empty for none
	State  string // key of a message; empty for a usual state
	Person *ui.Avatar
	Icon   string // shape of its icon, if that isn't the group's
}

// otherPages can be found, too, but aren't in the navigation. Their names are keys of messages.
var otherPages = []struct {
	name, path string
	needs      doorward.Action
	icon       string
}{
	{"invite.link", invitationsPath + "/new", doorward.UserInvite, "invitations"},
	{"rolenew.title", rolesPath + "/new", doorward.RoleManage, "roles"},
	{"keynew.title", "/console/keys/new", doorward.APIKeyManage, "keys"},
	{"hooknew.title", webhooksPath + "/new", doorward.WebhookManage, "webhooks"},
	{"sso.new", ssoPath + "/new", doorward.SSOManage, "sso"},
	{"sso.domains", domainsPath, doorward.SSOManage, "domains"},
	{"sso.policy", ssoPolicyPath, doorward.SSOManage, "sso"},
	{"nav.account", "/account", "", "people"},
}

// find shows what the caller may see of what has the words of q; without words, the pages.
func (h *console) find(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	q, err := c.Filter("q")
	body := findPage{pageData: s, Query: q}
	if err == nil {
		body.Groups, err = h.findAll(ctx, c, q)
	}
	return badFilter(ui.View{Page: "find", Body: body, Wide: true}, err)
}

// findAll returns the groups with results.
func (h *console) findAll(ctx context.Context, c *ui.Call, q string) (all []foundGroup, err error) {
	kinds := []struct {
		needs doorward.Action
		find  func(context.Context, *ui.Call, string) (foundGroup, error)
	}{
		{"", findPages},
		{doorward.UserRead, h.findPeople},
		{doorward.APIKeyManage, h.findKeys},
		{doorward.WebhookManage, h.findWebhooks},
		{doorward.RoleManage, h.findRoles},
		{doorward.SSOManage, h.findConnections},
		{doorward.SSOManage, h.findDomains},
	}
	if len(fold.Words(q)) == 0 {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		if kind.needs != "" && !c.Can(kind.needs) {
			continue
		}
		g, err := kind.find(ctx, c, q)
		if err != nil {
			return nil, err
		}
		if len(g.Items) > 0 {
			all = append(all, g)
		}
	}
	return all, nil
}

// findPages returns the pages whose names have the words; without words, those of the navigation.
func findPages(_ context.Context, c *ui.Call, q string) (foundGroup, error) {
	g := foundGroup{Name: "pages"}
	add := func(key, path string, needs doorward.Action, icon string) error {
		name, err := c.Text(key)
		if err == nil && (needs == "" || c.Can(needs)) && hasWords(q, name) {
			g.Items = append(g.Items, found{Path: path, Name: name, Icon: icons[icon]})
		}
		return err
	}
	for _, group := range navigation {
		for _, l := range group.Links {
			if err := add("nav."+l.Name, l.Path, l.needs, l.Name); err != nil {
				return g, err
			}
		}
	}
	if len(fold.Words(q)) == 0 {
		return g, nil
	}
	for _, p := range otherPages {
		if err := add(p.name, p.path, p.needs, p.icon); err != nil {
			return g, err
		}
	}
	g.Items = g.Items[:min(len(g.Items), maxHits)]
	return g, nil
}

func (h *console) findPeople(ctx context.Context, c *ui.Call, q string) (foundGroup, error) {
	g := foundGroup{Name: "people"}
	page, err := h.app.Users.List(ctx, c.Caller, user.Filter{Text: q}, doorward.Window{Limit: maxHits})
	for _, u := range page.Items {
		one := found{Path: peoplePath + "/" + u.ID, Name: displayName(u), Person: &ui.Avatar{Name: u.Name, Email: u.Email, ID: u.ID}}
		if u.Name != "" {
			one.Detail = u.Email
		}
		if u.Status == doorward.UserSuspended {
			one.State = "status.suspended"
		}
		g.Items = append(g.Items, one)
	}
	if page.Next != nil {
		g.More = listOf(peoplePath, q)
	}
	return g, err
}

func (h *console) findKeys(ctx context.Context, c *ui.Call, q string) (foundGroup, error) {
	g := foundGroup{Name: "keys"}
	page, err := h.app.APIKeys.List(ctx, c.Caller, apikey.Filter{Text: q}, doorward.Window{Limit: maxHits})
	for _, k := range page.Items {
		one := found{Path: "/console/keys/" + k.ID, Name: k.Name}
		if status := k.StatusAt(c.Now()); status != doorward.APIKeyActive {
			one.State = "status." + string(status)
		}
		g.Items = append(g.Items, one)
	}
	if page.Next != nil {
		g.More = listOf("/console/keys", q)
	}
	return g, err
}

func (h *console) findWebhooks(ctx context.Context, c *ui.Call, q string) (foundGroup, error) {
	g := foundGroup{Name: "webhooks"}
	all, err := h.endpoints(ctx, c)
	for _, w := range all {
		if !hasWords(q, w.URL) {
			continue
		}
		item := found{Path: webhooksPath + "/" + w.ID, Name: w.Host(), Detail: w.URL}
		if state := w.State(); state != "active" {
			item.State = "status." + state
		}
		g.add(item, webhooksPath)
	}
	return g, err
}

func (h *console) findRoles(ctx context.Context, c *ui.Call, q string) (foundGroup, error) {
	g := foundGroup{Name: "roles"}
	all, err := h.app.Roles.List(ctx, c.Caller)
	for _, r := range all {
		name, err := c.RoleName(r.Name)
		if err != nil {
			return g, err
		}
		if hasWords(q, name, string(r.Name), r.About) {
			g.add(found{Path: rolesPath + "/" + r.ID, Name: name, Detail: r.About}, rolesPath)
		}
	}
	return g, err
}

func (h *console) findConnections(ctx context.Context, c *ui.Call, q string) (foundGroup, error) {
	g := foundGroup{Name: "connections"}
	all, err := h.connectionsOf(ctx, c)
	for _, one := range all {
		item := found{Path: connectionPath + "/" + one.ID, Name: one.Name, Detail: ui.ProductName(one.Product)}
		if one.Status != doorward.ConnectionActive {
			item.State = "sso.state." + string(one.Status)
		}
		if hasWords(q, one.Name, item.Detail, one.InForce.Issuer) {
			g.add(item, ssoPath)
		}
	}
	return g, err
}

func (h *console) findDomains(ctx context.Context, c *ui.Call, q string) (foundGroup, error) {
	g := foundGroup{Name: "domains"}
	page, err := h.app.Domains.List(ctx, c.Caller, doorward.Window{Limit: doorward.DomainsMax})
	for _, d := range page.Items {
		item := found{Path: domainsPath + "/" + d.ID, Name: d.Name}
		if d.Status != doorward.DomainVerified {
			item.State = "sso.proof." + string(d.Status)
		}
		if hasWords(q, d.Name) {
			g.add(item, domainsPath)
		}
	}
	return g, err
}

// add adds a result of a list with one page, up to maxHits.
func (g *foundGroup) add(one found, list string) {
	if len(g.Items) == maxHits {
		g.More = list
		return
	}
	g.Items = append(g.Items, one)
}

// listOf returns the path of the list with the search.
func listOf(path, q string) string { return path + "?" + url.Values{"q": {q}}.Encode() }

// hasWords reports whether the texts have each word of the query, without regard to case and accents.
func hasWords(q string, texts ...string) bool {
	text := fold.Text(strings.Join(texts, " "))
	for _, word := range fold.Words(q) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
