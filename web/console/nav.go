package console

import (
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// group is a group of links in the navigation. The first one has no name: its links
// come before all headings.
type group struct {
	Name  string // of the message nav.group.Name; empty for none
	Links []link
}

// link leads to a list or a page of its own.
type link struct {
	Name  string          // of the message nav.Name
	Path  string          // below the path of the base URL
	needs doorward.Action // empty: every member may open it
	page  string          // name of its template
	below []string        // templates of the pages below that page
}

// navigation has every link of the console, in the order in which it is shown.
var navigation = []group{
	{"", []link{
		{"overview", "/console", "", "overview", nil},
	}},
	{"people", []link{
		{"people", "/console/people", doorward.UserRead, "people", []string{"person", "act"}},
		{"invitations", "/console/invitations", doorward.UserInvite, "invitations", []string{"invitation", "invite", "preview"}},
		{"roles", rolesPath, doorward.RoleManage, "roles", []string{"role", "roleform", "rolechange", "roleend"}},
	}},
	{"access", []link{
		{"policy", policyPath, doorward.PolicyRead, "policy", []string{"policyversions", "policyversion", "policyrestore"}},
		{"explain", explainPath, doorward.PolicyRead, "explain", nil},
		{"sso", ssoPath, doorward.SSOManage, "connections", []string{"connection", "connectionnew", "connectionact", "domains", "domain", "domainend", "ssopolicy", "ssopolicyact", "setuplink", "setuplinkmade"}},
	}},
	{"developers", []link{
		{"keys", "/console/keys", doorward.APIKeyManage, "keys", []string{"key", "keynew", "keysecret", "keyact"}},
		{"webhooks", webhooksPath, doorward.WebhookManage, "webhooks", []string{"webhook", "webhooknew", "webhooksecret", "webhookact", "webhookdelivery"}},
	}},
	{"organisation", []link{
		{"audit", auditPath, doorward.AuditRead, "audit", nil},
		{"settings", "/console/settings", doorward.TenantRead, "settings", []string{"close", "demand"}},
	}},
}

// icons are the shapes of the links' icons, in a square of 24 units.
var icons = map[string]string{
	"overview":    "M3.5 11 12 4l8.5 7M6 9.5V20h12V9.5",
	"people":      "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20c.6-3.6 3-5.5 6.5-5.5s5.9 1.9 6.5 5.5M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.9c2 .8 3.1 2.5 3.5 5.1",
	"invitations": "M3.5 6h17v12.5h-17ZM4 6.5l8 6.5 8-6.5",
	"roles":       "M12 3l7.5 3v5.5c0 4.6-3 7.8-7.5 9.5-4.5-1.7-7.5-4.9-7.5-9.5V6Z",
	"policy":      "M6 3h8.5L19 7.5V21H6ZM14 3v5h5M9 12.5h6.5M9 16.5h6.5",
	"explain":     "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM9.5 9.6a2.5 2.5 0 1 1 3.7 2.1c-.8.5-1.2 1-1.2 1.9M12 16.9v.1",
	"sso":         "M10 4h8.5v16H10M4 12h10M10.5 8.5 14 12l-3.5 3.5",
	"connections": "M10 4h8.5v16H10M4 12h10M10.5 8.5 14 12l-3.5 3.5",
	"domains":     "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM3.5 12h17M12 3c2.6 2.7 3.7 5.6 3.7 9s-1.1 6.3-3.7 9c-2.6-2.7-3.7-5.6-3.7-9S9.4 5.7 12 3Z",
	"keys":        "M8 15.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM12.5 11H21v3.5M17 11v3",
	"webhooks":    "M13 3 5.5 13.5h6L10.5 21l8-11h-6Z",
	"audit":       "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5.5l3.5 2",
	"session":     "M14 4h5v16h-5M3.5 12h10M10 8l4 4-4 4",
	"factor":      "M7 3h10v18H7ZM11 17.5h2",
	"tenants":     "M4 20V5.5h9V20M13 10h7v10M2.5 20h19M7 9h3M7 13h3M7 17h3M16.5 14v.1M16.5 17v.1",
	"nodes":       "M4 4.5h16v6H4ZM4 13.5h16v6H4ZM7.5 7.5v.1M7.5 16.5v.1",
	"mails":       "M3.5 6h17v12.5h-17ZM4 6.5l8 6.5 8-6.5",
	"deliveries":  "M13 3 5.5 13.5h6L10.5 21l8-11h-6Z",
	"settings":    "M4 7h9M17 7h3M4 17h3M11 17h9M15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
}

// Monogram stands for the tenant, in place of a logo.
func (s pageData) Monogram() doorward.Monogram { return doorward.MonogramOf(s.Tenant) }

// PageIcon is the shape of the icon of the list that the page belongs to.
func (s pageData) PageIcon(f ui.Frame) string {
	if f.Page == "domain" {
		return icons["domains"] // as the search shows it
	}
	for _, g := range navigation {
		for _, l := range g.Links {
			if l.Current(f) != "" {
				return l.Icon()
			}
		}
	}
	return ""
}

// Icon is the shape of the link's icon.
func (l link) Icon() string { return icons[l.Name] }

// shownGroup is a group of links as a page shows it.
type shownGroup struct {
	Name  string
	Links []shownLink
}

// shownLink is a link that the role of the caller allows.
type shownLink struct {
	link
	Refused string // which policy refuses it, and why; empty if none does
}

// Navigation returns the groups of the links that the role of the caller allows. Those that a policy refuses
// say so, and lead nowhere.
func (s pageData) Navigation(f ui.Frame) (shown []shownGroup, err error) {
	for _, g := range navigation {
		one := shownGroup{Name: g.Name}
		for _, l := range g.Links {
			refused, err := "", error(nil)
			if l.needs != "" && !f.Can(l.needs) {
				if refused, err = f.RefusedByPolicy(l.needs); err != nil {
					return nil, err
				}
				if refused == "" {
					continue
				}
			}
			one.Links = append(one.Links, shownLink{l, refused})
		}
		if len(one.Links) > 0 {
			shown = append(shown, one)
		}
	}
	return shown, nil
}

// Current returns the value of aria-current on the page of the frame: "page" if the
// link leads to it, "true" if the page is below it, or else "".
func (l link) Current(f ui.Frame) string {
	switch {
	case l.page == f.Page:
		return "page"
	case slices.Contains(l.below, f.Page):
		return "true"
	}
	return ""
}
