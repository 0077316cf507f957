package web_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/waittest"
)

// databaseRequests returns the requests with a valid session that need the database, by route.
func databaseRequests(email string) map[string]m {
	return map[string]m{
		"POST /api/v2/auth/invite":                 {"email": "x@acme.example", "role": "USER"},
		"POST /api/v2/auth/complete-registration":  {"token": forged, "password": password, "confirmPassword": password},
		"POST /api/v2/auth/accept-invitation":      {"token": forged, "password": password},
		"POST /api/v2/auth/login":                  {"email": email, "password": password},
		"POST /api/v2/auth/logout":                 nil,
		"GET /api/v2/auth/session":                 nil,
		"GET /api/v2/auth/memberships":             nil,
		"DELETE /api/v2/auth/memberships/tnt_x":    nil,
		"POST /api/v2/auth/switch-tenant":          {"tenantId": "tnt_x"},
		"POST /api/v2/auth/forgot-password":        {"email": email},
		"POST /api/v2/auth/reset-password":         {"token": forged, "password": password, "confirmPassword": password},
		"POST /api/v2/auth/step-up/begin":          nil,
		"POST /api/v2/auth/step-up/finish":         {"challenge": forged, "password": "x"},
		"POST /api/v2/auth/change-password":        {"currentPassword": password, "password": "three old boats", "confirmPassword": "three old boats"},
		"GET /api/v2/auth/account/export":          nil,
		"DELETE /api/v2/auth/account":              {"confirm": email},
		"POST /api/v2/auth/change-email":           {"email": "new@acme.example"},
		"POST /api/v2/auth/change-email/confirm":   {"token": forged},
		"POST /api/v2/auth/undo-email":             {"token": forged},
		"POST /api/v2/auth/login/second":           {"challenge": forged, "code": "123456"},
		"GET /api/v2/auth/factors":                 nil,
		"POST /api/v2/auth/factors/totp":           {},
		"POST /api/v2/auth/factors/totp/confirm":   {"id": "mfa_x", "code": "123456"},
		"POST /api/v2/auth/passkey/begin":          nil,
		"POST /api/v2/auth/passkey/finish":         {"challenge": forged, "credential": m{"id": "x"}},
		"POST /api/v2/auth/factors/passkey/begin":  {"challenge": forged},
		"POST /api/v2/auth/factors/passkey/finish": {"challenge": forged, "credential": m{"id": "x"}},
		"POST /api/v2/auth/factors/recovery":       nil,
		"POST /api/v2/auth/factors/reset":          {"token": forged, "password": password},
		"PATCH /api/v2/auth/factors/mfa_x":         {"name": "x"},
		"DELETE /api/v2/auth/factors/mfa_x":        nil,
		"POST /api/v2/users/usr_x/mfa/reset":       nil,
		"GET /api/v2/sessions":                     nil,
		"DELETE /api/v2/sessions":                  nil,
		"DELETE /api/v2/sessions/ses_x":            nil,

		"POST /api/v2/auth/invite/bulk":         {"invitations": []m{{"email": "y@acme.example", "role": "USER"}, {"email": "z@acme.example", "role": "USER"}}},
		"GET /api/v2/invitations":               nil,
		"GET /api/v2/invitations/inv_x":         nil,
		"POST /api/v2/invitations/inv_x/resend": nil,
		"DELETE /api/v2/invitations/inv_x":      nil,
		"GET /api/v2/tenant":                    nil,
		"PATCH /api/v2/tenant":                  {"name": "Acme"},
		"DELETE /api/v2/tenant":                 {"confirm": "Acme"},
		"DELETE /api/v2/tenant/logo":            nil,
		"POST /api/v2/tenant/restore":           nil,
		"GET /api/v2/users":                     nil,
		"GET /api/v2/users/usr_x":               nil,
		"PATCH /api/v2/users/usr_x":             {"name": "Ann"},
		"DELETE /api/v2/users/usr_x":            nil,
		"DELETE /api/v2/users/usr_x/sessions":   nil,
		"GET /api/v2/users/usr_x/sessions":      nil,
		"POST /api/v2/users/bulk":               {"ids": []string{"usr_x"}, "remove": true},
		"POST /api/v2/invitations/resend":       {"ids": []string{"inv_x"}},
		"POST /api/v2/invitations/revoke":       {"ids": []string{"inv_x"}},

		"DELETE /api/v2/users/usr_x/sessions/ses_x": nil,

		"GET /api/v2/webhooks":                         nil,
		"POST /api/v2/webhooks":                        {"url": "https://hooks.invalid/", "events": []string{"*"}},
		"GET /api/v2/webhooks/whk_x":                   nil,
		"PATCH /api/v2/webhooks/whk_x":                 {"about": "x"},
		"DELETE /api/v2/webhooks/whk_x":                nil,
		"POST /api/v2/webhooks/whk_x/rotate-secret":    {"graceHours": 0},
		"POST /api/v2/webhooks/whk_x/test":             nil,
		"GET /api/v2/webhooks/whk_x/deliveries":        nil,
		"POST /api/v2/webhooks/deliveries/whd_x/retry": nil,
		"POST /api/v2/webhooks/whk_x/replay":           {"after": 1},
		"GET /api/v2/api-keys":                         nil,
		"POST /api/v2/api-keys":                        {"name": "Reports", "permissions": []string{"report.read"}},
		"GET /api/v2/api-keys/key_x":                   nil,
		"PATCH /api/v2/api-keys/key_x":                 {"status": "disabled"},
		"DELETE /api/v2/api-keys/key_x":                nil,
		"POST /api/v2/api-keys/key_x/rotate":           {"graceHours": 0},
		"DELETE /api/v2/api-keys/key_x/previous":       nil,

		"GET /api/v2/events":                     nil,
		"GET /api/v2/audit-events":               nil,
		"GET /api/v2/roles":                      nil,
		"POST /api/v2/roles":                     {"name": "DESK", "permissions": []string{"user.read"}},
		"GET /api/v2/roles/rol_x":                nil,
		"PATCH /api/v2/roles/rol_x":              {"about": "answers"},
		"DELETE /api/v2/roles/rol_x":             nil,
		"GET /api/v2/policy":                     nil,
		"PUT /api/v2/policy":                     {"text": ""},
		"GET /api/v2/policy/schema":              nil,
		"GET /api/v2/policy/versions":            nil,
		"POST /api/v2/policy/versions/1/restore": nil,
		"POST /api/v2/policy/confirm":            nil,
		"POST /api/v2/policy/plan":               {"text": ""},
		"POST /api/v2/access/explain":            {"userId": "usr_1", "action": "message.send"},
		"POST /api/v2/auth/report-key":           {"key": secret.NewKey("dwk_").Reveal()},
	}
}

