package console_test

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/store"
)

// The overview says that nothing is wrong, then what is, with the page to act on; and each person sees only what
// they may act on.
func TestAttention(t *testing.T) {
	h := newFixture(t)
	makeRole(t, h, "READER", "", "user.read")
	setRole(t, h, "USER", "READER")
	owner, reader := h.browserOf(t, "OWNER"), h.browserOf(t, "USER")
	owner.get("/console?lang=en", http.StatusOK, "Nothing needs attention.")
	owner.get("/console?lang=de", http.StatusOK, "Nichts braucht Aufmerksamkeit.")
	for _, name := range []string{"Far", "Near", "Nearer", "Nearest", "Tomorrow"} {
		makeKey(t, h, map[string]any{"name": name, "expiresInDays": map[string]int{"Far": 60, "Near": 9, "Nearer": 8, "Nearest": 7, "Tomorrow": 1}[name]})
	}
	page := owner.get("/console?lang=en", http.StatusOK, "The API key Tomorrow ends on", "The API key Nearer ends on", "1 more", `href="/console/keys?sort=expiresAt&amp;status=active"`)
	lacks(t, page, "The API key Near ends", "The API key Far ends", "Nothing needs attention")

	endpoint := newReceiver(t)
	endpoint.status.Store(http.StatusInternalServerError)
	made := owner.post("/console/webhooks/new", url.Values{"url": {endpoint.URL}, "events": {"user.*"}}, http.StatusOK)
	path := "/console/webhooks/" + owner.findOn(hookLink, made[strings.Index(made, "<main"):])
	person := "/console/people/" + h.people["USER"].ID
	owner.submit(person+"/name", url.Values{"name": {"Uma"}, "version": {owner.version(owner.get(person, http.StatusOK))}})
	page = owner.waitFor("/console?lang=en", "has taken no event since")
	if !strings.Contains(page, `href="`+path+`" aria-label="Open webhook: `) || !strings.Contains(page, `Last failure: <strong class="bad">500</strong>`) {
		t.Errorf("the webhook's row lacks its page or its last failure:\n%s", page)
	}
	if strings.Index(page, "has taken no event") > strings.Index(page, "The API key Tomorrow") {
		t.Error("what is grave isn't first")
	}
	owner.get(path, http.StatusOK, ">1 error answer<")
	owner.get("/console/webhooks", http.StatusOK, `aria-label="The last 24 hours: 1 error answer"`)
	lacks(t, reader.get("/console?lang=en", http.StatusOK), `class="attention"`, "ends on", "has taken no event")
	lacks(t, h.browserOf(t, "VIEWER").get("/console?lang=en", http.StatusOK), `class="attention"`)
}

// A provider that can't be read for a day is on the overview, in the list and on the connection's page, until it is read
// again, by the button there.
func TestUnreadProvider(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	s.opened(b, at)
	nextDay := func() {
		t.Helper()
		s.Advance(25 * time.Hour)
		if err := s.Node.App.Connections.ReadDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.token = s.people["OWNER"].Login()
	}
	s.provider.Change(func(p *oidctest.Settings) {
		p.Lies.Discovery = func(d map[string]any) { d["issuer"] = "https://else.example" }
	})
	nextDay()
	const row = "The provider of Acme &lt;ID&gt; could not be read since"
	lacks(t, b.get("/console?lang=en", http.StatusOK), row)
	nextDay()
	b.get("/console", http.StatusOK, row, "People sign in by what was read before", `href="`+at+`?tab=protocol" aria-label="Look at it: `+row)
	b.get("/console?lang=de", http.StatusOK, "Der Anbieter von Acme &lt;ID&gt; ist seit")
	b.get("/console/sso?lang=en", http.StatusOK, "Provider can’t be read")
	b.get(at+"?tab=protocol", http.StatusOK, `id="unread"`, "What the provider says of itself could not be read since", "Provider’s document")
	b.post(at+"/refresh?tab=protocol", url.Values{}, http.StatusUnprocessableEntity, `id="unread"`, `class="hint fault"`)
	s.people["ADMIN"].Login()
	s.other.Login()
	lacks(t, s.browserOf(t, "ADMIN").get("/console", http.StatusOK), row)
	lacks(t, open(t, s.Server, s.other).get("/console", http.StatusOK, "Nothing needs attention"), row)
	s.provider.Change(func(p *oidctest.Settings) {
		p.Lies.Answer = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	})
	b.post(at+"/refresh?tab=protocol", url.Values{}, http.StatusServiceUnavailable, `id="unread"`, `class="hint fault"`, "502")

	s.provider.Change(func(p *oidctest.Settings) { p.Lies = oidctest.Lies{} })
	lacks(t, b.submit(at+"/refresh?tab=protocol", url.Values{}, "What the provider says of itself was read again"), `id="unread"`)
	lacks(t, b.get("/console", http.StatusOK), row)
	lacks(t, b.get("/console/sso", http.StatusOK), "Provider can’t be read")
}

