package client_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
)

const (
	invoices = "actions:\n  invoice.pay: {roles: [OWNER, ADMIN], resource: invoice}\nresources:\n  invoice: {amount: long}\n"

	largeInvoices = `@id("large") @reason("Large invoices are paid by the OWNER.") forbid(principal, action == Action::"invoice.pay", resource)
		when { resource.amount > 1000 } unless { principal in Role::"OWNER" };
		@id("inside") forbid(principal, action == Action::"invoice.pay", resource) when { resource.amount < 10 && !context.ip.isInRange(ip("192.0.2.0/24")) };`
)

func invoice(amount int) *client.Resource {
	return &client.Resource{Type: "invoice", ID: "17", Properties: map[string]any{"amount": amount}}
}

// payments is a Doorward with a policy that reads the resource, and the tokens of its people.
func payments(t *testing.T) (c *client.Client, owner, admin *doorwardtest.Person) {
	t.Helper()
	s := doorwardtest.Start(t)
	s.ApplyModel(invoices)
	acme := s.Tenant("Acme")
	put, err := http.NewRequest(http.MethodPut, s.URL+"/api/v2/policy", strings.NewReader(quoted(largeInvoices)))
	if err != nil {
		t.Fatal(err)
	}
	put.Header = http.Header{"Content-Type": {"application/json"}, "If-Match": {"*"}, "Authorization": {"Bearer " + acme.Owner.Token()}}
	if res, err := http.DefaultClient.Do(put); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	return newClient(t, s.URL, client.OperatorKey(newOperatorKey(s))), acme.Owner, acme.Join("admin@acme.example", "ADMIN")
}

func quoted(text string) string {
	return `{"text": "` + strings.NewReplacer("\"", "\\\"", "\n", "\\n", "\t", "").Replace(text) + `"}`
}

// A guard leaves policies that read the resource to the handler, which asks again with it.
func TestResource(t *testing.T) {
	c, owner, admin := payments(t)
	pass := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for guard, want := range map[string]int{"Require": http.StatusForbidden, "RequireDeferred": http.StatusNoContent} {
		r := httptest.NewRequest(http.MethodPost, "/pay", nil)
		r.Header = session(admin.Token())
		w := httptest.NewRecorder()
		map[string]http.Handler{
			"Require": c.Require("invoice.pay")(pass), "RequireDeferred": c.RequireDeferred("invoice.pay", client.Proof{})(pass),
		}[guard].ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", guard, w.Code, w.Body, want)
		}
	}
	for _, header := range []func(token string) http.Header{session, func(token string) http.Header { return http.Header{"Authorization": {"bearer  " + token + " "}} }} {
		for _, q := range []struct {
			who    *doorwardtest.Person
			amount int
			ip     string
			code   string
		}{
			{admin, 1000, "", ""},
			{admin, 1001, "", "denied_by_policy"},
			{owner, 1001, "", ""},
			{admin, 9, "192.0.2.7", ""},
			{admin, 9, "198.51.100.7", "denied_by_policy"},
			{admin, 9, "", "denied_by_policy"},
		} {
			who, err := c.Check(t.Context(), client.Request{Action: "invoice.pay", Method: http.MethodPost, Header: header(q.who.Token()), IP: q.ip, Resource: invoice(q.amount)})
			var e *client.Error
			if errors.As(err, &e) && (e.Code != q.code || !errors.Is(err, client.ErrForbidden)) || (err == nil) != (q.code == "") || err == nil && who.UserID != q.who.ID {
				t.Errorf("%s pays %d from %q: %v, %v, want the code %q", q.who.Email, q.amount, q.ip, who, err, q.code)
			}
		}
	}
	if _, err := c.Check(t.Context(), client.Request{Action: "invoice.pay", Header: session(strings.Repeat("A", 43)), Resource: invoice(1)}); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("without a session: %v", err)
	}
	a, err := c.IntrospectAll(t.Context(), []client.Question{{Credential: admin.Token(), Action: "invoice.pay"}, {Credential: admin.Token(), Action: "invoice.pay", Resource: "deferred"}})
	if err != nil || a[0].Allowed || !a[1].Allowed {
		t.Errorf("introspection: %+v, %v", a, err)
	}
}

// An API key is asked about by its id.
func TestResourceOfAKey(t *testing.T) {
	c, owner, _ := payments(t)
	status, body := owner.Post("/api/v2/api-keys", map[string]any{"name": "payments", "permissions": []string{"invoice.pay"}, "role": "ADMIN"})
	_, key, found := strings.Cut(string(body), `"key":"`)
	key, _, _ = strings.Cut(key, `"`)
	if status != http.StatusCreated || !found {
		t.Fatalf("%d %s", status, body)
	}
	pay := func(amount int) error {
		_, err := c.Check(t.Context(), client.Request{Action: "invoice.pay", Header: http.Header{"Authorization": {"Bearer " + key}}, Resource: invoice(amount)})
		return err
	}
	if err := pay(1000); err != nil {
		t.Error(err)
	}
	if err := pay(1001); !errors.Is(err, client.ErrForbidden) {
		t.Error(err)
	}
}

// What this program does wrong is a fault, and refuses nobody.
func TestResourceFaults(t *testing.T) {
	s, token := running(), newTenant().Owner.Token()
	for name, q := range map[string]client.Request{
		"without a key":     {Action: "message.send", Resource: invoice(1)},
		"without an action": {Resource: invoice(1)},
		"no JSON":           {Action: "message.send", Resource: &client.Resource{Type: "tenant", Properties: map[string]any{"x": func() {}}}},
	} {
		q.Header = session(token)
		if _, err := newClient(t, s.URL).Check(t.Context(), q); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var log bytes.Buffer
	c := newClient(t, "http://127.0.0.1:1", client.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	c.RequireDeferred("invoice.pay", client.Proof{})(nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if text := log.String(); !strings.Contains(text, "address=http://127.0.0.1:1") || !strings.Contains(text, "action=invoice.pay") || !strings.Contains(text, "refused") {
		t.Errorf("logged: %s", text)
	}
}
