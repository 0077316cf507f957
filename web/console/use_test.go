package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/smtp/smtptest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store/storetest"
)

func TestOverview(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	wrong := url.Values{"email": {"user@acme.example"}, "password": {"not the password"}}
	for range 2 {
		owner.post("/login", wrong, http.StatusUnauthorized)
	}
	makeInvitation(t, h)
	owner.get("/console", http.StatusOK,
		"<strong>4</strong> <span>people</span>", "<strong>1</strong> <span>open invitation</span>",
		"<strong>4</strong> <span>sign-ins in 30 days</span>", `<span class="upper">6</span>`, `<li class="now">`,
		`: 4 sign-ins"`, `: 2 passwords or passkeys refused"`, `>Sign-in attempt</a> <strong>2</strong>`)
	h.Advance(31 * 24 * time.Hour)
	h.people["OWNER"].Login()
	h.browserOf(t, "OWNER").get("/console", http.StatusOK, "<strong>1</strong> <span>sign-in in 30 days</span>", `>1 sign-in</a></span>`, "<strong>0</strong> <span>open invitations</span>", "Nothing was refused.")
}

// A figure of the overview links to exactly the rows that it counts.
func TestFiguresLeadToWhatTheyCount(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	s := doorwardtest.Start(t, doorwardtest.Mail(sink.URL()))
	acme := s.Tenant("Acme")
	guess := func() {
		_, _ = acme.Owner.Post("/api/v2/auth/login", map[string]string{"email": acme.Owner.Email, "password": "a wrong one"})
	}
	several := regexp.MustCompile(`× ([0-9]+)</span>`)
	follow := func(tile, row string) (counted string, rows int) {
		t.Helper()
		owner := open(t, s, acme.Owner)
		m := regexp.MustCompile(tile).FindStringSubmatch(owner.get("/console", http.StatusOK))
		if m == nil {
			t.Fatalf("no %s on the overview", tile)
		}
		page := owner.get(strings.ReplaceAll(m[1], "&amp;", "&"), http.StatusOK)
		rows = strings.Count(page, row)
		for _, m := range several.FindAllStringSubmatch(page, -1) { // a row that counts several
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			rows += n - 1
		}
		return m[2], rows
	}
	checkRefusals := func(want int) {
		t.Helper()
		for _, tile := range []string{`id="tile-refusals"><a href="([^"]*)"><strong>([0-9]+)</strong>`, `id="refused-session.refuse"><a href="([^"]*)">[^<]*</a> <strong>([0-9]+)</strong>`} {
			if counted, rows := follow(tile, `<tr role="row" id="evt_`); counted != fmt.Sprint(want) || rows != want {
				t.Errorf("%s: %s refusals lead to %d, want %d", tile, counted, rows, want)
			}
		}
	}
	guess()
	guess()
	s.Advance(23 * time.Hour)
	guess()
	acme.Owner.Login()
	checkRefusals(3)
	s.Advance(time.Hour + time.Minute)
	acme.Owner.Login()
	checkRefusals(1)
	if counted, rows := follow(`<span class="key refused"><a href="([^"]*)">([0-9]+) passwords`, `<tr role="row" id="evt_`); counted != "3" || rows != 3 {
		t.Errorf("%s refused passwords lead to %d", counted, rows)
	}

	for _, name := range []string{"here", "gone"} {
		if name == "gone" {
			sink.Refuse(smtptest.AtRecipient, 550)
		}
		if status, body := acme.Owner.Post("/api/v2/auth/invite", map[string]string{"email": name + "@x.example", "role": "USER"}); status != http.StatusCreated {
			t.Fatal(status, string(body))
		}
		if name == "here" {
			sink.Wait(t, "here@x.example", 1)
		}
	}
	waittest.Until(t, "all mail to be sent", func() bool {
		n, err := storetest.CountMails(t.Context(), s.Node.DB.Read(), doorward.DeliveryQueued)
		return err == nil && n == 0
	})
	if counted, rows := follow(`href="([^"]*)" aria-label="Show invitations: The mail of ([0-9]+) open`, `role="row" id="inv_`); counted != "1" || rows != 1 {
		t.Errorf("%s mail that could not be delivered leads to %d invitations", counted, rows)
	}
}

var eventRow = regexp.MustCompile(`<tr role="row" id="(evt_[a-z0-9]+)"`)

// opened returns a page of the trail, with each of its events open in turn.
func (b *browser) opened(path, language string, want ...string) string {
	b.Helper()
	all := b.get(path+"?lang="+language, http.StatusOK)
	for _, row := range eventRow.FindAllStringSubmatch(all, -1) {
		all += b.get(path+"?lang="+language+"&event="+row[1], http.StatusOK, `aria-current="true"`)
	}
	for _, words := range want {
		if !strings.Contains(all, words) {
			b.Errorf("the trail doesn't show %q:\n%s", words, all)
		}
	}
	return all
}

// The trail is shown in words, in both languages; the file has raw values.
func TestTrailInWords(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	wrong := url.Values{"email": {"user@acme.example"}, "password": {"not the password"}}
	owner.post("/login", wrong, http.StatusUnauthorized)
	for range 5 { // one event counts several refusals
		h.browserOf(t, "VIEWER").post("/console/close", url.Values{}, http.StatusForbidden)
	}
	owner.post("/console/people/"+h.people["OWNER"].ID+"/suspend", url.Values{}, http.StatusConflict)
	owner.submit("/console/settings?tab=sessions", url.Values{"sessionIdleMinutes": {"1"}, "sessionAbsoluteMinutes": {"90"}})
	owner.submit("/console/settings?tab=general", url.Values{"name": {"Acme"}, "invitationDays": {"30"}, "keepEventsDays": {"0"}, "allowedEmailDomains": {"acme.example"}})
	english := owner.opened("/console/audit", "en", "Wrong password", "This role or key may not do this", "<dt>Times</dt>", "The last active owner has to stay",
		"<bdi>as this installation has it</bdi> → <bdi>1 minute</bdi>", "<bdi>as this installation has it</bdi> → <bdi>1 hour 30 minutes</bdi>",
		"<bdi>All</bdi> → <bdi>acme.example</bdi>")
	german := owner.opened("/console/audit", "de", "Falsches Passwort", "Diese Rolle oder dieser Schlüssel darf das nicht", "<dt>Anzahl</dt>", "Der letzte aktive Inhaber muss bleiben",
		"<bdi>wie in dieser Installation</bdi> → <bdi>1 Minute</bdi>", "<bdi>1 Stunde 30 Minuten</bdi>")
	if !regexp.MustCompile(`<time [^>]*><bdi>\d+ \w+ \d{4}, [\d:]+ UTC</bdi></time>`).MatchString(english) {
		t.Error("a time isn't isolated: in text from right to left its parts would be swapped")
	}
	raw := []string{"invalid_credentials", "last_owner", "1m0s", "0s"}
	lacks(t, english, raw...)
	lacks(t, german, raw...)
	_, file := owner.ask("GET", "/api/v2/audit-events?format=csv", nil)
	for _, text := range raw {
		if !strings.Contains(file, text) {
			t.Errorf("the file doesn't say %q:\n%s", text, file)
		}
	}
}