// operatorRequests are the requests with a valid operator key that need the database, by route.
var operatorRequests = map[string]m{
	"POST /api/v2/tenants":                  {"name": "Globex", "ownerEmail": "owner@globex.example"},
	"GET /api/v2/tenants":                   nil,
	"GET /api/v2/tenants/tnt_x":             nil,
	"PATCH /api/v2/tenants/tnt_x":           {"status": "frozen"},
	"GET /api/v2/model":                     nil,
	"GET /api/v2/installation/audit-events": nil,
	"PUT /api/v2/model":                     {"text": "actions: {}"},
}

// answersWithin is the documented limit for every answer, and the deadline of the work on each
// request (TestTimeRunsOut in web/front). It is measured only in make test-all.
const answersWithin = 3 * time.Second

// requireUnavailable sends all requests at once and requires a 503 for each, without a cookie, so
// that browsers keep the session.
func (s *server) requireUnavailable(t *testing.T, fault string, requests map[string]m, token string) {
	t.Helper()
	var senders sync.WaitGroup
	for route, body := range requests {
		senders.Go(func() {
			var sent any
			if body != nil { // a nil map would be sent as null
				sent = body
			}
			began := time.Now()
			a := s.send(t, route, sent, as(token), with("If-Match", "*"))
			if a.status != http.StatusServiceUnavailable || a.text("code") != "unavailable" || len(a.cookies()) > 0 {
				t.Errorf("%s: %s answered %d %s %q, want 503", fault, route, a.status, a.body, a.cookies())
			}
			if took := time.Since(began); fulltest.On() && took > answersWithin {
				t.Errorf("%s: %s was refused after %v, want %v", fault, route, took, answersWithin)
			}
		})
	}
	senders.Wait()
}

