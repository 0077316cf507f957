package web_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/internal/waittest"
)

const hooksPath = "/api/v2/webhooks"

// endpoint is a receiver of webhooks, which gives each message the same answer.
type endpoint struct {
	*httptest.Server
	mu  sync.Mutex
	got []received

	// The answer to each message.
	status int
	header http.Header
	body   string
}

type received struct {
	header http.Header
	body   []byte
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{status: http.StatusNoContent, header: http.Header{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.got = append(e.got, received{r.Header.Clone(), body})
		for name, values := range e.header {
			w.Header()[name] = values
		}
		w.WriteHeader(e.status)
		_, _ = io.WriteString(w, e.body)
	}))
	t.Cleanup(e.Close)
	return e
}

// setAnswer sets the answer to later messages. header has names, each followed by its value.
func (e *endpoint) setAnswer(status int, body string, header ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.body, e.header = status, body, http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		e.header.Set(header[i], header[i+1])
	}
}

// take returns the messages since the last call.
func (e *endpoint) take() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got = nil
	return got
}

// newHook creates a webhook, by default for user.*, and returns its id and its secret.
func (s *server) newHook(t *testing.T, url string, who opt, more m) (id, secret string) {
	t.Helper()
	body := m{"url": url, "events": []string{"user.*"}}
	for name, v := range more {
		body[name] = v
	}
	a := s.send(t, "POST "+hooksPath, body, who).ok(http.StatusCreated)
	return a.text("webhook.id"), a.text("secret")
}

// deliveriesOf returns the deliveries of a webhook, the newest first.
func (s *server) deliveriesOf(t *testing.T, id, query string, who opt) (all []m) {
	t.Helper()
	for _, d := range s.send(t, "GET "+hooksPath+"/"+id+"/deliveries"+query, nil, who).ok(200).at("items").([]any) {
		all = append(all, d.(m))
	}
	return all
}

// verify checks a message with the reference library, and its signature v1a with the public
// key.
func verify(t *testing.T, got received, secret, publicKey string) {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err == nil {
		err = verifier.Verify(got.body, got.header)
	}
	if err != nil {
		t.Errorf("the reference library refuses it: %v\n%v", err, got.header)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(publicKey, "whpk_"))
	if err != nil || len(key) != ed25519.PublicKeySize {
		t.Fatalf("the public key is %q", publicKey)
	}
	content := fmt.Sprintf("%s.%s.%s", got.header.Get("Webhook-Id"), got.header.Get("Webhook-Timestamp"), got.body)
	for signature := range strings.FieldsSeq(got.header.Get("Webhook-Signature")) {
		if text, isV1a := strings.CutPrefix(signature, "v1a,"); isV1a {
			sum, err := base64.StdEncoding.DecodeString(text)
			if err != nil || !ed25519.Verify(key, []byte(content), sum) {
				t.Error("the signature v1a is wrong")
			}
			return
		}
	}
	t.Errorf("there is no signature v1a: %s", got.header.Get("Webhook-Signature"))
}