// A refusal is described as an attempt, not as done, and the figure links to a list
// whose filters show what it contains.
func TestRefusalIsDescribedAsAttempt(t *testing.T) {
	h := newFixture(t)
	viewer := h.browserOf(t, "VIEWER")
	owner := h.browserOf(t, "OWNER")
	for _, path := range []string{"/console/audit", "/console/close", "/console/invitations/new", "/console/people/" + h.people["OWNER"].ID + "/remove"} {
		viewer.get(path, http.StatusForbidden)
	}
	owner.get("/console", http.StatusOK, "Nothing was refused.") // viewing isn't an attempt
	viewer.get("/api/v2/audit-events", http.StatusForbidden)
	viewer.post("/console/close", url.Values{}, http.StatusForbidden)
	viewer.post("/console/invitations/new", url.Values{}, http.StatusForbidden)
	for action, messages := range map[string][2]string{
		"audit.read":     {"Read the audit trail", "Protokoll lesen"},
		"tenant.destroy": {"Close the organisation", "Organisation schließen"},
		"user.invite":    {"Invite people", "Personen einladen"},
	} {
		filtered := "/console/audit?action=" + action + "&outcome=refused"
		for n, language := range []string{"&lang=en", "&lang=de"} {
			owner.get(filtered+language, http.StatusOK, `<option value="`+action+`" selected>`, ">"+messages[n]+"</a>")
			page := owner.get("/console?"+language, http.StatusOK, ">"+messages[n]+"</a> <strong>1</strong>")
			figures, _, _ := strings.Cut(page, `id="recent-title"`)
			lacks(t, figures, "Organisation destroyed", "Organisation vernichtet", "Person invited", "Person eingeladen")
		}
	}
}

// A time in the address is shown in its field, so that the form keeps it.
func TestTrailFromAnInstant(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	owner.get("/console/audit?from=2026-11-20T12:00:05&to=2026-11-21", http.StatusOK,
		`name="from" type="datetime-local" step="1" value="2026-11-20T12:00:05"`, `name="to" type="datetime-local" step="1" value="2026-11-21T23:59:59"`,
		`from=2026-11-20T12%3A00%3A05Z`, `to=2026-11-22T00%3A00%3A00Z`)
	owner.get("/console/audit?to=2026-11-21T12:30", http.StatusOK, `to=2026-11-21T12%3A31%3A00Z`)
	owner.get("/console/audit?from=2026-11-20T12", http.StatusUnprocessableEntity, "One of the filters")
}

// The overview shows a VIEWER only what the role may read.
func TestOverviewOfViewer(t *testing.T) {
	h := newFixture(t)
	page := h.browserOf(t, "VIEWER").get("/console", http.StatusOK, "<strong>4</strong> <span>people</span>", "<bdi>Viewer</bdi></a> <strong>1</strong>")
	lacks(t, page, "sign-ins", "refused", "invitations", `class="chart"`, "attention")
}

// The Content-Security-Policy lets scripts send requests on the pages of the console, for the search;
// some pages refresh themselves, too. The answer to a form sends none.
func TestContentSecurityPolicy(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	for path, want := range map[string]bool{
		"/console": true, "/console/people": true, "/console/invitations": true, "/console/audit": true, "/console/people/" + h.people["USER"].ID + "?tab=sessions": true, "/console/people/" + h.people["USER"].ID: false,
		"/console/settings": false, "/console/invitations/new": false, "/console/find": false,
	} {
		res, page := owner.ask("GET", path, nil)
		policy := res.Header.Values("Content-Security-Policy")
		if len(policy) != 1 || !strings.HasSuffix(policy[0], "; connect-src 'self'") || !strings.HasPrefix(policy[0], "default-src 'none'; ") {
			t.Errorf("%s: %q", path, policy)
		}
		lacks(t, page, "style=", "onclick", "javascript:")
		if got := strings.Contains(page, `id="live"`); got != want || got != strings.Contains(page, "/assets/live.") {
			t.Errorf("%s: refreshes itself, with its script: %v, want %v", path, got, want)
		}
	}
}

// An address with a trailing slash redirects to the console.
func TestConsoleWithSlash(t *testing.T) {
	owner := newFixture(t).browserOf(t, "OWNER")
	for query, to := range map[string]string{"": "/console", "?lang=de&done=x": "/console?lang=de&done=x"} {
		res, _ := owner.ask("GET", "/console/"+query, nil)
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusPermanentRedirect || got != to {
			t.Errorf("/console/%s: %d to %q, want 308 to %q", query, res.StatusCode, got, to)
		}
	}
}

