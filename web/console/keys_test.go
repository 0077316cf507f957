package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var (
	secretOn = regexp.MustCompile(`<code id="secret"[^>]*>(dwk_[0-9A-Za-z]{49})</code>`)
	hintOn   = regexp.MustCompile(`name="hint" value="([^"]+)"`)
	keyLink  = regexp.MustCompile(`/console/keys/(key_[a-z0-9]+)`)
)

// findOn returns what the pattern's group matches on the page.
func (b *browser) findOn(pattern *regexp.Regexp, page string) string {
	b.Helper()
	m := pattern.FindStringSubmatch(page)
	if m == nil {
		b.Fatalf("there is no %s on\n%s", pattern, page)
	}
	return html.UnescapeString(m[1])
}

// The secret is shown in one answer, which offers no other language: with that it would
// be lost.
func TestCreatingAKey(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "ADMIN")
	b.get("/console/keys", http.StatusOK, "There are no keys yet")
	form := b.get("/console/keys/new", http.StatusOK, `value="message.send"`, `value="admin@acme.example"`, `data-suggest="/api/v2/users"`, `<option value="viewer@acme.example">`)
	lacks(t, form, `value="user.invite"`, "tenant.destroy", ">Owner</button>")
	b.get("/console/keys/new?role=ADMIN", http.StatusOK, `value="user.invite"`)
	typed := url.Values{"role": {"ADMIN", "USER"}, "name": {"<Shop>"}, "permissions": {"message.send"}, "days": {"30"}, "perSecond": {"5"}, "allowedIps": {"192.0.2.7"}, "owner": {"VIEWER@acme.example"}}
	b.post("/console/keys/new/role", typed, http.StatusOK, `value="user.invite"`, `name="role" value="ADMIN" checked`, `value="&lt;Shop&gt;"`, `value="message.send" checked`, `value="30"`, `value="5"`, ">192.0.2.7</textarea>", `value="VIEWER@acme.example"`)
	page := b.post("/console/keys/new", url.Values{
		"name": {"<Shop>"}, "role": {"USER"}, "permissions": {"message.send", "report.read"}, "days": {"30"}, "perSecond": {"5"},
		"allowedIps": {"192.0.2.7\r\n198.51.100.0/24"}, "owner": {"VIEWER@acme.example"},
	}, http.StatusOK, "it is shown only here", "&lt;Shop&gt;")
	secret := b.findOn(secretOn, page)
	lacks(t, page, `name="lang"`)
	id := b.findOn(keyLink, page[strings.Index(page, "<main"):])
	shown := b.get("/console/keys/"+id, http.StatusOK, "viewer@acme.example", "192.0.2.7", "198.51.100.0/24", `<dt>Role</dt><dd><a href="/console/roles/rol_user">User</a> <span class="small sub"`, `<optgroup label="Messages"><option value="message.read">Read messages (message.read)</option>`, `<span class="idle">send messages <code class="soft dotted">message.<wbr>send</code></span> (not now`, `href="/console/keys/`+id+`?tab=settings"`, secret[:8]+"…"+secret[49:])
	lacks(t, shown, secret)
	b.get("/console/keys?q=shop", http.StatusOK, "&lt;Shop&gt;", ">Active<")
	b.get("/console/keys?role=USER&sort=-name", http.StatusOK, "&lt;Shop&gt;", `aria-sort="descending"><a class="sort" href="?role=USER&amp;sort=name">Name`, "1 in use")
	b.get("/console/keys?sort=expiresAt", http.StatusOK, "&lt;Shop&gt;", `aria-sort="ascending"><a class="sort" href="?sort=-expiresAt" title="Sorts by the expiry.`, `<option value="expiresAt" selected>Expires: soonest first</option>`)
	b.get("/console/keys?role=ADMIN", http.StatusOK, "No key matches")
	b.get("/console/keys?status=revoked", http.StatusOK, "No key matches")
	b.get("/console/keys?status=x", http.StatusUnprocessableEntity, "One of the filters is invalid")
}

func TestKeyFormRefuses(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "ADMIN")
	good := url.Values{"name": {"Shop"}, "role": {"USER"}, "permissions": {"message.send"}, "owner": {"admin@acme.example"}}
	for field, c := range map[string]struct{ value, want string }{
		"name":        {"", "Enter a name"},
		"permissions": {"tenant.destroy", "One of these is not for keys"},
		"days":        {"366", "Enter a number of days within"},
		"perSecond":   {"many", "Enter a number within"},
		"allowedIps":  {"192.0.2.7 nowhere", "At least one of these is no address"},
		"owner":       {"nobody@acme.example", "No active member has this address"},
	} {
		form := url.Values{}
		for name, values := range good {
			form[name] = values
		}
		form.Set(field, c.value)
		page := b.post("/console/keys/new", form, http.StatusUnprocessableEntity, c.want)
		if field != "permissions" && !strings.Contains(page, `value="message.send" checked`) {
			t.Errorf("%s: the choice is lost on\n%s", field, page)
		}
	}
	good.Set("owner", "view") // a part of an address: the list has those that match
	page := b.post("/console/keys/new", good, http.StatusUnprocessableEntity, `value="view"`, `<datalist id="suggested"><option value="viewer@acme.example"></option></datalist>`)
	lacks(t, page, `value="owner@acme.example"`)
	form := url.Values{"name": {"Shop"}, "role": {"USER"}, "owner": {"admin@acme.example"}}
	b.post("/console/keys/new", form, http.StatusUnprocessableEntity, "Choose at least one")
	form.Set("role", "OWNER")
	form.Set("permissions", "message.send")
	b.post("/console/keys/new", form, http.StatusForbidden)
	b.get("/console/keys", http.StatusOK, "There are no keys yet")
}

