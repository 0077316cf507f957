package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/doorward/doorward/internal/waittest"
)

var (
	hookSecret   = regexp.MustCompile(`<code id="secret"[^>]*>(whsec_[0-9A-Za-z+/&;#=]+)</code>`)
	hookLink     = regexp.MustCompile(`/console/webhooks/(whk_[a-z0-9]+)"`)
	rotationOn   = regexp.MustCompile(`name="rotation" value="([^"]+)"`)
	deliveryLink = regexp.MustCompile(`/deliveries/(whd_[a-z0-9]+)`)
	rawBody      = regexp.MustCompile(`(?s)Exactly as it is sent</summary><pre[^>]*>(.*?)</pre>`)
	wireHeader   = regexp.MustCompile(`<dt>(Webhook-[A-Za-z]+)</dt><dd><code>([^<]*)</code>`)
)

// receiver answers with its status, and keeps the last message.
type receiver struct {
	*httptest.Server
	status atomic.Int64
	header atomic.Pointer[http.Header]
	body   atomic.Pointer[[]byte]
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.header.Store(&req.Header)
		r.body.Store(&body)
		w.WriteHeader(int(r.status.Load()))
		if r.status.Load() != http.StatusNoContent {
			_, _ = io.WriteString(w, "<no>")
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// waitFor reads the page until it shows the text, and returns it.
func (b *browser) waitFor(path, text string) string {
	b.Helper()
	page := ""
	waittest.Until(b, strconv.Quote(text)+" on "+path, func() bool {
		page = b.get(path, http.StatusOK)
		return strings.Contains(page, text)
	})
	return page
}

// A webhook is made and gets events. Its pages show each attempt with the body and the
// headers that were sent, whose signature verifies.
func TestWebhookPages(t *testing.T) {
	h, endpoint := newFixture(t), newReceiver(t)
	b := h.browserOf(t, "ADMIN")
	b.get("/console/webhooks", http.StatusOK, "There are no webhooks yet")
	lacks(t, b.get("/console/webhooks/new", http.StatusOK, `value="user.*"`, `value="invitation.accept"`), `value="key.create"`, `value="webhook.test"`, ">message.send<")
	form := url.Values{"url": {endpoint.URL}, "about": {"<CRM>"}, "events": {"user.*", "invitation.accept"}}
	page := b.post("/console/webhooks/new", form, http.StatusOK, "it is shown only here", "whpk_")
	lacks(t, page, `name="lang"`) // switching the language would send the form again and lose the secret
	secret := strings.NewReplacer("&#43;", "+", "&#34;", `"`).Replace(b.findOn(hookSecret, page))
	path := "/console/webhooks/" + b.findOn(hookLink, page[strings.Index(page, "<main"):])
	lacks(t, b.get(path, http.StatusOK, "No event was sent yet", "There are no deliveries yet"), secret)
	b.get(path+"?tab=settings", http.StatusOK, `value="user.*" checked`)
	b.get("/console/webhooks", http.StatusOK, "1 webhook<", `<span class="small">+1</span>`)

	faulty := url.Values{"url": {""}, "about": {""}, "events": {"user.*"}}
	lacks(t, b.post(path+"/edit?tab=settings", faulty, http.StatusUnprocessableEntity), endpoint.URL+`"`, `value="&lt;CRM&gt;"`)

	b.post(path+"/test", url.Values{}, http.StatusOK, "The test was delivered", "<strong class=\"\">204</strong>")
	makeInvitation(t, h)
	page = b.waitFor(path, "1 delivered")
	b.get("/console/webhooks", http.StatusOK, "&lt;CRM&gt;", ">Active<", "<code>user.*</code>")
	deliveryPath := path + "/deliveries/" + b.findOn(deliveryLink, page)
	b.get(deliveryPath+"x", http.StatusNotFound)
	page = b.get(deliveryPath, http.StatusOK, "Person invited", ">Delivered<", "Exactly as it is sent", "Send again")
	shown := http.Header{}
	for _, m := range wireHeader.FindAllStringSubmatch(page, -1) {
		shown.Set(m[1], strings.ReplaceAll(m[2], "&#43;", "+"))
	}
	body := strings.ReplaceAll(b.findOn(rawBody, page), "&#34;", `"`)
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err == nil {
		err = verifier.Verify([]byte(body), shown)
	}
	if err != nil || body != string(*endpoint.body.Load()) || shown.Get("Webhook-Signature") != endpoint.header.Load().Get("Webhook-Signature") {
		t.Errorf("the page shows %v with\n%s, %v", shown, body, err)
	}
	h.browserOf(t, "OWNER").get("/console/audit", http.StatusOK, `<option value="webhook.manage">`, `<option value="apikey.manage">`)
	h.browserOf(t, "OWNER").get("/console/audit?target="+strings.TrimPrefix(path, "/console/webhooks/"), http.StatusOK, "Webhook created", `href="`+path+`"`)
	other := open(t, h.Server, h.other)
	other.get(path, http.StatusNotFound)
	other.get(deliveryPath, http.StatusNotFound)
	other.post(deliveryPath+"/retry", url.Values{}, http.StatusNotFound)
}

// A failing endpoint is shown as failing. A delivery and past events are sent again, the
// secret is replaced once, and the webhook is edited, disabled, enabled and deleted.
func TestChangingAWebhook(t *testing.T) {
	h, endpoint := newFixture(t), newReceiver(t)
	b := h.browserOf(t, "OWNER")
	page := b.post("/console/webhooks/new", url.Values{"url": {endpoint.URL}, "events": {"user.*"}, "email": {"1"}}, http.StatusOK)
	path := "/console/webhooks/" + b.findOn(hookLink, page[strings.Index(page, "<main"):])
	endpoint.status.Store(http.StatusInternalServerError)
	makeInvitation(t, h)
	page = b.waitFor(path+"?state=pending", "1 error answer")
	deliveryPath := path + "/deliveries/" + b.findOn(deliveryLink, page[strings.Index(page, `id="deliveries"`):])
	b.get(path+"?lang=de", http.StatusOK, "Mit Fehlern", "1 Fehlerantwort", "Nächster Versuch", ` UTC, Person eingeladen: Fehler, 500, `)
	b.get("/console/webhooks?lang=en", http.StatusOK, ">Failing<")
	b.get(path+"?state=failed", http.StatusOK, "No delivery has this status")
	b.get(path+"?state=x", http.StatusUnprocessableEntity, "One of the filters is invalid")
	b.get(deliveryPath, http.StatusOK, "&lt;no&gt;", ">Waiting<", `<span class="tag alarm">Error 500</span>`)
	endpoint.status.Store(http.StatusNoContent)
	b.submit(deliveryPath+"/retry", url.Values{}, "It is sent again now")
	b.waitFor(deliveryPath, ">Delivered<")

	// newFixture invites three people, makeInvitation one.
	b.submit(path+"/replay?tab=replay", url.Values{"only": {"user.invite"}, "from": {"2020-01-01T00:00"}}, "4 events are sent again")
	b.submit(path+"/replay?tab=replay", url.Values{"to": {"2020-01-01T00:00"}}, "No event matches")
	b.post(path+"/replay?tab=replay", url.Values{"from": {"2021-01-01T00:00"}, "to": {"2020-01-01T00:00"}}, http.StatusUnprocessableEntity, "The end is before the beginning")
	b.post(path+"/replay?tab=replay", url.Values{"from": {"soon"}}, http.StatusUnprocessableEntity, "Write a time such as")

	form := url.Values{"rotation": {b.findOn(rotationOn, b.get(path+"?tab=signing", http.StatusOK))}, "graceHours": {"24"}}
	b.post(path+"/rotate?tab=signing", form, http.StatusOK, "The secret is replaced", "deliveries are signed with the earlier secret, too")
	b.post(path+"/rotate?tab=signing", form, http.StatusPreconditionFailed)

	page = b.get(path+"?tab=settings", http.StatusOK, `name="email" value="1" checked`)
	form = url.Values{"url": {endpoint.URL + "/new"}, "about": {"CRM"}, "events": {"user.role"}, "version": {b.version(page)}}
	lacks(t, b.submit(path+"/edit?tab=settings", form, "The webhook is saved", "/new", `value="user.role" checked`), `value="1" checked`)
	form.Set("about", "Billing")
	b.post(path+"/edit?tab=settings", form, http.StatusPreconditionFailed, "Somebody else has changed this webhook", `value="Billing"`, "Saved now:</span> <bdi>CRM")
	b.get(path+"/disable", http.StatusOK, "gets nothing from now on")
	lacks(t, b.submit(path+"/disable", url.Values{}, "The webhook is disabled", ">Disabled<"), "/replay")
	b.get("/console/webhooks", http.StatusOK, `"`+path+`" aria-label="Actions: `+endpoint.URL+`/new" data-kind="disabled"`, `data-for="disabled" href="/console/webhooks/row-id/enable"`)
	b.post(path+"/replay?tab=replay", url.Values{}, http.StatusConflict, "Enable it first")
	b.submit(path+"/enable", url.Values{}, "The webhook is enabled")
	b.get(path+"/dance", http.StatusNotFound)
	b.get(path+"/delete", http.StatusOK, "list of deliveries is deleted")
	b.submit(path+"/delete", url.Values{}, "The webhook is deleted", "There are no webhooks yet")
}

func TestWebhookFormRefuses(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "ADMIN")
	for field, c := range map[string]struct{ value, want string }{
		"url":    {"http://10.0.0.1/", "on public addresses only"},
		"about":  {strings.Repeat("x", 201), "Write 200 characters at most"},
		"events": {"dance.*", "One of these is no event"},
	} {
		form := url.Values{"url": {"https://192.0.2.1/"}, "events": {"user.*"}}
		form.Set(field, c.value)
		b.post("/console/webhooks/new", form, http.StatusUnprocessableEntity, c.want)
	}
	b.post("/console/webhooks/new", url.Values{"url": {""}}, http.StatusUnprocessableEntity, "Say where the events go", "Choose at least one event")
}

// The pages that suspend or remove somebody show the webhooks that the person has made and that go on.
func TestWebhooksOfRemovedPeople(t *testing.T) {
	h, endpoint := newFixture(t), newReceiver(t)
	admin, owner, person := h.browserOf(t, "ADMIN"), h.browserOf(t, "OWNER"), "/console/people/"+h.people["ADMIN"].ID
	page := admin.post("/console/webhooks/new", url.Values{"url": {endpoint.URL}, "events": {"user.*"}}, http.StatusOK)
	hook := admin.findOn(hookLink, page[strings.Index(page, "<main"):])
	const goesOn = "1 webhook that this person has made goes on."
	lacks(t, owner.get(person+"/sign-out", http.StatusOK), goesOn)
	owner.get(person+"/suspend", http.StatusOK, goesOn, `href="/console/webhooks/`+hook+`"><bdi>http:/<wbr>/<wbr>127.<wbr>`)
	owner.submit(person+"/suspend", url.Values{}, goesOn)
	owner.submit(person+"/resume", url.Values{})
	chosen := url.Values{"act": {"remove"}, "id": {h.people["ADMIN"].ID}}
	owner.post("/console/people/chosen", chosen, http.StatusOK, goesOn)
	owner.post("/console/people/chosen/do", chosen, http.StatusOK, goesOn)
}