func TestFindingPeople(t *testing.T) {
	h := newFixture(t)
	for i := range 5 {
		h.tenant.Join(fmt.Sprintf("p%d@other.example", i), "USER")
	}
	owner := h.browserOf(t, "OWNER")
	found := regexp.MustCompile(`<tr role="row" id="usr_`)
	for query, want := range map[string]int{
		"": 9, "?q=OTHER.example": 5, "?role=ADMIN": 1, "?role=USER&q=p1": 1, "?status=suspended": 0, "?status=active": 9, "?q=%25": 0,
	} {
		if got := len(found.FindAllString(owner.get("/console/people"+query, http.StatusOK), -1)); got != want {
			t.Errorf("%q finds %d people, want %d", query, got, want)
		}
	}
	owner.get("/console/people?role=KING", http.StatusUnprocessableEntity, "One of the filters is invalid", `name="q"`)
	for query, want := range map[string]int{"limit=0": 422, "q=a&q=b": 422, "q=%zz": 400, "q=a;b": 400} {
		lacks(t, owner.get("/console/people?"+query, want, "Go back to the page you came from"), "pointer")
	}
	owner.get("/console/people?q=nobody", http.StatusOK, "Nobody matches.")

	page := owner.get("/console/people?q=example&limit=4", http.StatusOK)
	next := regexp.MustCompile(`href="(\?[^"]*)" rel="next"`).FindStringSubmatch(page)
	if next == nil {
		t.Fatalf("no next page on\n%s", page)
	}
	second := "/console/people" + strings.ReplaceAll(next[1], "&amp;", "&")
	second += "&limit=4"
	page = owner.get(second, http.StatusOK, ">First</a>", "?q=example")
	if got := len(found.FindAllString(page, -1)); got != 4 {
		t.Errorf("the second page has %d people", got)
	}
	owner.get("/console/people?cursor=x", http.StatusOK, "owner@acme.example")
	owner.get("/console/people?before=x", http.StatusOK, "owner@acme.example")

	prev := regexp.MustCompile(`href="(\?[^"]*)" rel="prev"`).FindStringSubmatch(page)
	if prev == nil {
		t.Fatalf("no previous page on\n%s", page)
	}
	page = owner.get("/console/people"+strings.ReplaceAll(prev[1], "&amp;", "&")+"&limit=4", http.StatusOK, "owner@acme.example", `rel="next"`)
	if got := len(found.FindAllString(page, -1)); got != 4 {
		t.Errorf("back on the first page there are %d people", got)
	}
	lacks(t, page, ">First</a>", `rel="prev"`)
}

// The link back from the page of one row leads to the same page of the list, also after a
// change.
func TestWayBackToTheList(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	page := owner.get("/console/people?q=user&role=USER", http.StatusOK)
	link := regexp.MustCompile(`href="(/console/people/usr_[^"]*)"`).FindStringSubmatch(page)
	if link == nil {
		t.Fatalf("nobody on\n%s", page)
	}
	const back, keepsList = `href="/console/people?q=user&amp;role=USER"`, `/suspend?list=q%3Duser%26role%3DUSER"`
	owner.get(link[1], http.StatusOK, back, keepsList)
	path := "/console/people/" + h.people["USER"].ID
	list := url.Values{"list": {"q=user&role=USER&evil=1"}, "name": {"Uma"}}
	page = owner.get(path+"/suspend?"+list.Encode(), http.StatusOK, `name="list" value="q=user&amp;role=USER"`)
	lacks(t, page, `value="q=user&amp;role=USER&amp;evil`)
	owner.submit(path+"/name", list, "The name is saved.", back)
	owner.submit(path+"/remove", list, "The person is removed.", `value="user"`, `value="USER" selected`)
	owner.get(path[:len("/console/people/")]+h.people["ADMIN"].ID+"?list=%25zz%3B&done=saved", http.StatusOK, `href="/console/people"`)

	inv := "/console/invitations/" + makeInvitation(t, h)
	owner.get("/console/invitations?status=PENDING", http.StatusOK, inv+"?list=status%3DPENDING")
	owner.submit(inv+"/revoke", url.Values{"list": {"status=PENDING"}}, `href="/console/invitations?status=PENDING"`)
}

func TestPersonIsChanged(t *testing.T) {
	h := newFixture(t)
	owner, user := h.browserOf(t, "OWNER"), h.people["USER"]
	path := "/console/people/" + user.ID
	const device = "Go" // of the session, which doorwardtest has opened
	owner.get(path+"?tab=sessions", http.StatusOK, "user@acme.example", device, "Sign out everywhere\u00a0…")
	page := owner.get(path, http.StatusOK, "user@acme.example")

	old := owner.version(page)
	owner.submit(path+"/name", url.Values{"name": {"Uma"}, "version": {old}}, "The name is saved.", "<bdi>Uma</bdi>")
	owner.post(path+"/name", url.Values{"name": {"Ulf"}, "version": {old}}, http.StatusPreconditionFailed, "Somebody else has changed this person", `value="Ulf"`, "Saved now:</span> <bdi>Uma", `name="lang" value="de"`)
	page = owner.post(path+"/name", url.Values{"name": {"Ulf"}, "version": {old}, "list": {"q=user"}}, http.StatusPreconditionFailed, `href="/console/people?q=user"`, `name="list" value="q=user"`)
	lacks(t, page, old)
	owner.translate(page, path+"/name", "de", "Personen", "Jemand anderes hat diese Person geändert", `value="Ulf"`, "<bdi>Uma", `href="/console/people?q=user"`)
	owner.post(path+"/name", url.Values{"name": {"a\u202eb"}}, http.StatusUnprocessableEntity, "change the direction of text", `aria-invalid="true"`)

	page = owner.get(path+"/role", http.StatusOK, "May no longer: send messages", "May from now on: manage API keys, read the audit trail", "No session ends.", `name="role" value="VIEWER" required`)
	lacks(t, page, `name="role" value="USER"`) // the present one
	stale := owner.post(path+"/role", url.Values{"role": {"VIEWER"}, "version": {old}}, http.StatusPreconditionFailed, "Somebody else", `name="role" value="VIEWER" checked`)
	owner.translate(stale, path+"/role", "de", "Jemand anderes hat das geändert", "Darf nicht mehr", `name="role" value="VIEWER" checked`)
	owner.post(path+"/role", url.Values{"role": {"KING"}, "version": {owner.version(page)}}, http.StatusUnprocessableEntity, `id="role-fault"`)
	owner.submit(path+"/role", url.Values{"role": {"VIEWER"}, "version": {owner.version(page)}}, "The role is changed.", `<span class="tag quiet">Viewer</span>`)

	user.Login()
	owner.post(path+"/sign-out", url.Values{"lang": {"de"}}, http.StatusOK, "2 Sitzungen enden sofort.") // asks for confirmation again, in German
	owner.get(path+"/sign-out", http.StatusOK, "2 sessions end at once.")
	owner.submit(path+"/sign-out", url.Values{}, "signed out everywhere. 2 sessions have ended.", "Not signed in anywhere.")
	if status, _ := user.Get("/api/v2/auth/session"); status != http.StatusUnauthorized {
		t.Errorf("signed out everywhere, the session is still %d", status)
	}
}