// TestWebhook: an event is delivered once, signed twice, with its number and without e-mail
// addresses unless they are asked for.
func TestWebhook(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, receiver := d.Tenant("Acme"), newEndpoint(t)
		owner := as(acme.Owner.Token())
		made := d.send(t, "POST "+hooksPath, m{"url": receiver.URL, "events": []string{"user.*"}}, owner).ok(http.StatusCreated)
		id, secret, public := made.text("webhook.id"), made.text("secret"), made.text("webhook.publicKey")
		d.invite(t, acme.Owner, "bob@acme.example", "USER")
		waittest.Until(t, "the first event is delivered", func() bool { return len(d.deliveriesOf(t, id, "?state=delivered", owner)) == 1 })
		got := receiver.take()
		if len(got) != 1 {
			t.Fatalf("%d messages came", len(got))
		}
		verify(t, got[0], secret, public)
		event := d.trail(t, acme.Owner, "?action=user.invite")[0]
		var body m
		if err := json.Unmarshal(got[0].body, &body); err != nil {
			t.Fatal(err)
		}
		data := body["data"].(m) // the invitation is the fifth event of the trail
		if body["type"] != "user.invite" || body["timestamp"] != event["at"] || got[0].header.Get("Webhook-Id") != event["id"] || data["id"] != event["id"] || data["seq"] != 5.0 {
			t.Errorf("the body is %s\nof the event %v", got[0].body, event)
		}
		if strings.Contains(string(got[0].body), "@") {
			t.Errorf("the body has an address: %s", got[0].body)
		}
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"include": []string{"email"}}, owner).ok(200)
		d.invite(t, acme.Owner, "eve@acme.example", "USER")
		waittest.Until(t, "the second event is delivered", func() bool { return len(d.deliveriesOf(t, id, "?state=delivered", owner)) == 2 })
		if got := receiver.take(); len(got) != 1 || !strings.Contains(string(got[0].body), "eve@acme.example") || !strings.Contains(string(got[0].body), acme.Owner.Email) {
			t.Errorf("with include email, the messages are %q", got)
		}
		d.send(t, "GET "+hooksPath+"/"+id, nil, owner).ok(200).is("failingSince", nil)
		d.send(t, "GET "+hooksPath+"?cursor=x", nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
		d.send(t, "GET "+hooksPath+"/"+id+"/deliveries?cursor=x", nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"about": "x"}, owner, with("If-Match", `"old"`)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"url": "nonsense"}, owner).invalid("/url", "invalid")
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"url": "https://hooks.example.com:65536/"}, owner).invalid("/url", "invalid")
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"url": "https://2130706433/"}, owner).invalid("/url", "address_refused")
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"about": "a\u202eb"}, owner).invalid("/about", "invalid")
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"about": strings.Repeat("x", 201)}, owner).invalid("/about", "out_of_range")
		for _, wrong := range []string{"?limit=0", "?state=none"} {
			d.send(t, "GET "+hooksPath+"/whk_absent/deliveries"+wrong, nil, owner).fails(http.StatusNotFound, "not_found")
			d.send(t, "GET "+hooksPath+"/whk_absent/deliveries"+wrong+"&cursor=x", nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
			d.send(t, "GET "+hooksPath+"/"+id+"/deliveries"+wrong, nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
		}
	}, masterKey(t))
}

