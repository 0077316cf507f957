package web_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward"
)

func (s *server) setQuotas(t *testing.T, tenantID string, quotas m) {
	t.Helper()
	to := map[doorward.Quota]int64{}
	for name, n := range quotas {
		to[doorward.Quota(name)] = int64(n.(int))
	}
	if _, err := s.Node.App.Tenants.SetQuotas(t.Context(), doorward.OperatorAtTerminal(), tenantID, to); err != nil {
		t.Fatal(err)
	}
}

// The operator limits what a tenant may have. When somebody is invited, members and pending
// invitations count; when somebody accepts, only members do.
func TestQuotas(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner, operator, path := as(acme.Owner.Token()), bearer(d.operatorKey(t)), "PATCH /api/v2/tenants/"+acme.ID
		older := d.invite(t, acme.Owner, "older@acme.example", "USER")
		d.send(t, path, m{"quotas": m{"people": 2, "apiKeys": 1}}, operator).ok(http.StatusOK).is("quotas.people", 2.0).is("quotas.apiKeys", 1.0)
		d.send(t, "GET /api/v2/tenant", nil, owner).ok(http.StatusOK).is("quotas.people", 2.0)

		invitation := m{"email": "bob@acme.example", "role": "USER"}
		d.send(t, "POST /api/v2/auth/invite", invitation, owner).fails(http.StatusConflict, "quota_exceeded").is("quota", "people")
		d.send(t, path, m{"quotas": m{"people": 1}}, operator).ok(http.StatusOK)
		registration := m{"token": older, "password": "four quiet green llamas", "confirmPassword": "four quiet green llamas"}
		d.send(t, "POST /api/v2/auth/complete-registration", registration).fails(http.StatusConflict, "quota_exceeded").is("quota", "people")
		zoe := d.Tenant("Zeta").Owner
		d.setQuotas(t, acme.ID, m{"people": 9})
		offered := d.invite(t, acme.Owner, zoe.Email, "USER")
		d.setQuotas(t, acme.ID, m{"people": 1})
		d.send(t, "POST /api/v2/auth/accept-invitation", m{"token": offered}, as(zoe.Token())).fails(http.StatusConflict, "quota_exceeded").is("quota", "people")
		d.send(t, path, m{"quotas": m{"people": -1}}, operator).ok(http.StatusOK).is("quotas.apiKeys", 1.0)
		d.send(t, "POST /api/v2/auth/complete-registration", registration).ok(http.StatusOK)
		d.send(t, "POST /api/v2/auth/invite", invitation, owner).ok(http.StatusCreated)

		d.newKey(t, acme.Owner, m{})
		d.makeKey(t, acme.Owner, m{}).fails(http.StatusConflict, "quota_exceeded").is("quota", "apiKeys")

		d.setQuotas(t, acme.ID, m{"webhooks": 1})
		hook := m{"url": "http://localhost:1/", "events": []string{"*"}}
		d.send(t, "POST "+hooksPath, hook, owner).ok(http.StatusCreated)
		d.send(t, "POST "+hooksPath, hook, owner).fails(http.StatusConflict, "quota_exceeded").is("quota", "webhooks")

		d.send(t, path, m{"quotas": m{"people": -2}}, operator).invalid("/quotas/people", "out_of_range")
		d.send(t, path, m{}, operator).invalid("/status", "required")
		d.send(t, path, m{"quotas": m{"people": 9}}, owner).fails(http.StatusForbidden, "forbidden")
		service := d.serviceKey(t, []doorward.Action{doorward.ServiceTenantStatus})
		d.send(t, path, m{"quotas": m{"people": 9}}, bearer(service)).fails(http.StatusForbidden, "forbidden")
	})
}

// A request that names a status and quotas changes both or neither.
func TestTenantChangesTogether(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		path, operator := " /api/v2/tenants/"+acme.ID, bearer(d.operatorKey(t))
		change := func(body m, how ...opt) answer {
			t.Helper()
			return d.send(t, "PATCH"+path, body, append(how, operator)...)
		}
		requireState := func(status string, people float64) string {
			t.Helper()
			return d.send(t, "GET"+path, nil, operator).ok(http.StatusOK).is("status", status).is("quotas.people", people).header.Get("ETag")
		}
		change(m{"quotas": m{"people": 5}}).ok(http.StatusOK)
		change(m{"status": "none", "quotas": m{"people": 6}}).invalid("/status", "invalid")
		requireState("active", 5)
		change(m{"status": "none", "quotas": m{"people": -2}}).invalid("/status", "invalid", "/quotas/people", "out_of_range")
		change(m{"status": "frozen", "quotas": m{"people": -2}}).invalid("/quotas/people", "out_of_range")
		first := requireState("active", 5)
		change(m{"status": "closing"}).ok(http.StatusOK)
		change(m{"status": "active", "quotas": m{"people": 7}}).fails(http.StatusForbidden, "tenant_closing")
		closed := requireState("closing", 5)

		change(m{"status": "frozen", "quotas": m{"people": 8}}, with("If-Match", first)).fails(http.StatusPreconditionFailed, "precondition_failed")
		requireState("closing", 5)
		second := change(m{"status": "frozen", "quotas": m{"people": 8}}, with("If-Match", closed)).ok(http.StatusOK).is("status", "frozen").is("quotas.people", 8.0).header.Get("ETag")
		change(m{"quotas": m{"people": 9}}).ok(http.StatusOK)
		change(m{"quotas": m{"people": 10}}, with("If-Match", second)).fails(http.StatusPreconditionFailed, "precondition_failed")
		change(m{"quotas": m{"people": 8}}, with("If-Match", requireState("frozen", 9))).ok(http.StatusOK)
		if got := requireState("frozen", 8); got != second {
			t.Errorf("one state has the versions %s and %s", second, got)
		}
	})
}
