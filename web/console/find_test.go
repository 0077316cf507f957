package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	foundLink  = regexp.MustCompile(`<li><a href="([^"]+)">`)
	foundGroup = regexp.MustCompile(`<h2 id="found-([a-z]+)">`)
)

// foundFor returns the links and the groups that the search for q shows.
func foundFor(b *browser, q string) (links, groups []string) {
	b.Helper()
	page := b.get("/console/find?q="+url.QueryEscape(q), http.StatusOK)
	page = page[strings.Index(page, `id="found"`):]
	for _, found := range foundLink.FindAllStringSubmatch(page[:strings.Index(page, `role="status"`)], -1) {
		links = append(links, html.UnescapeString(found[1]))
	}
	for _, found := range foundGroup.FindAllStringSubmatch(page, -1) {
		groups = append(groups, found[1])
	}
	return links, groups
}

// The search finds pages, people, keys, webhooks and roles by parts of their names, without regard
// to case and accents, and only what the caller may open.
func TestFind(t *testing.T) {
	h := newFixture(t)
	owner, viewer := h.browserOf(t, "OWNER"), h.browserOf(t, "VIEWER")
	owner.submit("/console/people/"+h.people["USER"].ID+"/name", url.Values{"name": {"Zoë Québec"}, "version": {owner.version(owner.get("/console/people/"+h.people["USER"].ID, 200))}})
	key := makeKey(t, h, nil)
	role := makeRole(t, h, "QUEBEC_TEAM", "", "message.read")
	owner.post("/console/webhooks/new", url.Values{"url": {newReceiver(t).URL + "/quebec"}, "events": {"user.*"}}, 200)

	user := "/console/people/" + h.people["USER"].ID
	links, groups := foundFor(owner, "QUEBEC")
	if !slices.Contains(links, user) || !slices.Contains(links, "/console/roles/"+role) || !slices.Equal(groups, []string{"people", "webhooks", "roles"}) {
		t.Errorf("an OWNER finds %v in %v", links, groups)
	}
	if links, groups := foundFor(viewer, "québec zoe"); !slices.Equal(links, []string{user}) || !slices.Equal(groups, []string{"people"}) {
		t.Errorf("a VIEWER finds %v in %v", links, groups)
	}
	if links, _ := foundFor(owner, "SHOP"); !slices.Contains(links, "/console/keys/"+key) {
		t.Errorf("the key isn't among %v", links)
	}
	if links, _ := foundFor(owner, "create webhook"); !slices.Equal(links, []string{"/console/webhooks/new"}) {
		t.Errorf("a page that isn't in the navigation: %v", links)
	}
	for _, words := range []string{"create", "key", "audit"} {
		if links, _ := foundFor(viewer, words); len(links) > 0 {
			t.Errorf("a VIEWER finds %v by %q", links, words)
		}
	}
	for _, b := range []*browser{owner, viewer} {
		inNavigation, _ := linksOf(b.get("/console", http.StatusOK))
		if links, groups := foundFor(b, " "); !slices.Equal(links, inNavigation) || !slices.Equal(groups, []string{"pages"}) {
			t.Errorf("without words: %v in %v", links, groups)
		}
	}
	if page := owner.get("/console/find?q=%3Cb%3E+absent", http.StatusOK, "Nothing was found for “&lt;b&gt; absent”."); foundGroup.MatchString(page) {
		t.Error("there are results")
	}
	owner.get("/console/find?q=%00", http.StatusUnprocessableEntity)
	if links, _ := foundFor(owner, "example"); len(links) != 4 { // all people, by their addresses
		t.Errorf("addresses: %v", links)
	}
}

// Of each kind the search shows eight, and leads to the list with the others.
func TestFindIsShort(t *testing.T) {
	h := newFixture(t)
	for _, name := range strings.Fields("a b c d e f g h i") {
		h.tenant.Join("many-"+name+"@acme.example", "USER")
	}
	links, _ := foundFor(h.browserOf(t, "OWNER"), "many")
	if len(links) != 9 || links[8] != "/console/people?q=many" {
		t.Errorf("found %v", links)
	}
}