// TestOneJSONOfEvents: the API, webhooks and both exports write an event alike; only the list
// leaves out seq.
func TestOneJSONOfEvents(t *testing.T) {
	d := start(t, masterKey(t))
	acme, receiver := d.Tenant("Acme"), newEndpoint(t)
	owner := as(acme.Owner.Token())
	d.newHook(t, receiver.URL, owner, m{"include": []string{"email"}})
	d.invite(t, acme.Owner, "bob@acme.example", "USER")
	var got []received
	waittest.Until(t, "the event is delivered", func() bool { got = append(got, receiver.take()...); return len(got) == 1 })
	var sent, line m
	if err := json.Unmarshal(got[0].body, &sent); err != nil {
		t.Fatal(err)
	}
	forms := map[string]any{"the webhook": sent["data"]}
	feed := d.send(t, "GET /api/v2/events?types=user.invite", nil, owner).ok(200).at("items").([]any)
	forms["the feed"] = feed[0]
	events, _, err := d.Node.App.Audit.Export(t.Context(), audit.Scope{TenantID: acme.ID}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if text, err := audit.AppendLine(nil, e); err != nil || e.Action == "user.invite" && json.Unmarshal(text, &line) != nil {
			t.Fatal(err, string(text))
		}
	}
	forms["the export of the trail"] = line
	forms["the export of the tenant"] = exportedInvite(t, d, acme.ID)
	want := d.trail(t, acme.Owner, "?action=user.invite")[0]
	if _, hasSeq := want["seq"]; hasSeq {
		t.Error("the list has seq")
	}
	want["seq"] = line["seq"]
	for name, event := range forms {
		if diff := cmp.Diff(any(want), event); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// exportedInvite returns the event user.invite in the export of the tenant.
func exportedInvite(t *testing.T, d *server, tenantID string) any {
	t.Helper()
	var text bytes.Buffer
	if err := d.Node.App.Tenants.Export(t.Context(), doorward.OperatorAtTerminal(), tenantID, false, &text); err != nil {
		t.Fatal(err)
	}
	var all struct{ AuditEvents []m }
	if err := json.Unmarshal(text.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for _, e := range all.AuditEvents {
		if e["action"] == "user.invite" {
			return e
		}
	}
	return nil
}

// TestWebhookSecret: during the grace period a message verifies with both secrets. After it, the
// message has one signature by a secret. The public key stays.
func TestWebhookSecret(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, receiver := d.Tenant("Acme"), newEndpoint(t)
		owner := as(acme.Owner.Token())
		id, first := d.newHook(t, receiver.URL, owner, nil)
		public := d.send(t, "GET "+hooksPath+"/"+id, nil, owner).ok(200).text("publicKey")
		second := d.send(t, "POST "+hooksPath+"/"+id+"/rotate-secret", m{"graceHours": 2}, owner).ok(http.StatusCreated).text("secret")
		test := func() received {
			d.send(t, "POST "+hooksPath+"/"+id+"/test", nil, owner).ok(200).is("status", 204.0)
			return receiver.take()[0]
		}
		message := test()
		verify(t, message, first, public)
		verify(t, message, second, public)
		d.Advance(2*time.Hour + time.Minute)
		owner = as(d.token(t, acme.Owner.Email))
		if n := strings.Count(test().header.Get("Webhook-Signature"), "v1,"); n != 1 {
			t.Errorf("after the grace period there are %d signatures by secrets, want 1", n)
		}
		d.send(t, "POST "+hooksPath+"/"+id+"/rotate-secret", m{"graceHours": 169}, owner).invalid("/graceHours", "out_of_range")
		d.send(t, "POST "+hooksPath+"/"+id+"/replay", m{"from": "x"}, owner).invalid("/from", "invalid")
	}, masterKey(t))
}

// TestWebhookRetries: after an answer other than 2xx a message is sent again by the schedule, with
// the same id. A longer Retry-After is followed, 410 disables the webhook, and the first KiB of
// each answer is stored.
func TestWebhookRetries(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, receiver := d.Tenant("Acme"), newEndpoint(t)
		owner := as(acme.Owner.Token())
		id, _ := d.newHook(t, receiver.URL, owner, nil)
		receiver.setAnswer(302, strings.Repeat("x", 2000), "Location", "/elsewhere")
		d.invite(t, acme.Owner, "bob@acme.example", "USER")
		last := func() m { return d.deliveriesOf(t, id, "", owner)[0] }
		attempts := func() []any { return last()["attempts"].([]any) }
		waittest.Until(t, "the first attempt", func() bool { return len(attempts()) == 1 })
		first := attempts()[0].(m)
		if first["status"] != 302.0 || len(first["answer"].(string)) != 1024 {
			t.Errorf("the attempt is %v", first)
		}
		if n := len(receiver.take()); n != 1 {
			t.Errorf("%d requests, want 1: redirects are not followed", n)
		}
		receiver.setAnswer(503, "", "Retry-After", "7200")
		d.Advance(6 * time.Second)
		waittest.Until(t, "the second attempt", func() bool { return len(attempts()) == 2 })
		next, err := time.Parse(time.RFC3339, last()["nextAt"].(string))
		if wait := next.Sub(d.Node.App.Now()); err != nil || wait < 2*time.Hour-time.Minute || wait > 2*time.Hour {
			t.Errorf("the next attempt is in %v", wait)
		}
		receiver.setAnswer(200, "")
		d.send(t, "POST "+hooksPath+"/deliveries/"+last()["id"].(string)+"/retry", nil, owner).ok(http.StatusAccepted)
		waittest.Until(t, "the third attempt", func() bool { return last()["state"] == "delivered" })
		got := receiver.take()
		if len(got) != 2 || got[0].header.Get("Webhook-Id") != got[1].header.Get("Webhook-Id") {
			t.Errorf("%d messages came, want 2 with one id", len(got))
		}
		receiver.setAnswer(410, "")
		d.invite(t, acme.Owner, "eve@acme.example", "USER")
		waittest.Until(t, "the webhook is disabled", func() bool {
			return d.send(t, "GET "+hooksPath+"/"+id, nil, owner).ok(200).at("disabledReason") == "gone"
		})
		if last()["state"] != "dropped" {
			t.Errorf("the delivery is %v", last())
		}
		d.send(t, "POST "+hooksPath+"/deliveries/"+last()["id"].(string)+"/retry", nil, owner).fails(409, "webhook_disabled")
		d.send(t, "POST "+hooksPath+"/"+id+"/replay", nil, owner).fails(409, "webhook_disabled")
		d.send(t, "PATCH "+hooksPath+"/"+id, m{"enabled": true}, owner).ok(200).is("disabledReason", nil)
		receiver.setAnswer(204, "")
		d.send(t, "POST "+hooksPath+"/"+id+"/replay", m{"events": []string{"user.invite"}}, owner).ok(http.StatusAccepted).is("queued", 2.0)
		waittest.Until(t, "both are sent again", func() bool { return len(d.deliveriesOf(t, id, "?state=delivered", owner)) == 3 })
	}, masterKey(t))
}