// Before and after an action, pages count only live sessions, not those that a
// tighter limit has ended and that are still stored.
func TestPagesCountLiveSessions(t *testing.T) {
	h := newFixture(t)
	h.people["USER"].Login()
	h.Advance(30 * time.Minute)
	for _, role := range []string{"OWNER", "USER"} {
		h.people[role].Login()
	}
	owner, user := h.browserOf(t, "OWNER"), "/console/people/"+h.people["USER"].ID
	owner.get(user+"/suspend", http.StatusOK, "3 sessions end at once.")
	owner.get("/console/close", http.StatusOK, "7 sessions end at once.")
	tighter := []byte(`{"settings": {"sessionIdleMinutes": 5}}`)
	if status, body := h.people["OWNER"].Do("PATCH", "/api/v2/tenant", tighter); status != http.StatusOK {
		t.Fatal(status, string(body))
	}
	owner.get(user+"/suspend", http.StatusOK, "1 session ends at once.")
	owner.get("/console/people/"+h.people["ADMIN"].ID+"/suspend", http.StatusOK, "No session is open now.")
	owner.get("/console/close", http.StatusOK, "2 sessions end at once.")
	owner.submit(user+"/sign-out", url.Values{}, "1 session has ended.", "Not signed in anywhere.")
	owner.get("/console/close", http.StatusOK, "1 session ends at once.")
	owner.post("/console/close", url.Values{"confirm": {"Acme"}}, http.StatusOK, "1 session has ended.")
}

func TestPersonIsSuspendedAndRemoved(t *testing.T) {
	h := newFixture(t)
	owner, admin := h.browserOf(t, "OWNER"), h.people["ADMIN"]
	path := "/console/people/" + admin.ID
	if status, body := admin.Post("/api/v2/auth/invite", map[string]any{"email": "new@acme.example", "role": "USER"}); status != http.StatusCreated {
		t.Fatal(status, string(body))
	}
	page := owner.get(path+"/suspend", http.StatusOK, "1 session ends at once.", "1 invitation that this person has sent is revoked.")
	version := owner.version(page)
	owner.submit(path+"/suspend", url.Values{"version": {version}},
		"The person is suspended. 1 session has ended. 1 invitation was revoked.", `<span class="tag alarm">Suspended</span>`, "Unsuspend\u00a0…")
	owner.post(path+"/remove", url.Values{"version": {version}}, http.StatusPreconditionFailed, "Somebody else has changed this")
	owner.submit(path+"/resume", url.Values{}, "The person is no longer suspended.")
	owner.get(path+"/remove", http.StatusOK, "No session is open now.", "can’t be undone")
	owner.submit(path+"/remove", url.Values{}, "The person is removed. No session was open.")
	owner.get(path, http.StatusNotFound)
	owner.post(path+"/suspend", url.Values{}, http.StatusNotFound)

	self := "/console/people/" + h.people["OWNER"].ID
	owner.get(self+"/remove", http.StatusOK, "This is you.")
	owner.post(self+"/remove", url.Values{}, http.StatusConflict, "the last active owner")
	owner.post(self+"/suspend", url.Values{}, http.StatusConflict, "the last active owner")
}

func TestInviting(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	form := func(people, days string) url.Values {
		return url.Values{"people": {people}, "role": {"USER"}, "expiresInDays": {days}, "locale": {"de"}}
	}
	owner.get("/console/invitations/new", http.StatusOK, `value="USER" checked`, `value="OWNER"`)
	lacks(t, h.browserOf(t, "ADMIN").get("/console/invitations/new", http.StatusOK), `value="OWNER"`)

	owner.submit("/console/invitations/new", form("one@acme.example", "7"), "1 invitation is on its way.", "one@acme.example")
	owner.submit("/console/invitations/new", form("\"Lee, Ann\" <two@acme.example>; three@acme.example, four@acme.example\r\n\r\nthree@acme.example\n", "7"),
		"3 invitations are on their way.", ">Lee, Ann</bdi>", "four@acme.example")
	page := owner.post("/console/invitations/new", form("five@acme.example\nnonsense\nuser@acme.example\none@acme.example\nX <>", "7"),
		http.StatusUnprocessableEntity, "2 lines have to be corrected.", `value="nonsense"`, "is not an e-mail address", "has no address", `value="five@acme.example"`)
	lacks(t, page, "on its way")
	page = owner.post("/console/invitations/new", form("Email\tName\nfive@acme.example\tFive\nuser@acme.example\t\none@acme.example\t", "7"),
		http.StatusUnprocessableEntity, "1 invitation is on its way.", "is in the organisation already", "has an open invitation already", `value="one@acme.example"`)
	lacks(t, page, "five@acme.example\"")
	h.Code("two@acme.example")
	if mail := h.Mails("two@acme.example")[0]; !strings.Contains(mail.Subject+mail.Text, "Einladung") {
		t.Errorf("the mail isn't in German: %s\n%s", mail.Subject, mail.Text)
	}

	owner.post("/console/invitations/new", form("", "7"), http.StatusUnprocessableEntity, "Enter at least one address.")
	owner.post("/console/invitations/new", form("six@acme.example", "31"), http.StatusUnprocessableEntity, "Enter a number of days", "six@acme.example</textarea>")
	owner.post("/console/invitations/new", form(strings.Repeat("a", 100)+strings.Join(addresses(1001), "\n"), "7"), http.StatusUnprocessableEntity, "Up to 1,000 people at once.")
	above := form("six@acme.example", "7")
	above.Set("role", "OWNER")
	h.browserOf(t, "ADMIN").post("/console/invitations/new", above, http.StatusForbidden, "Your role does not allow it.")
	above.Set("role", "KING")
	owner.post("/console/invitations/new", above, http.StatusUnprocessableEntity, "Choose a role.")
}