// requireAnswersWithoutDatabase requires that requests that need no database are answered as
// usual.
func (s *server) requireAnswersWithoutDatabase(t *testing.T) {
	t.Helper()
	s.send(t, "GET /api/v2/auth/session", nil).fails(http.StatusUnauthorized, "unauthenticated")
	s.send(t, "GET /api/v2/nothing", nil).fails(http.StatusNotFound, "not_found")
	s.send(t, "POST /api/v2/auth/logout", nil).ok(http.StatusNoContent)
	s.login(t, "", "").invalid("/email", "required", "/password", "required")
	s.send(t, loginPath, "{").fails(http.StatusBadRequest, "invalid_body")
	s.send(t, "GET /healthz", nil).ok(http.StatusOK)
}

func TestDatabaseClosed(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		owner, key := d.Tenant("Acme").Owner, d.operatorKey(t)
		_, apiKey := d.newKey(t, owner, nil)
		if err := d.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		d.requireUnavailable(t, "database closed", databaseRequests(owner.Email), owner.Token())
		d.send(t, "GET /api/v2/auth/session", nil, bearer(key)).fails(http.StatusServiceUnavailable, "unavailable")
		d.send(t, "GET /api/v2/auth/key", nil, bearer(apiKey)).fails(http.StatusServiceUnavailable, "unavailable")
		for route, body := range operatorRequests {
			d.send(t, route, body, bearer(key), with("If-Match", "*")).fails(http.StatusServiceUnavailable, "unavailable")
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(forged)).fails(http.StatusServiceUnavailable, "unavailable")
		d.send(t, "GET /readyz", nil).fails(http.StatusServiceUnavailable, "unavailable")
		d.requireAnswersWithoutDatabase(t)
	})
}

// Sessions survive when PostgreSQL is down or hangs and then recovers.
func TestPostgresGoneAndBack(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	d := start(t, doorwardtest.Database(cluster.DSN(t)))
	owner := d.Tenant("Acme").Owner
	for _, fault := range []struct {
		name     string
		down, up func(testing.TB)
	}{
		{"stopped", func(tb testing.TB) { cluster.Stop(tb, pgtest.Immediate) }, cluster.Start},
		{"hanging", cluster.Pause, cluster.Resume},
	} {
		fault.down(t)
		d.requireUnavailable(t, fault.name, databaseRequests(owner.Email), owner.Token())
		d.requireAnswersWithoutDatabase(t)
		fault.up(t)
		d.waitUntilReady(t)
		d.send(t, "GET /api/v2/auth/session", nil, as(owner.Token())).ok(http.StatusOK)
		d.login(t, owner.Email, password).ok(http.StatusOK)
	}
}

func (s *server) waitUntilReady(t *testing.T) {
	t.Helper()
	waittest.Until(t, "the server to reconnect to its database", func() bool { return s.send(t, "GET /readyz", nil).status == http.StatusOK })
}

// While another process locks the SQLite file, writes fail and reads work.
func TestSQLiteLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "doorward.db")
	d := start(t, doorwardtest.Database("sqlite:"+path))
	owner := d.Tenant("Acme").Owner
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range []string{loginPath, "POST /api/v2/auth/logout"} {
		d.requireUnavailable(t, "locked", map[string]m{route: databaseRequests(owner.Email)[route]}, owner.Token())
	}
	d.send(t, "GET /api/v2/auth/session", nil, as(owner.Token())).ok(http.StatusOK)
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	d.login(t, owner.Email, password).ok(http.StatusOK)
}
