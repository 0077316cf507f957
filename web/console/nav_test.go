package console_test

import (
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
	for role, want := range map[string][]string{"OWNER": managers, "ADMIN": managers, "USER": members, "VIEWER": members} {
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
