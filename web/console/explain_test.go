package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/pgtest"
)

const explainPath = "/console/explain?"

func TestExplaining(t *testing.T) {
	h := newFixture(t)
	applyModel(t, h, `actions:
  invoice.read: {roles: [OWNER, ADMIN, USER]}
  invoice.pay: {roles: [OWNER, ADMIN], resource: invoice, about: "Pay <all> invoices"}
resources:
  invoice: {amount: long}
`)
	putPolicy(t, h, noSettings+"@id(\"large\") @reason(\"Too <large>.\") forbid(principal, action == Action::\"invoice.pay\", resource) when { resource.amount > 10000 };\n"+
		"@id(\"inside\") forbid(principal, action == Action::\"invoice.read\", resource) unless { context.ip.isInRange(ip(\"192.0.2.0/24\")) };\n"+
		"@id(\"night\") forbid(principal, action == Action::\"user.invite\", resource) when { context.now.toTime() < duration(\"6h\") };\n")
	key := makeKey(t, h, map[string]any{"permissions": []string{"invoice.read"}, "role": "ADMIN"})
	b := h.browserOf(t, "OWNER")
	b.get("/console/explain", http.StatusOK, "Explain</h1>", "Pay &lt;all&gt; invoices (invoice.pay)</option>", ">See who is in the organisation (user.read)</option>")
	for _, c := range []struct {
		who, action string
		more        url.Values
		want        []string
	}{
		{"ADMIN@acme.example", "user.read", nil, []string{"Allowed (user.read)", "The role “Administrator” grants it.", ">admin@acme.example</bdi>"}},
		{h.people["VIEWER"].ID, "user.invite", nil, []string{"Refused (user.invite)", "The role “Viewer” does not grant it."}},
		{"owner@acme.example", "settings.manage", nil, []string{"Refused", `href="/console/policy#L1"><code dir="ltr">no-settings</code> (line 1)`}},
		{"owner@acme.example", "user.suspend", nil, []string{"Allowed (user.suspend)"}},
		{"admin@acme.example", "invoice.pay", nil, []string{"Refused", "#L3", "Too &lt;large&gt;."}},
		{"admin@acme.example", "invoice.pay", url.Values{"attributes": {`{"amount": 10001}`}}, []string{"Refused", "large"}},
		{"admin@acme.example", "invoice.pay", url.Values{"attributes": {`{"amount": 10000}`}}, []string{"Allowed"}},
		{"admin@acme.example", "invoice.pay", url.Values{"attributes": {`{"amount": 10000}{}`}}, []string{"The attributes are no JSON object"}},
		{"user@acme.example", "invoice.read", url.Values{"ip": {"192.0.2.9"}}, []string{"Allowed"}},
		{"user@acme.example", "invoice.read", url.Values{"ip": {"198.51.100.9"}}, []string{"Refused", "inside", "#L4"}},
		{"user@acme.example", "invoice.read", url.Values{"ip": {"here"}}, []string{"This is no address", `value="here"`}},
		{"admin@acme.example", "user.invite", url.Values{"time": {"2030-01-01T05:59"}}, []string{"Refused", "night"}},
		{"admin@acme.example", "user.invite", url.Values{"time": {"2030-01-01T06:00:00"}}, []string{"Allowed"}},
		{"admin@acme.example", "user.invite", url.Values{"time": {"soon"}}, []string{"This is no time"}},
		{key, "invoice.read", url.Values{"ip": {"192.0.2.9"}}, []string{"Allowed", "The key has this permission", ">Shop</bdi>"}},
		{key, "invoice.pay", nil, []string{"Refused", "The API key prevents it"}},
		{"owner@acme.example", "settings.manage", url.Values{"version": {"1"}}, []string{"Refused", `href="/console/policy/versions/1#L1"`}},
		{"owner@acme.example", "settings.manage", url.Values{"version": {"9"}}, []string{"There is no such version"}},
		{"nobody@acme.example", "user.read", nil, []string{"There is no such person"}},
		{h.other.ID, "user.read", nil, []string{"There is no such person"}},
		{"key_absent", "user.read", nil, []string{"There is no such person"}},
		{"owner@acme.example", "key.create", nil, []string{"There is no such action"}},
		{"owner@acme.example", "x", nil, []string{"There is no such action"}},
	} {
		q := url.Values{"who": {c.who}, "action": {c.action}}
		for name, values := range c.more {
			q[name] = values
		}
		page := b.get(explainPath+q.Encode(), http.StatusOK, c.want...)
		if allowed := strings.Contains(page, "Allowed ("); allowed != strings.HasPrefix(c.want[0], "Allowed") {
			t.Errorf("%s %s %v: allowed is %t", c.who, c.action, c.more, allowed)
		}
	}
	b.submit("/console/people/"+h.people["USER"].ID+"/suspend", url.Values{})
	b.get(explainPath+"who=user@acme.example&action=invoice.read&ip=192.0.2.9", http.StatusOK, "Refused", "The role grants it, but:")
	h.browserOf(t, "VIEWER").get(explainPath+"who=user@acme.example&action=invoice.read", http.StatusForbidden)
	b.get("/console/people/"+h.people["ADMIN"].ID+"?tab=security", http.StatusOK, `action="/console/explain"`)
	b.get("/console/keys/"+key, http.StatusOK, `href="/console/explain?who=`+key+`"`)
	lacks(t, h.browserOf(t, "VIEWER").get("/console/people/"+h.people["ADMIN"].ID+"?tab=security", http.StatusOK), "/console/explain")
}

var whyLink = regexp.MustCompile(`<a class="why" href="(/console/explain[^"]+)">Explain</a>`)

// A refusal in the trail leads to its explanation, with its time and address.
func TestRefusalLeadsToItsExplanation(t *testing.T) {
	h := newFixture(t)
	putPolicy(t, h, noInviting)
	h.people["ADMIN"].Post("/api/v2/auth/invite", map[string]any{"email": "x@acme.example", "role": "USER"})
	b := h.browserOf(t, "OWNER")
	page := b.get("/console/audit?outcome=refused", http.StatusOK, "A policy of the organisation refuses it")
	b.get(html.UnescapeString(b.findOn(whyLink, page)), http.StatusOK, "Refused (user.invite)", "no-inviting", `value="127.0.0.1"`, "#L1")
	lacks(t, b.get("/console/audit?outcome=done", http.StatusOK), `class="why"`)
}

// While a text only observes, the explanation leads to the text that refuses.
func TestExplanationWhileObserving(t *testing.T) {
	h := newFixture(t)
	putPolicy(t, h, noInviting)
	b := h.browserOf(t, "OWNER")
	b.submit(policyPath, url.Values{"text": {noSettings}, "mode": {"observe"}, "version": {"1"}})
	b.get(explainPath+"who=owner@acme.example&action=user.invite", http.StatusOK, "Refused", `href="/console/policy/versions/1#L1"`)
	b.get(explainPath+"who=owner@acme.example&action=settings.manage", http.StatusOK, "Allowed")
}

// PostgreSQL refuses to search for what it can't store. That is no fault of the server's.
func TestExplainingWhoCannotBeStored(t *testing.T) {
	h := newFixture(t, doorwardtest.Database(pgtest.DSN(t)))
	b := h.browserOf(t, "OWNER")
	for _, who := range []string{"\x00", "ann\xff@acme.example", h.other.ID + "\x00", doorward.PrefixKey + "\xff"} {
		b.get(explainPath+url.Values{"who": {who}, "action": {"user.read"}}.Encode(), http.StatusOK, "There is no such person")
	}
}