func addresses(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("p%d@acme.example", i))
	}
	return all
}

func TestInvitations(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	path := "/console/invitations/" + makeInvitation(t, h)
	owner.get("/console/invitations?status=PENDING", http.StatusOK, "new@acme.example", ">Open</span>")
	owner.get("/console/invitations?status=ACCEPTED", http.StatusOK, "user@acme.example", ">Accepted</span>")
	owner.get("/console/invitations?status=REVOKED", http.StatusOK, "No invitation matches.")
	owner.get("/console/invitations?delivery=lost", http.StatusUnprocessableEntity, "One of the filters is invalid")
	owner.get("/console/invitations?delivery=sent&status=PENDING", http.StatusOK, `<option value="PENDING" selected>`, `<option value="sent" selected>`, "2 in use")
	owner.get("/console/invitations?status=open", http.StatusUnprocessableEntity, "One of the filters is invalid")
	h.Code("new@acme.example")
	owner.get(path, http.StatusOK, "sent", "owner@acme.example", "the link in the mail stops working at once.")
	owner.post(path+"/resend", url.Values{}, http.StatusTooManyRequests, "Try again in 60 seconds.")
	h.Advance(time.Minute)
	owner.submit(path+"/resend", url.Values{}, "A new mail is on its way.")
	owner.submit(path+"/revoke", url.Values{}, "The invitation is revoked.", ">Revoked</span>")
	owner.post(path+"/revoke", url.Values{}, http.StatusConflict, "not open any more")
	owner.post(path+"/resend", url.Values{}, http.StatusConflict, "not open any more")

	again := url.Values{"people": {"new@acme.example"}, "role": {"USER"}, "expiresInDays": {"7"}, "locale": {"en"}}
	for range 4 { // the mail sent again above was the first of five in a day
		page := owner.submit("/console/invitations/new", again, "1 invitation is on its way.")
		owner.submit(regexp.MustCompile(`/console/invitations/inv_[a-z0-9]+`).FindString(page)+"/revoke", url.Values{}, "The invitation is revoked.")
	}
	owner.post("/console/invitations/new", again, http.StatusUnprocessableEntity, `value="new@acme.example"`, "has had its mails for today, try again tomorrow")
}

func TestTrail(t *testing.T) {
	h := newFixture(t)
	owner, user := h.browserOf(t, "OWNER"), h.people["USER"]
	_, _ = owner.ask("POST", "/console/people/"+user.ID+"/role", url.Values{"role": {"VIEWER"}}, "X-Request-Id", "req_mine")
	owner.post("/console/people/usr_absent/role", url.Values{"role": {"USER"}}, http.StatusNotFound)
	entries := func(query string) int {
		return strings.Count(owner.get("/console/audit"+query, http.StatusOK), `<tr role="row" id="evt_`)
	}
	day := time.Now().UTC().Format(time.DateOnly)
	for query, want := range map[string]int{
		"?action=user.role": 1, "?request=req_mine": 1, "?actor=owner@acme.example&action=user.role": 1,
		"?actor=" + user.ID + "&action=user.role": 0, "?target=" + user.ID: 1, "?outcome=refused": 0,
		"?action=user.role&from=" + day + "&to=" + day: 1, "?to=2020-01-01": 0, "?ip=127.0.0.1&action=user.role": 1, "?ip=192.0.2.1": 0, "?from=2999-01-01": 0, "?action=user.role&to=9999-12-31": 1,
	} {
		if got := entries(query); got != want {
			t.Errorf("%s shows %d events, want %d", query, got, want)
		}
	}
	mine := owner.findOn(eventRow, owner.get("/console/audit?request=req_mine", http.StatusOK))
	owner.get("/console/audit?request=req_mine&event="+mine, http.StatusOK, "Role changed", "<dt>Role</dt><dd><bdi>User</bdi> → <bdi>Viewer</bdi>", "/console/people/"+user.ID, `<a href="?ip=127.0.0.1&amp;request=req_mine"><bdi>127.0.0.1</bdi></a>`)
	owner.get("/console/audit?ip=here", http.StatusUnprocessableEntity, "One of the filters is invalid", `value="here"`)
	owner.get("/console/audit?from=yesterday", http.StatusUnprocessableEntity, "One of the filters is invalid")
	owner.get("/console/audit?action=user.fly", http.StatusUnprocessableEntity, "One of the filters is invalid")

	page := owner.get("/console/audit?action=user.role&outcome=done&request=req_mine&ip=127.0.0.1&to="+day, http.StatusOK)
	link := regexp.MustCompile(`href="(/api/v2/audit-events[^"]*)"`).FindStringSubmatch(page)[1]
	res, file := owner.ask("GET", strings.ReplaceAll(link, "&amp;", "&"), nil)
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") || strings.Count(file, "\r\n") != 2 || !strings.Contains(file, "req_mine") {
		t.Errorf("the file is %d %s\n%s", res.StatusCode, res.Header.Get("Content-Type"), file)
	}
}

var wasField = regexp.MustCompile(`name="was" value="([^"]*)"`)

