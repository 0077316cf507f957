package doorwardtest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
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
