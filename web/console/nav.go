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
	below []string        // templates of the pages that it leads on to
}

// navigation has every link of the console, in the order in which it is shown.
var navigation = []group{
	{"", []link{
		{"overview", "/console", "", "overview", nil},
	}},
	{"people", []link{
		{"people", "/console/people", doorward.UserRead, "people", []string{"person", "act"}},
		{"invitations", "/console/invitations", doorward.UserInvite, "invitations", []string{"invitation", "invite"}},
		{"roles", rolesPath, doorward.RoleManage, "roles", []string{"role", "roleform", "rolechange", "roleend"}},
	}},
	{"access", []link{
		{"policy", policyPath, doorward.PolicyRead, "policy", []string{"policyversions", "policyversion", "policyrestore"}},
		{"explain", explainPath, doorward.PolicyRead, "explain", nil},
	}},
	{"developers", []link{
		{"keys", "/console/keys", doorward.APIKeyManage, "keys", []string{"key", "keynew", "keysecret", "keyact"}},
		{"webhooks", webhooksPath, doorward.WebhookManage, "webhooks", []string{"webhook", "webhooknew", "webhooksecret", "webhookact", "webhookdelivery"}},
	}},
	{"organisation", []link{
		{"audit", "/console/audit", doorward.AuditRead, "audit", nil},
		{"settings", "/console/settings", doorward.TenantRead, "settings", []string{"close"}},
	}},
}

// Navigation returns the groups of the links that the caller may open.
func (s pageData) Navigation(f ui.Frame) (shown []group) {
	for _, g := range navigation {
		g.Links = slices.DeleteFunc(slices.Clone(g.Links), func(l link) bool {
			return l.needs != "" && !f.Can(l.needs)
		})
		if len(g.Links) > 0 {
			shown = append(shown, g)
		}
	}
	return shown
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
