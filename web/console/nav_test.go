package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"testing"
)

var (
	navElement = regexp.MustCompile(`(?s)<nav class="nav".*?</nav>`)
	navHeading = regexp.MustCompile(`<p id="nav-([a-z]+)">`)
	navLink    = regexp.MustCompile(`<a href="([^"]+)"( aria-current="page")?`)
)

// linksOf returns the links of the navigation on a page, and the current one.
func linksOf(page string) (links, current []string) {
	for _, found := range navLink.FindAllStringSubmatch(navElement.FindString(page), -1) {
		links = append(links, found[1])
		if found[2] != "" {
			current = append(current, found[1])
		}
	}
	return links, current
}

// Each role sees the links that it may open, and no others; each link is the current
// one on its page.
func TestNavigation(t *testing.T) {
	h := newFixture(t)
	members := []string{"/console", "/console/people", "/console/settings"}
	managers := []string{"/console", "/console/people", "/console/invitations", "/console/roles", "/console/policy", "/console/explain", "/console/keys", "/console/webhooks", "/console/audit", "/console/settings"}
	owners := slices.Insert(slices.Clone(managers), slices.Index(managers, "/console/keys"), "/console/sso")
	for role, want := range map[string][]string{"OWNER": owners, "ADMIN": managers, "USER": members, "VIEWER": members} {
		b := h.browserOf(t, role)
		links, _ := linksOf(b.get("/console", 200))
		if !slices.Equal(links, want) {
			t.Errorf("%s: links %v, want %v", role, links, want)
		}
		for _, path := range links {
			page := b.get(path, 200)
			if _, current := linksOf(page); !slices.Equal(current, []string{path}) {
				t.Errorf("%s: current on %s: %v", role, path, current)
			}
		}
	}
}

// What a policy refuses stays in the menu, without a link and with the reason; what a role lacks doesn't.
// The refused page, and one that doesn't exist, have the navigation, too.
func TestNavigationUnderPolicies(t *testing.T) {
	h := newFixture(t)
	putPolicy(t, h, `@id("quiet") @reason("No <invitations> before May.") forbid(principal in Role::"ADMIN", action == Action::"user.invite", resource);`)
	b := h.browserOf(t, "ADMIN")
	page := b.get("/console", http.StatusOK, `<span class="closed" title="Your role allows this, but the policy “quiet” refuses it: No &lt;invitations&gt; before May.">`)
	if links, _ := linksOf(page); slices.Contains(links, "/console/invitations") || !slices.Contains(links, "/console/roles") {
		t.Errorf("links %v", links)
	}
	want := []string{"A policy refuses this", "the policy “quiet” refuses it: No &lt;invitations&gt; before May.", "name this request", `href="/console/roles"`}
	b.get("/console/invitations", http.StatusForbidden, want...)
	b.post("/console/invitations/new", url.Values{"people": {"x@acme.example"}, "role": {"USER"}, "expiresInDays": {"7"}}, http.StatusForbidden, want...)
	for _, path := range []string{"/console/nowhere", "/console/people/usr_absent", "/console/people/a/b/c"} {
		b.get(path, http.StatusNotFound, "There is nothing here", `href="/console/roles"`)
	}
	lacks(t, h.browserOf(t, "VIEWER").get("/console/keys", http.StatusForbidden, "Your role does not allow it", `href="/console/people"`), `class="closed"`, "/console/roles")
	lacks(t, (&browser{T: t, server: h.Server}).get("/console/nowhere", http.StatusNotFound, "There is nothing here"), "/console/people")
}

// A group has a heading only if the role may open one of its links.
func TestNavigationGroups(t *testing.T) {
	h := newFixture(t)
	for role, want := range map[string][]string{"OWNER": {"people", "access", "developers", "organisation"}, "VIEWER": {"people", "organisation"}} {
		var got []string
		for _, found := range navHeading.FindAllStringSubmatch(navElement.FindString(h.browserOf(t, role).get("/console", 200)), -1) {
			got = append(got, found[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: groups %q, want %q", role, got, want)
		}
	}
}