func TestChangingAKey(t *testing.T) {
	h := newFixture(t)
	b, path := h.browserOf(t, "OWNER"), "/console/keys/"+makeKey(t, h, map[string]any{"permissions": []string{"message.send", "report.read"}})
	page := b.get(path+"?tab=settings", http.StatusOK)
	form := url.Values{
		"name": {"Shop 2"}, "permissions": {"report.read"}, "allowedIps": {"192.0.2.0/24"}, "owner": {"user@acme.example"}, "version": {b.version(page)},
	}
	page = b.submit(path+"/edit?tab=settings", form, "The key is saved", "Shop 2", "user@acme.example")
	lacks(t, page, `value="message.send" checked`)
	b.post(path+"/edit?tab=settings", form, http.StatusPreconditionFailed, "was changed or rotated since you opened the page")
	form.Set("version", b.version(page))
	form.Del("permissions")
	lacks(t, b.post(path+"/edit?tab=settings", form, http.StatusUnprocessableEntity, "Choose at least one"), `value="report.read" checked`)

	b.get(path+"/disable", http.StatusOK, "Disable this key?", "It was never used")
	b.submit(path+"/disable", url.Values{}, "The key is disabled", ">Disabled<")
	b.submit(path+"/enable", url.Values{}, "The key is enabled", ">Active<")
	b.get(path+"/revoke", http.StatusOK, "for good")
	page = b.submit(path+"/revoke", url.Values{}, "The key is revoked", ">Revoked<")
	lacks(t, page, "/rotate", "/edit", "Would it pass")
	b.post(path+"/enable", url.Values{}, http.StatusConflict, "that is final")
}

// A rotation that is sent twice, as by loading its page again, is done once.
func TestRotatingAKey(t *testing.T) {
	h := newFixture(t)
	b, path := h.browserOf(t, "OWNER"), "/console/keys/"+makeKey(t, h, nil)
	form := url.Values{"hint": {b.findOn(hintOn, b.get(path+"?tab=rotation", http.StatusOK))}, "graceHours": {"24"}}
	first := b.findOn(secretOn, b.post(path+"/rotate?tab=rotation", form, http.StatusOK, "The key is rotated", "works for another <strong><bdi>24 hours"))
	page := b.post(path+"/rotate?tab=rotation", form, http.StatusPreconditionFailed, "was changed or rotated since you opened the page", first[:8])
	if !strings.Contains(page, "The earlier secret works for another") {
		t.Errorf("the earlier secret isn't shown on\n%s", page)
	}
	lacks(t, b.submit(path+"/previous?tab=rotation", url.Values{}, "The earlier secret has ended"), "works for another")
	b.post(path+"/previous?tab=rotation", url.Values{}, http.StatusNotFound)
	form.Set("hint", first[:8]+"…"+first[49:])
	form.Set("graceHours", "999")
	b.post(path+"/rotate?tab=rotation", form, http.StatusUnprocessableEntity)
	form.Set("graceHours", "0")
	b.post(path+"/rotate?tab=rotation", form, http.StatusOK, "The earlier secret has ended")
}

func TestWouldItPass(t *testing.T) {
	h := newFixture(t)
	b, id := h.browserOf(t, "OWNER"), makeKey(t, h, map[string]any{
		"permissions": []string{"message.send", "report.read"}, "allowedIps": []string{"192.0.2.0/24", "2001:db8::/32"}, "ownerId": h.people["VIEWER"].ID,
	})
	for query, want := range map[string]string{
		"action=report.read":                           "It would pass.",
		"action=report.read&ip=192.0.2.9":              "It would pass.",
		"action=report.read&ip=%3A%3Affff%3A192.0.2.9": "It would pass.",
		"action=report.read&ip=2001:db8::1":            "It would pass.",
		"action=report.read&ip=192.0.3.9":              "may not be used from this address",
		"action=report.read&ip=here":                   "This is no address",
		"action=message.read":                          "was not given this permission",
		"action=message.send":                          "role of the key’s owner does not allow it",
	} {
		b.get("/console/keys/"+id+"?"+query, http.StatusOK, want)
	}
	b.submit("/console/keys/"+id+"/disable", url.Values{})
	b.get("/console/keys/"+id+"?action=report.read", http.StatusOK, "The key is not active")
}

// The trail names keys and leads to their pages.
func TestTrailOfKeys(t *testing.T) {
	h := newFixture(t)
	id := makeKey(t, h, nil)
	h.browserOf(t, "OWNER").get("/console/audit?target="+id, http.StatusOK, "API key created", `href="/console/keys/`+id+`"`, ">Shop<")
}

// Suspending or removing a person ends the person's keys, or gives them to the one who does it.
func TestKeysOfRemovedPeople(t *testing.T) {
	h := newFixture(t)
	b, person := h.browserOf(t, "OWNER"), "/console/people/"+h.people["USER"].ID
	owner := map[string]any{"ownerId": h.people["USER"].ID}
	revokedKey := makeKey(t, h, owner)
	for _, action := range []string{"/sign-out", "/role?role=VIEWER"} {
		lacks(t, b.get(person+action, http.StatusOK), "of this person end", `name="keys"`)
	}
	b.get(person+"/suspend", http.StatusOK, "1 API key of this person ends", `name="keys"`)
	b.submit(person+"/suspend", url.Values{}, "1 API key has ended")
	b.get("/console/keys/"+revokedKey, http.StatusOK, ">Revoked<")
	b.submit(person+"/resume", url.Values{})
	transferredKey := makeKey(t, h, owner)
	b.submit(person+"/remove", url.Values{"keys": {"transfer"}}, "1 API key is yours now. Rotate it within 7 days")
	b.get("/console/keys/"+transferredKey, http.StatusOK, ">Active<", "owner@acme.example", "unless it is rotated")
}