// TestWebhooksOfOthers: webhooks of a tenant are hidden from others, and those of the
// installation get the events of all tenants. A service key reads those of the tenant in the
// request's header or, without it, those of the installation.
func TestWebhooksOfOthers(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta, receiver := d.Tenant("Acme"), d.Tenant("Zeta"), newEndpoint(t)
		operator := bearer(d.operatorKey(t))
		service := bearer(d.serviceKey(t, allServicePermissions))
		id, _ := d.newHook(t, receiver.URL, as(acme.Owner.Token()), nil)
		for _, who := range []opt{as(zeta.Owner.Token()), operator, service} {
			d.send(t, "GET "+hooksPath+"/"+id, nil, who).fails(404, "not_found")
			d.send(t, "DELETE "+hooksPath+"/"+id, nil, who).fails(404, "not_found")
		}
		d.send(t, "GET "+hooksPath+"/"+id, nil, service, inTenant(acme.ID)).ok(200)
		all, _ := d.newHook(t, receiver.URL, service, m{"events": []string{"*"}})
		d.send(t, "GET "+hooksPath+"/"+all, nil, operator).ok(200)
		d.send(t, "GET "+hooksPath+"/"+all, nil, as(acme.Owner.Token())).fails(404, "not_found")
		d.invite(t, zeta.Owner, "bob@zeta.example", "USER")
		waittest.Until(t, "the installation gets Zeta's event", func() bool {
			for _, got := range receiver.take() {
				if strings.Contains(string(got.body), `"type":"user.invite"`) && strings.Contains(string(got.body), zeta.ID) {
					return true
				}
			}
			return false
		})
		if n := len(d.deliveriesOf(t, id, "", as(acme.Owner.Token()))); n != 0 {
			t.Errorf("Acme's webhook got %d events", n)
		}
		for range 19 {
			d.newHook(t, receiver.URL, as(acme.Owner.Token()), nil)
		}
		d.send(t, "POST "+hooksPath, m{"url": receiver.URL, "events": []string{"*"}}, as(acme.Owner.Token())).fails(409, "too_many_webhooks")
	}, masterKey(t))
}

// TestFrozenTenantGetsNothing: pending deliveries are dropped when a tenant is frozen, and the
// freeze itself isn't delivered.
func TestFrozenTenantGetsNothing(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, receiver := d.Tenant("Acme"), newEndpoint(t)
		id, _ := d.newHook(t, receiver.URL, as(acme.Owner.Token()), m{"events": []string{"*"}})
		receiver.setAnswer(500, "")
		d.invite(t, acme.Owner, "bob@acme.example", "USER")
		waittest.Until(t, "an attempt fails", func() bool {
			for _, one := range d.deliveriesOf(t, id, "", as(acme.Owner.Token())) {
				if one["type"] == "user.invite" && len(one["attempts"].([]any)) > 0 {
					return true
				}
			}
			return false
		})
		d.freeze(t, acme.ID)
		service := bearer(d.serviceKey(t, allServicePermissions))
		d.send(t, "PATCH /api/v2/tenants/"+acme.ID, m{"status": "active"}, service).ok(200)
		owner := as(d.token(t, acme.Owner.Email))
		for _, one := range d.deliveriesOf(t, id, "", owner) {
			if one["type"] == "tenant.freeze" || one["type"] == "user.invite" && one["state"] != "dropped" {
				t.Errorf("after the freeze there is the delivery %v", one)
			}
		}
	}, masterKey(t))
}

