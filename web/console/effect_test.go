package console_test

import (
	"encoding/base32"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/web/console"
	"github.com/doorward/doorward/web/front"
)

// strictSettings are settings of which every change loosens something.
func strictSettings(owner *browser) url.Values {
	return url.Values{
		"name": {"Acme"}, "version": {owner.version(owner.get("/console/settings", 200))}, "invitationDays": {"3"}, "keepEventsDays": {"0"}, "allowedEmailDomains": {"acme.example"},
	}
}

// TestFormsToEachEffect: an old session of an OWNER with a second factor is sent to prove who it is by
// every form that raises somebody, loosens a demand, or makes or widens a credential, and nothing is
// changed. Each form of the console is in one of the two lists.
func TestFormsToEachEffect(t *testing.T) {
	sink := newReceiver(t).URL
	h := newFixture(t)
	ann, bob := h.people["USER"], h.tenant.Join("bob@acme.example", "ADMIN")
	owner := h.browserOf(t, "OWNER")
	strict := strictSettings(owner)
	owner.submit("/console/settings", strict)
	owner.submit("/console/people/"+bob.ID+"/suspend", url.Values{})
	owner.submit("/console/invitations/new", url.Values{"people": {"new@acme.example"}, "role": {"ADMIN"}, "expiresInDays": {"3"}})
	pending := owner.findOn(regexp.MustCompile(`/console/invitations/(inv_[a-z0-9]+)"`), owner.get("/console/invitations", 200))
	key := makeKey(t, h, nil)
	off := makeKey(t, h, nil)
	owner.submit("/console/keys/"+off+"/disable", url.Values{})
	role := makeRole(t, h, "READER", "", "message.read")
	putPolicy(t, h, "// none\n")
	made := owner.post("/console/webhooks/new", url.Values{"url": {sink}, "events": {"user.*"}}, 200)
	hook := owner.findOn(hookLink, made[strings.Index(made, "<main"):])
	created := owner.submit("/console/sso/new", url.Values{"product": {"okta"}})
	con := "/console/sso/connections/" + owner.findOn(connectionLink, created)
	added := owner.submit("/console/sso/domains", url.Values{"domain": {"acme.example"}})
	domain := "/console/sso/domains/" + owner.findOn(domainLink, added)
	owner.token = enrolTOTP(t, h)
	h.Advance(15 * time.Minute)

	list := "email,role\n" + strings.ReplaceAll(listOfPeople(101), "@x.example\n", "@acme.example,ADMIN\n")
	plan := owner.findOn(planField, owner.post("/console/invitations/preview", url.Values{"people": {list}, "expiresInDays": {"3"}}, http.StatusOK, "Administrator: 101"))
	loosened := maps.Clone(strict)
	loosened.Set("version", owner.version(owner.get("/console/settings", 200)))
	loosened.Set("invitationDays", "4")
	version := url.Values{"version": {"2"}}
	asks := []struct {
		route, path string
		form        url.Values
	}{
		{"/console/invitations/new", "", url.Values{"people": {"x@acme.example"}, "role": {"ADMIN"}, "expiresInDays": {"3"}}},
		{"/console/invitations/preview/send", "", url.Values{"email": {"y@acme.example"}, "name": {""}, "rowRole": {"ADMIN"}, "expiresInDays": {"3"}}},
		{"/console/invitations/import", "", url.Values{"plan": {plan}}},
		{"/console/invitations/{id}/resend", "/console/invitations/" + pending + "/resend", url.Values{}},
		{"/console/invitations/chosen/do", "", url.Values{"act": {"resend"}, "id": {pending}}},
		{"/console/people/{id}/{act}", "/console/people/" + ann.ID + "/role", url.Values{"role": {"ADMIN"}}},
		{"/console/people/{id}/{act}", "/console/people/" + bob.ID + "/resume", url.Values{}},
		{"/console/people/{id}/keep-role", "/console/people/" + ann.ID + "/keep-role", url.Values{"role": {"ADMIN"}}},
		{"/console/people/chosen/do", "", url.Values{"act": {"role"}, "role": {"ADMIN"}, "id": {ann.ID}}},
		{"/console/people/chosen/do", "", url.Values{"act": {"resume"}, "id": {bob.ID}}},
		{"/console/settings", "", loosened},
		{"/console/keys/new", "", url.Values{"name": {"k"}, "permissions": {"message.send"}, "days": {"30"}}},
		{"/console/keys/{id}/edit", "/console/keys/" + key + "/edit", url.Values{"name": {"k"}, "permissions": {"message.send", "message.read"}, "days": {"90"}}},
		{"/console/keys/{id}/rotate", "/console/keys/" + key + "/rotate", url.Values{"graceHours": {"1"}, "hint": {owner.findOn(regexp.MustCompile(`name="hint" value="([^"]+)"`), owner.get("/console/keys/"+key+"?tab=rotation", 200))}}},
		{"/console/keys/{id}/{act}", "/console/keys/" + off + "/enable", url.Values{}},
		{"/console/roles/new", "", url.Values{"roleName": {"DESK"}, "permissions": {"user.read"}}},
		{"/console/roles/{id}/save", "/console/roles/" + role + "/save", url.Values{"roleName": {"READER"}, "permissions": {"user.read"}, "version": {"1"}}},
		{"/console/roles/{id}/delete", "/console/roles/" + role + "/delete", url.Values{}},
		{"/console/policy", "", url.Values{"text": {""}, "version": {"1"}}},
		{"/console/policy/versions/{version}/restore", "/console/policy/versions/1/restore", version},
		{"/console/webhooks/new", "", url.Values{"url": {sink}, "events": {"user.*"}}},
		{"/console/webhooks/{id}/edit", "/console/webhooks/" + hook + "/edit", url.Values{"url": {sink}, "events": {"*"}}},
		{"/console/webhooks/{id}/rotate", "/console/webhooks/" + hook + "/rotate", url.Values{"rotation": {owner.findOn(regexp.MustCompile(`name="rotation" value="([^"]+)"`), owner.get("/console/webhooks/"+hook+"?tab=signing", 200))}}},
		{"/console/webhooks/{id}/{act}", "/console/webhooks/" + hook + "/delete", url.Values{}},
		{"/console/sso/new", "", url.Values{"product": {"okta"}}},
		{"/console/sso/connections/{id}/edit", con + "/edit", url.Values{"name": {"Other"}, "clientId": {"x"}, "clientAuth": {"private_key_jwt"}, "emailFrom": {"email"}}},
		{"/console/sso/connections/{id}/access", con + "/access", url.Values{"jit": {"domains"}, "jitRole": {"ADMIN"}}},
		{"/console/sso/connections/{id}/secrets", con + "/secrets", url.Values{"clientSecret": {"x"}}},
		{"/console/sso/connections/{id}/directory", con + "/directory", url.Values{"outside": {"refuse"}}},
		{"/console/sso/connections/{id}/scim-secrets", con + "/scim-secrets", url.Values{"days": {"90"}}},
		{"/console/sso/connections/{id}/refresh", con + "/refresh", url.Values{}},
		{"/console/sso/connections/{id}/setup-link", con + "/setup-link", url.Values{"days": {"7"}}},
		{"/console/sso/connections/{id}/{act}", con + "/delete", url.Values{}},
		{"/console/sso/domains", "", url.Values{"domain": {"other.example"}}},
		{"/console/sso/domains/{id}/connection", domain + "/connection", url.Values{"connectionId": {strings.TrimPrefix(con, "/console/sso/connections/")}}},
		{"/console/sso/domains/{id}/delete", domain + "/delete", url.Values{}},
		{"/console/sso/policy", "", url.Values{"mode": {"optional"}, "guests": {"allowed"}, "minutes": {"30"}}},
		{"/console/close", "", url.Values{"confirm": {"Acme"}}},
	}
	known := formsWithoutSuchAnEffect
	before := stateOf(t, h)
	for _, f := range asks {
		known = append(known, f.route)
		path := f.path
		if path == "" {
			path = f.route
		}
		res, page := owner.ask("POST", path, f.form)
		if !strings.Contains(res.Header.Get("Location")+page, "/step-up") {
			t.Errorf("POST %s: %d to %q asks for no proof:\n%s", path, res.StatusCode, res.Header.Get("Location"), page)
		}
		if after := stateOf(t, h); after != before {
			t.Errorf("POST %s has changed something:\n%s\n%s", path, before, after)
			before = after
		}
	}
	known = append(known, "/console/sso/connections/{id}/saml") // has a file
	if res, page := owner.upload(con+"/saml", []part{{name: "name", text: "Other"}}); !strings.Contains(res.Header.Get("Location")+page, "/step-up") || stateOf(t, h) != before {
		t.Errorf("the form of SAML is answered %d without a proof, and changes:\n%s", res.StatusCode, stateOf(t, h))
	}
	for _, r := range console.Routes(h.Node.App) {
		if r.Method == "POST" && !slices.Contains(known, r.Path) {
			t.Errorf("POST %s is in neither list", r.Path)
		}
	}
}