func TestSettings(t *testing.T) {
	h := newFixture(t)
	admin := h.browserOf(t, "ADMIN")
	const general, sessions, factors = "/console/settings?tab=general", "/console/settings?tab=sessions", "/console/settings?tab=factors"
	admin.get(sessions, http.StatusOK, `value="60"`, `selected>hour</option>`, "Up to 1 hour", `selected>day</option>`, "Up to 1 day")
	lacks(t, admin.get(general, http.StatusOK, `<h1 id="title"><bdi>`), ">Active<")
	page := admin.get(general, http.StatusOK)
	was := html.UnescapeString(wasField.FindStringSubmatch(page)[1])
	form := func(change ...string) url.Values {
		f := url.Values{
			"version": {admin.version(page)}, "name": {"Acme"}, "invitationDays": {"30"}, "keepEventsDays": {"0"}, "allowedEmailDomains": {""},
			"sessionIdleMinutes": {"60"}, "sessionAbsoluteMinutes": {"1440"}, "mfaGraceDays": {"0"}, "mfaRememberDays": {"0"}, "stepUpMinutes": {"10"},
		}
		for i := 0; i+1 < len(change); i += 2 {
			f.Set(change[i], change[i+1])
		}
		return f
	}
	// Inherited values are not saved as the tenant's own.
	for _, tab := range []string{general, sessions, factors} {
		admin.submit(tab, form(), "The settings are saved.")
	}
	if _, events := h.tenant.Owner.Get("/api/v2/audit-events?action=tenant.update"); strings.Contains(string(events), "evt_") {
		t.Errorf("saving unchanged settings is recorded: %s", events)
	}
	admin.submit(general, form("sessionIdleMinutes", "30", "allowedEmailDomains", "acme.example\r\nzeta.example", "name", "Acme & Co"),
		"The settings are saved.", "acme.example\nzeta.example</textarea>", "Acme &amp; Co")
	// Each tab saves its own fields only.
	admin.get(sessions, http.StatusOK, `value="60"`)
	// After a conflict the form has what this person changed, and what somebody else saved
	// in all other fields, so that sending it again undoes nothing. A change of language
	// keeps that.
	again := form("name", "Acme 2", "invitationDays", "9", "was", was)
	stale := admin.post(general, again, http.StatusPreconditionFailed, "Somebody else has saved these settings",
		`value="Acme 2"`, "You:</span> <bdi>Acme 2</bdi>", "Saved now:</span> <bdi>Acme &amp; Co</bdi>", `value="9"`, "acme.example\nzeta.example</textarea>")
	lacks(t, stale, "<bdi>9</bdi>", `name="version" value="`+admin.version(page))
	lacks(t, admin.translate(stale, general, "de", "Acme &amp; Co", "Einstellungen", "Jemand anderes hat diese Einstellungen"), `name="version" value="`+admin.version(page))
	again.Set("version", admin.version(stale))
	again.Set("allowedEmailDomains", "acme.example zeta.example")
	admin.submit(general, again, "The settings are saved.", `value="Acme 2"`, `value="9"`)
	admin.submit(sessions, url.Values{"sessionIdleMinutes": {"30"}, "sessionAbsoluteMinutes": {"1440"}}, "The settings are saved.", `value="30"`)
	admin.post(sessions, form("sessionIdleMinutes", "1", "sessionIdleMinutes.unit", "7"), http.StatusUnprocessableEntity, "within the limits above")
	page = admin.get(general, http.StatusOK)
	for _, c := range [][4]string{
		{sessions, "sessionIdleMinutes", "61", "within the limits above"},
		{sessions, "sessionIdleMinutes", "soon", "within the limits above"},
		{sessions, "sessionAbsoluteMinutes", "0", "within the limits above"},
		{general, "invitationDays", "31", "Enter whole days"},
		{general, "allowedEmailDomains", "acme.example no!domain", "At least one of these is no domain"},
		{general, "name", " ", "Enter a name."},
	} {
		admin.post(c[0], form(c[1], c[2]), http.StatusUnprocessableEntity, c[3], `aria-invalid="true"`)
	}
	admin.post("/console/invitations/new", url.Values{"people": {"x@evil.example"}, "role": {"USER"}, "expiresInDays": {"7"}},
		http.StatusUnprocessableEntity, "the settings don’t allow this domain")
	h.browserOf(t, "VIEWER").get("/console/settings", http.StatusOK, "<dd>30 minutes</dd>", "Acme 2")
}

func TestClosing(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	page := owner.get("/console/close", http.StatusOK, "4 people lose access at once.", "4 sessions end at once.", "For 14 days only an owner")
	lacks(t, page, "invitation can’t be")
	makeInvitation(t, h)
	person := "/console/people/" + h.people["VIEWER"].ID
	owner.post(person+"/suspend", url.Values{"version": {owner.version(owner.get(person+"/suspend", http.StatusOK))}}, http.StatusSeeOther)
	owner.get("/console/close", http.StatusOK, "3 people lose access at once.", "3 sessions end at once.", "1 open invitation can’t be accepted while it is closed.")
	owner.post("/console/close", url.Values{"confirm": {"acme"}}, http.StatusUnprocessableEntity, "not the name, letter for letter", `value="acme"`)
	owner.post("/console/close", url.Values{}, http.StatusUnprocessableEntity, "Type the name of the organisation.")
	res, page := owner.ask("POST", "/console/close", url.Values{"confirm": {"Acme"}})
	owner.shows("closing", res, page, http.StatusOK, []string{"The organisation is closed", "3 sessions have ended."})
	lacks(t, page, `name="lang"`, `name="confirm"`) // the session has ended, so the page can't be shown again
	if !slices.ContainsFunc(res.Cookies(), func(c *http.Cookie) bool { return c.Name == "JSESSIONID" && c.MaxAge < 0 }) {
		t.Error("the cookie of the session is kept")
	}
	if res, _ := owner.ask("GET", "/console", nil); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the console of a closed tenant is %d", res.StatusCode)
	}
	h.people["OWNER"].Login()
	if res, _ := h.browserOf(t, "OWNER").ask("GET", "/console", nil); res.Header.Get("Location") != "/closing" {
		t.Errorf("its owner is redirected to %q", res.Header.Get("Location"))
	}
}

// Names are untrusted input.
func TestHostileNames(t *testing.T) {
	h := doorwardtest.Start(t)
	const evil = `"><script>alert(1)</script><b a='{{.}}`
	tenant := h.Tenant("Acme")
	name, err := json.Marshal(map[string]string{"name": evil})
	if status, body := tenant.Owner.Do("PATCH", "/api/v2/tenant", name); err != nil || status != http.StatusOK {
		t.Fatal(err, status, string(body))
	}
	user := tenant.Join("user@acme.example", "USER")
	owner := open(t, h, tenant.Owner)
	path := "/console/people/" + user.ID
	owner.submit(path+"/name", url.Values{"name": {evil}}, "The name is saved.")
	owner.submit("/console/invitations/new", url.Values{"people": {`"` + strings.ReplaceAll(evil, "<", "") + `" <x@acme.example>`}, "role": {"USER"}, "expiresInDays": {"7"}})
	for _, page := range []string{
		"/console", "/console/people", "/console/people?q=" + url.QueryEscape(evil), path, path + "/remove", path + "/role?role=ADMIN",
		"/console/invitations", "/console/audit", "/console/audit?actor=" + url.QueryEscape(evil), "/console/settings", "/console/close",
	} {
		lacks(t, owner.get(page, http.StatusOK), "<script>alert", "<b a=", "ZgotmplZ")
	}
	lacks(t, owner.get("/console?done=saved&count=5&sessions=-1&invitations=x", http.StatusOK), "The settings are saved.")
}

