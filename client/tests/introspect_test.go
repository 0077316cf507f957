package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
)

func TestIntrospect(t *testing.T) {
	server, viewer := running(), person("VIEWER")
	c := newClient(t, server.URL, client.OperatorKey(newOperatorKey(server)))
	unknown := strings.Repeat("A", 43)

	all, err := c.IntrospectAll(t.Context(), []client.Question{
		{Credential: viewer.Token(), Action: "report.read"}, {Credential: viewer.Token(), Action: "message.send"}, {Credential: viewer.Token(), Action: ""}, {Credential: unknown, Action: "report.read"}, {Credential: "no token"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var active, allowed []bool
	for _, a := range all {
		active, allowed = append(active, a.Active), append(allowed, a.Allowed)
		if !a.Active && a != (client.Answer{}) {
			t.Errorf("an inactive credential has other fields: %+v", a)
		}
	}
	if diff := cmp.Diff([][]bool{{true, true, true, false, false}, {true, false, false, false, false}}, [][]bool{active, allowed}); diff != "" {
		t.Errorf("active, allowed (-want +got):\n%s", diff)
	}
	who, err := c.Check(t.Context(), client.Request{Header: session(viewer.Token())})
	if err != nil || all[0].Identity != who {
		t.Errorf("introspection names %v, a check %v (%v)", all[0].Identity, who, err)
	}
	if left := time.Until(all[0].ExpiresAt); left < 23*time.Hour || left > 24*time.Hour || !all[0].IdleExpiresAt.Before(all[0].ExpiresAt) {
		t.Errorf("the session ends at %v or idle at %v", all[0].ExpiresAt, all[0].IdleExpiresAt)
	}
	if err := logout(viewer); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Introspect(t.Context(), viewer.Token(), "report.read"); err != nil || a.Active {
		t.Errorf("after logout: %+v, %v", a, err)
	}
}

func TestIntrospectMoreThanACallTakes(t *testing.T) {
	server, token := running(), newTenant().Owner.Token()
	c := newClient(t, server.URL, client.OperatorKey(newOperatorKey(server)))
	const every = 90 // so that each call of 100 has at least one
	questions := slices.Repeat([]client.Question{{Credential: "none"}}, 250)
	for i := 0; i < len(questions); i += every {
		questions[i].Credential = token
	}
	all, err := c.IntrospectAll(t.Context(), questions)
	if err != nil || len(all) != len(questions) {
		t.Fatalf("%d answers to %d questions, %v", len(all), len(questions), err)
	}
	for i, a := range all {
		if a.Active != (i%every == 0) {
			t.Fatalf("answer %d: %+v", i, a)
		}
	}
	if all, err := c.IntrospectAll(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("no questions: %v, %v", all, err)
	}
}

// A refusal of the service's own key must not reach a person as 401 or 403.
func TestRefusedOperatorKeyIsAFault(t *testing.T) {
	server, token := running(), newTenant().Owner.Token()
	c := newClient(t, server.URL, client.OperatorKey("dwo_"+strings.Repeat("A", 43)))
	_, err := c.Introspect(t.Context(), token, "")
	var e *client.Error
	if !errors.As(err, &e) || !errors.Is(err, client.ErrUnavailable) || e.Code != "operator_key_refused" {
		t.Errorf("Introspect with a wrong key: %v, want operator_key_refused", err)
	}
	if _, err := newClient(t, server.URL).Introspect(t.Context(), token, ""); err == nil || errors.As(err, &e) {
		t.Errorf("Introspect without a key: %v, want an error of the program", err)
	}
}

func TestWrongQuestionIsNoVerdict(t *testing.T) {
	server := running()
	c := newClient(t, server.URL, client.OperatorKey(newOperatorKey(server)))
	for _, q := range []client.Question{{Credential: "x", Action: "message.eat"}, {Action: "message.send"}} {
		_, err := c.Introspect(t.Context(), q.Credential, q.Action)
		var e *client.Error
		if !errors.As(err, &e) || e.Status != http.StatusUnprocessableEntity || e.Code != "validation_failed" {
			t.Errorf("Introspect(%q): %v, want 422 validation_failed", q, err)
		}
		for _, kind := range []error{client.ErrUnauthenticated, client.ErrForbidden, client.ErrUnavailable} {
			if errors.Is(err, kind) {
				t.Errorf("Introspect(%q): %v is %v", q, err, kind)
			}
		}
	}
}

// TestIntrospectKey: introspection and a check name the same API key, and one that is bound
// to addresses is active from these only.
func TestIntrospectKey(t *testing.T) {
	server, owner := running(), newTenant().Owner
	status, body := owner.Post("/api/v2/api-keys", map[string]any{"name": "Shop", "permissions": []string{"message.send"}, "allowedIps": []string{"127.0.0.0/8", "192.0.2.7"}})
	var made struct{ Key string }
	if err := json.Unmarshal(body, &made); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s", status, body)
	}
	c := newClient(t, server.URL, client.OperatorKey(newOperatorKey(server)))
	all, err := c.IntrospectAll(t.Context(), []client.Question{
		{Credential: made.Key, Action: "message.send", IP: "192.0.2.7"},
		{Credential: made.Key, Action: "message.read", IP: "192.0.2.7"},
		{Credential: made.Key, IP: "192.0.2.8"},
		{Credential: made.Key},
	})
	if err != nil {
		t.Fatal(err)
	}
	who, err := c.Check(t.Context(), client.Request{Header: http.Header{"Authorization": {"Bearer " + made.Key}}})
	if err != nil || who.KeyID == "" || all[0].Identity != who {
		t.Errorf("introspection names %v, a check %v (%v)", all[0].Identity, who, err)
	}
	if !all[0].Allowed || all[1].Allowed || !all[1].Active || all[2].Active || all[3].Active {
		t.Errorf("the answers are %+v", all)
	}
	if left := time.Until(all[0].ExpiresAt); left < 364*24*time.Hour || left > 365*24*time.Hour {
		t.Errorf("the key ends at %v", all[0].ExpiresAt)
	}
}

// If Doorward trusts the service, a key that is bound to addresses is checked against the
// caller's address, not the service's. Addresses that the caller itself claims are ignored.
func TestCheckOfAKeyBoundToAddresses(t *testing.T) {
	server := doorwardtest.Start(t, doorwardtest.TrustLoopback())
	status, body := server.Tenant("Acme").Owner.Post("/api/v2/api-keys", map[string]any{"name": "Shop", "permissions": []string{"message.send"}, "allowedIps": []string{"192.0.2.7"}})
	var made struct{ Key string }
	if err := json.Unmarshal(body, &made); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s", status, body)
	}
	c := newClient(t, server.URL)
	for _, tt := range []struct {
		name, peer, before string
		want               error
	}{
		{"from its address", "192.0.2.7", "", nil},
		{"behind a gateway", "127.0.0.1", "192.0.2.7", nil},
		{"from another address", "192.0.2.8", "", client.ErrForbidden},
		{"from another address that claims its own", "192.0.2.8", "192.0.2.7", client.ErrForbidden},
		{"by a connection without an address", "", "192.0.2.7", client.ErrForbidden},
	} {
		h := http.Header{"Authorization": {"Bearer " + made.Key}}
		if tt.before != "" {
			h.Set("X-Forwarded-For", tt.before)
		}
		if _, err := c.Check(t.Context(), client.Request{Action: "message.send", Header: h, IP: tt.peer}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
