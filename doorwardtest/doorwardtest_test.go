package doorwardtest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
)

func TestSessionFromJoinToLogout(t *testing.T) {
	server := doorwardtest.Start(t)
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER")
	if status, body := ann.Get("/api/v2/auth/session"); status != http.StatusOK {
		t.Fatalf("session after login: %d %s", status, body)
	}
	server.Advance(time.Hour + time.Second)
	if status, body := ann.Get("/api/v2/auth/session"); status != http.StatusUnauthorized {
		t.Errorf("session after an idle hour: %d %s, want 401", status, body)
	}
	ann.Login()
	if status, _ := ann.Post("/api/v2/auth/logout", nil); status != http.StatusNoContent {
		t.Errorf("logout: %d, want 204", status)
	}
	if status, _ := ann.Get("/api/v2/auth/session"); status != http.StatusUnauthorized {
		t.Errorf("session after logout: %d, want 401", status)
	}
}

func TestModel(t *testing.T) {
	server := doorwardtest.Start(t)
	server.ApplyModel("actions:\n  invoice.pay: {roles: [OWNER, ADMIN]}\n")
	acme := server.Tenant("Acme")
	for who, want := range map[*doorwardtest.Person]int{acme.Owner: http.StatusOK, acme.Join("ann@acme.example", "USER"): http.StatusForbidden} {
		if status, body := who.Get("/api/v2/access/check?action=invoice.pay"); status != want {
			t.Errorf("%s: %d %s, want %d", who.Email, status, body, want)
		}
	}
}

func TestServiceKey(t *testing.T) {
	server := doorwardtest.Start(t)
	req, err := http.NewRequest(http.MethodGet, server.URL+"/api/v2/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	for may, want := range map[string]int{"events.read": http.StatusOK, "access.evaluate": http.StatusForbidden} {
		req.Header.Set("Authorization", "Bearer "+server.CreateServiceKey(may))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != want {
			t.Errorf("a key that may %s: %d, want %d", may, res.StatusCode, want)
		}
	}
}

// TestRepeat: a 503 is an answer like any other, unless the lease has lapsed meanwhile.
func TestRepeat(t *testing.T) {
	server := doorwardtest.Start(t)
	server.Tenant("Acme") // returns only once there is a lease
	calls, shortages := 0, server.Shortages()
	status := server.Repeat(func() int { calls++; return http.StatusServiceUnavailable })
	if shortages = server.Shortages() - shortages; status != http.StatusServiceUnavailable || calls != 1 && shortages == 0 {
		t.Errorf("%d after %d calls and %d shortages, want 503 after one call", status, calls, shortages)
	}
	calls = 0
	status = server.Repeat(func() int {
		if calls++; calls > 1 {
			return http.StatusOK
		}
		if err := server.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the end of the lease", func() bool { return !server.Node.App.Lease.Valid() })
		return http.StatusServiceUnavailable
	})
	if status != http.StatusOK || calls != 2 {
		t.Errorf("%d after %d calls, want 200 after two", status, calls)
	}
}
