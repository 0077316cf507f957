package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/client"
)

func TestCan(t *testing.T) {
	server, acme := running(), newTenant()
	c := newClient(t, server.URL, client.OperatorKey(newOperatorKey(server)))
	owner := client.Identity{UserID: acme.Owner.ID, TenantID: acme.ID}
	viewer := client.Identity{UserID: acme.Join("viewer@"+strings.TrimPrefix(acme.ID, "tnt_")+".example", "VIEWER").ID, TenantID: acme.ID}
	decide := func(who client.Identity, action string, on client.Resource) client.Decision {
		t.Helper()
		d, err := c.Can(t.Context(), who, action, on, client.FromIP("192.0.2.1"), client.AtTime(time.Now()))
		if err != nil || d.Allowed == (d.Reason != "") {
			t.Errorf("%v %s: %+v, %v", who, action, d, err)
		}
		return d
	}
	if !decide(owner, "message.send", client.Resource{}).Allowed || !decide(viewer, "message.read", client.Resource{Type: "tenant", ID: acme.ID}).Allowed {
		t.Error("an allowed action is refused")
	}
	for _, d := range []client.Decision{
		decide(viewer, "message.send", client.Resource{}), decide(owner, "message.send", client.Resource{Type: "tenant", ID: "tnt_x"}), decide(owner, "none", client.Resource{}),
		decide(client.Identity{UserID: "usr_x"}, "message.send", client.Resource{Type: "tenant", ID: acme.ID}), decide(client.Identity{KeyID: "key_x", TenantID: acme.ID}, "message.send", client.Resource{}),
	} {
		if d.Allowed {
			t.Error("a refused action is allowed")
		}
	}
	if _, err := c.Can(t.Context(), client.Identity{TenantID: acme.ID}, "message.send", client.Resource{}); err == nil {
		t.Error("a question without a subject is sent")
	}
	if _, err := newClient(t, server.URL).Can(t.Context(), owner, "message.send", client.Resource{}); err == nil {
		t.Error("a question without a key is sent")
	}
}

func TestFilter(t *testing.T) {
	server, acme, globex := running(), newTenant(), newTenant()
	c := newClient(t, server.URL, client.OperatorKey(newOperatorKey(server)))
	owner := client.Identity{UserID: acme.Owner.ID, TenantID: acme.ID}
	mine, other := client.Resource{Type: "tenant", ID: acme.ID}, client.Resource{Type: "tenant", ID: globex.ID}
	all := slices.Repeat([]client.Resource{mine, other, other}, 70)
	allowed, err := c.Filter(t.Context(), owner, "message.send", all)
	if err != nil || len(allowed) != 70 || slices.ContainsFunc(allowed, func(r client.Resource) bool { return r.ID != acme.ID }) {
		t.Errorf("of %d it returns %d: %v", len(all), len(allowed), err)
	}
	if none, err := c.Filter(t.Context(), owner, "message.send", nil); err != nil || len(none) != 0 {
		t.Errorf("of none it returns %v, %v", none, err)
	}
}

// A fault is an error, never a refusal.
func TestCanFaults(t *testing.T) {
	server, acme := running(), newTenant()
	owner := client.Identity{UserID: acme.Owner.ID, TenantID: acme.ID}
	for name, answer := range map[string]string{"no JSON": "x", "none": `{"evaluations": []}`, "no decision": `{"evaluations": [{}]}`, "two": `{"evaluations": [{"decision": true}, {"decision": true}]}`} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		t.Cleanup(other.Close)
		if d, err := newClient(t, other.URL, client.OperatorKey("dwo_x")).Can(t.Context(), owner, "message.send", client.Resource{}); !errors.Is(err, client.ErrUnavailable) || d.Allowed {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	var e *client.Error
	if _, err := newClient(t, server.URL, client.OperatorKey("dwo_x")).Can(t.Context(), owner, "message.send", client.Resource{}); !errors.As(err, &e) || e.Code != "operator_key_refused" {
		t.Errorf("with a wrong key: %v", err)
	}
}