// TestNoticeOnce: the page that a redirect leads to has the notice of what was done, once.
// Another browser doesn't get it, and an address alone can't cause one.
func TestNoticeOnce(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	owner, bob := open(t, s, acme.Owner), acme.Join("bob@acme.example", "USER")
	res, _ := owner.ask("POST", "/console/people/"+bob.ID+"/suspend", url.Values{})
	to := res.Header.Get("Location")
	const notice = "The person is suspended."
	lacks(t, open(t, s, acme.Owner).get(to, http.StatusOK), notice)
	owner.get(to, http.StatusOK, notice)
	lacks(t, owner.get(to, http.StatusOK), notice)
	lacks(t, owner.get("/console/people?done=remove&sessions=3", http.StatusOK), "The person is removed.")
}

// TestSortedLists: the headings sort, the whole list is counted, and the search ignores
// accents and the order of words.
func TestSortedLists(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	owner := open(t, s, acme.Owner)
	for email, name := range map[string]string{"a@acme.example": "Zoë Müller", "z@acme.example": "Ann Lee"} {
		p := acme.Join(email, "USER")
		owner.submit("/console/people/"+p.ID+"/name", url.Values{"name": {name}})
	}
	up := owner.get("/console/people?role=USER&sort=name", http.StatusOK, `aria-sort="ascending"`, "sort=-name", "2 people")
	if strings.Index(up, "Ann Lee") > strings.Index(up, "Zoë") {
		t.Error("the people aren't sorted by name")
	}
	down := owner.get("/console/people?role=USER&sort=-name", http.StatusOK, `aria-sort="descending"`)
	if strings.Index(down, "Ann Lee") < strings.Index(down, "Zoë") {
		t.Error("the people aren't sorted by name in reverse")
	}
	lacks(t, owner.get("/console/people?q=+muller+zoe", http.StatusOK, "Zoë Müller", "1 person"), "Ann Lee")
	owner.get("/console/people", http.StatusOK, `aria-sort="ascending"><a class="sort" href="?sort=-createdAt">Joined`, `<option value="" selected>Joined: oldest first`)
	owner.get("/console/people?q=acme&sort=-createdAt", http.StatusOK, `aria-sort="descending"><a class="sort" href="?q=acme">Joined`, `<option value="-createdAt" selected>`)
	owner.get("/console/people?sort=size", http.StatusUnprocessableEntity, "One of the filters is invalid")
	owner.submit("/console/invitations/new", url.Values{"people": {"Élodie <e@x.example>"}, "role": {"USER"}, "expiresInDays": {"7"}})
	owner.get("/console/invitations?q=elodie&sort=-email", http.StatusOK, "e@x.example", "1 invitation")
	lacks(t, owner.get("/console/invitations?q=elodie&role=VIEWER", http.StatusOK), "e@x.example")
}

// A tenant neither sees nor ends a person's sessions in other tenants.
func TestSessionsOfOneTenant(t *testing.T) {
	h := newFixture(t)
	ann := h.people["OWNER"] // of Acme, where her session stays
	created, err := h.Node.App.Tenants.Create(t.Context(), doorward.OperatorAtTerminal(), tenant.Draft{Name: "Third", OwnerEmail: ann.Email})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := ann.Post("/api/v2/auth/accept-invitation", map[string]any{"token": created.Token.Reveal()}); status != http.StatusOK {
		t.Fatal(status, string(body))
	}
	acme := ann.Token()
	ann.Login()
	third := open(t, h.Server, ann)
	res, _ := third.ask("POST", "/login/tenant", url.Values{"tenantId": {created.Tenant.ID}})
	for _, c := range res.Cookies() {
		third.token = c.Value
	}
	path := "/console/people/" + ann.ID
	page := third.get(path+"?tab=sessions", http.StatusOK, "<bdi>Third</bdi>", "This one")
	if n := strings.Count(page, `<tr role="row" id="ses_`); n != 1 {
		t.Errorf("%d sessions are shown, want the one in this tenant", n)
	}
	third.get(path+"/sign-out", http.StatusOK, "1 session ends at once.")
	if res, _ := third.ask("POST", path+"/sign-out", url.Values{}); !strings.Contains(res.Header.Get("Location"), "sessions=1") {
		t.Errorf("signing out leads to %q", res.Header.Get("Location"))
	}
	(&browser{T: t, server: h.Server, token: acme}).get("/console", http.StatusOK, "<bdi>Acme</bdi>")
}