func (r *recorder) webhookSteps() []step {
	receiver := newEndpoint(r.t)
	id := ""
	return []step{
		{"a webhook", func() {
			a := r.ask("POST "+hooksPath, m{"url": receiver.URL + "/in?token=x", "events": []string{"policy.*"}, "about": "Sync"}, r.as(r.ann)).ok(201)
			id = a.text("webhook.id")
			r.noteSecret(a.text("secret"))
			r.names[id] = "HOOK"
		}, []string{
			`Acme: ann done webhook.create webhook HOOK, url "" "` + receiver.URL + `/in?…", events "" "policy.*", about "" "Sync", enabled "" "true"`,
		}},
		{"a webhook by a USER", func() {
			r.ask("POST "+hooksPath, m{"url": receiver.URL, "events": []string{"*"}}, r.as(r.bob)).fails(403, "forbidden")
		}, []string{
			`Acme: bob refused webhook.create tenant Acme, reason "" "forbidden"`,
		}},
		{"a webhook changed", func() {
			for range 2 {
				r.ask("PATCH "+hooksPath+"/"+id, m{"events": []string{"role.*"}, "include": []string{"email"}}, r.as(r.ann)).ok(200)
			}
		}, []string{
			`Acme: ann done webhook.update webhook HOOK, events "policy.*" "role.*", include "" "email"`,
		}},
		{"a webhook used", func() {
			r.noteSecret(r.ask("POST "+hooksPath+"/"+id+"/rotate-secret", m{}, r.as(r.ann)).ok(201).text("secret"))
			r.ask("POST "+hooksPath+"/"+id+"/test", nil, r.as(r.ann)).ok(200)
			r.ask("PATCH "+hooksPath+"/"+id, m{"events": []string{"webhook.rotate"}}, r.as(r.ann)).ok(200)
			r.ask("POST "+hooksPath+"/"+id+"/replay", nil, r.as(r.ann)).ok(202).is("queued", 1.0)
			delivery := r.server.deliveriesOf(r.t, id, "", r.as(r.ann))[0]["id"].(string)
			r.names[delivery] = "DELIVERY"
			r.ask("POST "+hooksPath+"/deliveries/"+delivery+"/retry", nil, r.as(r.ann)).ok(202)
		}, []string{
			`Acme: ann done webhook.rotate webhook HOOK, previousEndsAt "" "TIME"`,
			`Acme: ann done webhook.test webhook HOOK, status "" "204"`,
			`Acme: ann done webhook.update webhook HOOK, events "role.*" "webhook.rotate"`,
			`Acme: ann done webhook.replay webhook HOOK, queued "" "1"`,
			`Acme: ann done webhook.retry webhook HOOK, deliveryId "" "DELIVERY"`,
		}},
		{"a webhook deleted", func() {
			r.ask("DELETE "+hooksPath+"/"+id, nil, r.as(r.ann)).ok(204)
		}, []string{
			`Acme: ann done webhook.delete webhook HOOK, url "` + receiver.URL + `/in?…" ""`,
		}},
	}
}

// A webhook goes on after the person who has made it was suspended or removed. The answers name it, with
// its URL only for a caller who manages webhooks.
func TestWebhooksOfRemovedPeople(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, receiver := d.Tenant("Acme"), newEndpoint(t)
		owner, ann := as(acme.Owner.Token()), acme.Join("ann@acme.example", "ADMIN")
		id, _ := d.newHook(t, receiver.URL, as(ann.Token()), nil)
		_, key := d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"user.manage"}})
		person := "/api/v2/users/" + ann.ID
		full, idOnly := []any{m{"id": id, "url": receiver.URL}}, []any{m{"id": id}}
		want := func(a answer, path string, want []any) {
			t.Helper()
			if diff := cmp.Diff(want, a.ok(http.StatusOK).at(path)); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", a.route, diff)
			}
		}
		d.send(t, "PATCH "+person, m{"role": "USER"}, owner).ok(http.StatusOK)
		want(d.send(t, "DELETE "+person+"?dryRun=true", nil, owner), "ended.webhooks", full)
		want(d.send(t, "DELETE "+person+"?dryRun=true", nil, bearer(key)), "ended.webhooks", idOnly)
		want(d.send(t, "PATCH "+person, m{"status": "suspended"}, bearer(key)), "ended.webhooks", idOnly)
		d.send(t, "PATCH "+person, m{"status": "active"}, owner).ok(http.StatusOK)
		bulk := d.send(t, "POST /api/v2/users/bulk", m{"ids": []string{ann.ID}, "remove": true}, owner).ok(http.StatusOK)
		if diff := cmp.Diff(full, bulk.at("items").([]any)[0].(m)["ended"].(m)["webhooks"]); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", bulk.route, diff)
		}
		d.send(t, "GET "+hooksPath+"/"+id, nil, owner).ok(http.StatusOK).is("enabled", true)
	})
}