// What needs attention is on the overview with the page on which to act, and is no longer when that was done, or when it is
// over by itself.
func TestAttentionIsHandled(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	s.opened(b, at)
	shows := func(row, path string) {
		t.Helper()
		page := b.get("/console?lang=en", http.StatusOK, row)
		if !regexp.MustCompile(`<a class="button small plain" href="` + regexp.QuoteMeta(html.EscapeString(path)) + `" aria-label="[^"]*` + regexp.QuoteMeta(row)).MatchString(page) {
			t.Errorf("no button for %q leads to %s:\n%s", row, path, page)
		}
		b.get(path, http.StatusOK)
	}
	gone := func(row string) {
		t.Helper()
		lacks(t, b.get("/console?lang=en", http.StatusOK), row)
	}
	later := func(d time.Duration) {
		s.Advance(d)
		b.token = s.people["OWNER"].Login()
	}

	policy := url.Values{"text": {noSettings}, "mode": {"enforce"}, "confirmMinutes": {"10"}, "version": {b.version(b.get(policyPath, http.StatusOK))}}
	saved := b.submit(policyPath, policy)
	shows("The saved policies are undone on", policyPath)
	b.submit(policyPath+"/confirm", url.Values{"version": {b.version(saved)}})
	gone("The saved policies are undone on")
	putPolicy(t, s.fixture, "")

	endpoint := newReceiver(t)
	endpoint.status.Store(http.StatusGone)
	host := strings.TrimPrefix(endpoint.URL, "http://")
	hooks := map[string]string{}
	for _, path := range []string{"/crm", "/shop"} {
		made := b.post("/console/webhooks/new", url.Values{"url": {endpoint.URL + path}, "events": {"*"}}, http.StatusOK)
		hooks[path] = "/console/webhooks/" + b.findOn(hookLink, made[strings.Index(made, "<main"):])
	}
	b.waitFor("/console?lang=en", "The webhook "+host+"/crm gets no events")
	b.waitFor("/console?lang=en", "The webhook "+host+"/shop gets no events")
	shows("The webhook "+host+"/crm gets no events", hooks["/crm"])
	b.submit(hooks["/crm"]+"/delete", url.Values{})
	shows("The webhook "+host+" gets no events", hooks["/shop"])
	b.submit(hooks["/shop"]+"/delete", url.Values{})
	gone("gets no events")

	con := strings.TrimPrefix(at, connectionsPath)
	for _, o := range []doorward.AttemptOutcome{doorward.AttemptRefused, doorward.AttemptUnavailable} {
		s.Node.App.Connections.Record(t.Context(), doorward.Attempt{ConnectionID: con, Kind: doorward.AttemptSignIn, Outcome: o, Check: "aud"})
	}
	shows("Acme &lt;ID&gt; refused 1 sign-in in 24 hours", at+"?tab=protocol")
	shows("The provider of Acme &lt;ID&gt; was out of reach for 1 sign-in", at+"?tab=protocol")
	later(26 * time.Hour)
	gone("refused 1 sign-in")
	gone("out of reach")

	page := b.get("/console/sso/domains", http.StatusOK)
	domain := "/console/sso/domains/" + b.findOn(domainLink, page)
	token := b.findOn(tokenOf, b.get(domain, http.StatusOK))
	s.dns.TXT("_doorward.acme.example")
	b.post(domain+"/verify", url.Values{}, http.StatusConflict)
	shows("The record of acme.example is missing", domain)
	later(73 * time.Hour)
	b.post(domain+"/verify", url.Values{}, http.StatusConflict)
	shows("The domain acme.example has lapsed", domain)
	s.dns.TXT("_doorward.acme.example", token)
	b.submit(domain+"/verify", url.Values{})
	gone("acme.example has lapsed")
	gone("The record of acme.example")

	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		run := doorward.DirectoryRun{ID: "run_" + strings.TrimPrefix(con, "con_"), ConnectionID: con, TenantID: s.tenant.ID, Last: tx.Now, Removed: 62, IsAlarmed: true}
		return errors.Join(tx.InsertDirectoryRun(t.Context(), run), tx.UpdateDirectoryRun(t.Context(), run))
	})
	if err != nil {
		t.Fatal(err)
	}
	shows("ended the access of 62 people", at+"/runs/run_"+strings.TrimPrefix(con, "con_"))
	later(8 * 24 * time.Hour)
	gone("ended the access of 62 people")
	shows("The client secret of Acme &lt;ID&gt; ends on", at+"?tab=secrets")
	later(8 * 24 * time.Hour)
	shows("The client secret of Acme &lt;ID&gt; has ended on", at+"?tab=secrets")

	demand := url.Values{"mfa": {"required"}, "mfaRoles": {"USER"}, "mfaGraceDays": {"7"}, "mfaRememberDays": {"0"}, "stepUpMinutes": {"10"}, "confirmed": {"1"}}
	b.post("/console/settings?tab=factors", demand, http.StatusSeeOther)
	people := "/console/people?" + url.Values{"factor": {"none"}, "status": {"active"}, "role": {"USER"}}.Encode()
	shows("1 person lacks the second factor that is demanded from", people)
	later(8 * 24 * time.Hour)
	shows("1 person lacks the second factor that is demanded since", people)
	demand.Del("mfa")
	b.post("/console/settings?tab=factors", demand, http.StatusSeeOther)
	gone("lacks the second factor")
}

const connectionsPath = "/console/sso/connections/"