// TestChosenPeople: a page shows what an action on several people will do, and another the
// result for each person; a suspension can be undone.
func TestChosenPeople(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	admin := acme.Join("admin@acme.example", "ADMIN")
	b := open(t, s, admin)
	form := url.Values{"act": {"suspend"}, "id": {acme.Owner.ID}}
	for n := range 2 {
		form.Add("id", acme.Join(fmt.Sprintf("p%d@acme.example", n), "USER").ID)
	}
	b.get("/console/people", http.StatusOK, `name="id" value="`+form["id"][1], `name="role" value="ADMIN"`)
	b.post("/console/people/chosen", form, http.StatusOK, "Suspend these people?", "2 will be changed. 1 will be refused.", ">Suspend 2 people</button>", "p1@acme.example", "It will be refused.")
	b.post("/console/people/chosen/do", form, http.StatusOK, "p0@acme.example", "Suspended.", "Undo", "owner@acme.example")
	// Undo lifts the suspensions of this action, and none from before.
	before := form["id"][1]
	form["id"] = append(form["id"], acme.Join("p2@acme.example", "USER").ID)
	b.post("/console/people/chosen", form, http.StatusOK, "1 will be changed. 2 stay as they are. 1 will be refused.", ">Suspend 1 person</button>")
	page := b.post("/console/people/chosen/do", form, http.StatusOK, "1 suspended · 2 were already suspended", "Was already suspended.", "p2@acme.example", "Undo")
	if strings.Contains(page, `name="lang"`) {
		t.Error("a language is offered, which would send the form again")
	}
	_, undo, _ := strings.Cut(page, `name="act" value="resume"`)
	undo, _, _ = strings.Cut(undo, "</form>")
	lacks(t, undo, before)
	form.Set("act", "resume")
	form["id"] = form["id"][1:]
	b.post("/console/people/chosen/do", form, http.StatusOK, "The person is no longer suspended.")
	form.Set("act", "role")
	b.post("/console/people/chosen", form, http.StatusNotFound)
	form.Set("role", "VIEWER")
	b.post("/console/people/chosen", form, http.StatusOK, "Change these roles?", "The new role is ")
	b.post("/console/people/chosen/do", form, http.StatusOK, "The role is changed.")
	form.Set("act", "nothing")
	b.post("/console/people/chosen", form, http.StatusNotFound)
	lacks(t, b.submit("/console/people/chosen", url.Values{"act": {"remove"}, "list": {"q=p1"}}, "Nothing was selected", `value="p1"`, "p1@acme.example"), "p0@acme.example")
}

func TestChosenInvitations(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	owner := open(t, s, acme.Owner)
	owner.submit("/console/invitations/new", url.Values{"people": {"a@x.example\nb@x.example"}, "role": {"USER"}, "expiresInDays": {"7"}})
	ids := regexp.MustCompile(`name="id" value="(inv_\w+)"`).FindAllStringSubmatch(owner.get("/console/invitations", http.StatusOK), -1)
	form := url.Values{"act": {"revoke"}, "id": {ids[0][1], ids[1][1]}}
	owner.post("/console/invitations/chosen", form, http.StatusOK, "Revoke these invitations?", "a@x.example", "b@x.example")
	owner.post("/console/invitations/chosen/do", form, http.StatusOK, "Revoked.", "Undo: invite again")
	owner.post("/console/invitations/chosen/do", form, http.StatusOK, "This invitation is not open any more")
	// Undo makes new invitations, once; the revoked ones stay so.
	form.Set("act", "invite")
	owner.post("/console/invitations/chosen/do", form, http.StatusOK, "Invited again.", "a@x.example", "b@x.example")
	lacks(t, owner.post("/console/invitations/chosen/do", form, http.StatusOK, "a@x.example"), "Invited again.")
	for state, want := range map[string]int{"REVOKED": 2, "PENDING": 2} {
		if got := strings.Count(owner.get("/console/invitations?status="+state, http.StatusOK), `<tr role="row" id="inv_`); got != want {
			t.Errorf("%d invitations are %s, want %d", got, state, want)
		}
	}
}

func TestEndOneSession(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	bob := acme.Join("bob@acme.example", "USER")
	token := bob.Token()
	owner := open(t, s, acme.Owner)
	path := "/console/people/" + bob.ID
	id := regexp.MustCompile(`name="session" value="(ses_\w+)"`).FindStringSubmatch(owner.get(path+"?tab=sessions", http.StatusOK))[1]
	lacks(t, owner.submit(path+"/end-session?tab=sessions", url.Values{"session": {id}}, "The session is ended."), id)
	own := &browser{T: t, server: s, token: token}
	if res, _ := own.ask("GET", "/api/v2/auth/session", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the ended session is answered %d", res.StatusCode)
	}
	row := "/console/audit?action=user.signout"
	lacks(t, owner.get(row, http.StatusOK, "One session of a person ended</a>"), "Sessions of a person ended</a>")
	bob.Login()
	owner.submit(path+"/sign-out", url.Values{}, "1 session has ended")
	owner.get(row, http.StatusOK, "Sessions of a person ended</a>")
	owner.submit(path+"/suspend", url.Values{}, "The person is suspended.", "Undo")
}

// TestPreview: the rows that were read from pasted text are shown with their faults, can be
// corrected in place, and are then sent.
func TestPreview(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	owner := open(t, s, acme.Owner)
	form := url.Values{"people": {"Name\tEmail\nAnn Lee\tann@x.example\nBob\tbob"}, "role": {"VIEWER"}, "expiresInDays": {"7"}, "locale": {"en"}}
	owner.post("/console/invitations/preview", form, http.StatusOK, `value="ann@x.example"`, `value="Ann Lee"`, "is not an e-mail address", "1 line has to be corrected.")
	rows := url.Values{"email": {"ann@x.example", "bob"}, "name": {"Ann Lee", "Bob"}, "rowRole": {"VIEWER", "USER"}, "expiresInDays": {"7"}, "locale": {"en"}}
	owner.post("/console/invitations/preview/send", rows, http.StatusUnprocessableEntity, "is not an e-mail address")
	rows["email"][1] = acme.Owner.Email
	owner.post("/console/invitations/preview/send", rows, http.StatusUnprocessableEntity, "is in the organisation already", "1 invitation is on its way.")
	rows = url.Values{"email": {"bob@x.example", ""}, "name": {"Bob", ""}, "rowRole": {"USER", "USER"}, "expiresInDays": {"7"}, "locale": {"en"}}
	owner.submit("/console/invitations/preview/send", rows, "1 invitation is on its way.", "ann@x.example", "bob@x.example")
	again := url.Values{"people": {"cem@x.example\nann@x.example\n" + acme.Owner.Email}, "role": {"USER"}, "expiresInDays": {"7"}, "locale": {"en"}}
	owner.post("/console/invitations/preview", again, http.StatusOK, "has an open invitation already", "is in the organisation already", "2 lines have to be corrected.")
	if status, answer := acme.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"allowedEmailDomains":["acme.example"]}}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	owner.post("/console/invitations/preview", again, http.StatusOK, "don’t allow this domain", "3 lines have to be corrected.")
	owner.post("/console/invitations/preview", url.Values{"people": {""}}, http.StatusUnprocessableEntity, "Enter at least one address.")
}