// formsWithoutSuchAnEffect only show what would be done, tighten, take away, or change how something looks.
var formsWithoutSuchAnEffect = []string{
	"/console/people/chosen", "/console/people/{id}/end-session", "/console/people/{id}/name",
	"/console/invitations/preview", "/console/invitations/preview/file", "/console/invitations/chosen", "/console/invitations/{id}/revoke",
	"/console/roles/{id}/edit", "/console/keys/{id}/previous", "/console/keys/new/role", "/console/policy/example", "/console/policy/plan",
	"/console/policy/confirm",                       // keeps what somebody has put in force with a proof
	"/console/people/{id}/from-directory",           // gives the role that the mappings of an OWNER say
	"/console/sso/connections/{id}/test",            // opens no session
	"/console/sso/connections/{id}/{act}/{of}",      // takes a secret or an identity away, with a proof
	"/console/sso/connections/{id}/runs/{run}/undo", // with a proof, as TestUndoOfARun shows
	"/console/sso/domains/{id}/verify",              // by a record that only who has the domain publishes
	"/console/sso/policy/confirm",                   // keeps what somebody has put in force with a proof
	"/console/webhooks/{id}/test", "/console/webhooks/{id}/replay", "/console/webhooks/{id}/deliveries/{delivery}/retry",
	"/console/settings/accent", "/console/settings/logo", "/console/settings/logo/remove",
	// For the operator, who has no session: what a page may do, and for how long, says who makes its link at a terminal.
	front.OperatorPage + "/open", front.OperatorPage + "/leave", front.OperatorPage + "/tenants/{id}/{act}",
}

// stateOf returns what the forms could change, as an ADMIN reads it.
func stateOf(t *testing.T, h fixture) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{"users", "invitations", "api-keys", "roles", "policy", "webhooks", "tenant"} {
		status, body := h.people["ADMIN"].Do("GET", "/api/v2/"+path, nil)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		all.Write(body)
	}
	return all.String()
}

// enrolTOTP gives the OWNER an authenticator app, and returns the token of the session from then on.
func enrolTOTP(t *testing.T, h fixture) (token string) {
	t.Helper()
	_, body := h.tenant.Owner.Post("/api/v2/auth/factors/totp", map[string]any{})
	var begun struct{ ID, Secret string }
	if err := json.Unmarshal(body, &begun); err != nil {
		t.Fatal(err)
	}
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(begun.Secret)
	if err != nil {
		t.Fatal(err)
	}
	code := totp.Code(seed, totp.Step(h.Node.App.Now()))
	var done struct{ Token string }
	_, body = h.tenant.Owner.Post("/api/v2/auth/factors/totp/confirm", map[string]any{"id": begun.ID, "code": code})
	if err := json.Unmarshal(body, &done); err != nil || done.Token == "" {
		t.Fatalf("%v: %s", err, body)
	}
	return done.Token
}
