package web_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/routetest"
)

const pauseReason = "We move to another database."

func (s *server) pauseChanges(t *testing.T, reason string) {
	t.Helper()
	if err := s.Node.App.Installation.PauseChanges(t.Context(), doorward.OperatorAtTerminal(), reason); err != nil {
		t.Fatal(err)
	}
}

func (s *server) resumeChanges(t *testing.T) {
	t.Helper()
	if err := s.Node.App.Installation.ResumeChanges(t.Context(), doorward.OperatorAtTerminal()); err != nil {
		t.Fatal(err)
	}
}

// While changes are paused, each change is answered 503 with the reason. A caller whose role
// forbids the change still gets 403. Signing in, checks and ending access still work.
func TestPausedChanges(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob, eve := acme.Join("bob@acme.example", "USER"), acme.Join("eve@acme.example", "VIEWER")
		keyID, key := d.newKey(t, acme.Owner, m{})
		code, operator := d.invite(t, acme.Owner, "new@acme.example", "USER"), bearer(d.operatorKey(t))
		newest := d.send(t, "GET /api/v2/invitations?status=PENDING", nil, as(acme.Owner.Token())).at("items").([]any)[0]
		pending, _ := newest.(m)["id"].(string)
		owner := as(acme.Owner.Token())
		d.pauseChanges(t, pauseReason)

		invitation := m{"email": "cid@acme.example", "role": "USER"}
		for _, a := range []answer{
			d.send(t, "POST /api/v2/auth/invite", invitation, owner),
			d.send(t, "POST /api/v2/auth/invite", invitation, owner, with("Idempotency-Key", "one")),
			d.send(t, "PATCH /api/v2/tenant", m{"name": "Zeta"}, owner),
			d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"role": "VIEWER"}, owner),
			d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"status": "suspended", "role": "VIEWER"}, owner),
			d.send(t, "POST /api/v2/auth/complete-registration", m{"token": code, "password": "four quiet green llamas", "confirmPassword": "four quiet green llamas"}),
			d.send(t, "POST /api/v2/auth/forgot-password", m{"email": bob.Email}),
			d.send(t, "POST /api/v2/auth/forgot-password", m{"email": "nobody@acme.example"}),
			d.send(t, "POST /api/v2/tenants", m{"name": "Zeta", "ownerEmail": "zoe@zeta.example"}, operator),
			d.send(t, "POST /api/v2/api-keys/"+keyID+"/rotate", m{}, owner),
		} {
			a.fails(http.StatusServiceUnavailable, "maintenance").is("reason", pauseReason)
			if a.header.Get("Retry-After") != "60" {
				t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
			}
		}
		d.send(t, "POST /api/v2/auth/invite", invitation, as(eve.Token())).fails(http.StatusForbidden, "forbidden")
		d.send(t, "GET /readyz", nil).ok(http.StatusOK)

		token := d.login(t, eve.Email, doorwardtest.Password).ok(http.StatusOK).text("token")
		d.send(t, "GET /api/v2/access/check", nil, as(token)).ok(http.StatusOK)
		d.send(t, "POST /api/v2/auth/logout", nil, as(token)).ok(http.StatusNoContent)
		d.send(t, "GET /api/v2/access/check", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"status": "suspended"}, owner).ok(http.StatusOK)
		d.send(t, "GET /api/v2/access/check", nil, as(bob.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "DELETE /api/v2/invitations/"+pending, nil, owner).ok(http.StatusNoContent)
		d.send(t, "DELETE /api/v2/api-keys/"+keyID, nil, owner).ok(http.StatusNoContent)
		d.send(t, "GET /api/v2/access/check", nil, bearer(key)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "PATCH /api/v2/tenants/"+acme.ID, m{"status": "frozen"}, operator).ok(http.StatusOK)
		d.send(t, "PATCH /api/v2/tenants/"+acme.ID, m{"status": "active"}, operator).fails(http.StatusServiceUnavailable, "maintenance")

		d.resumeChanges(t)
		d.send(t, "PATCH /api/v2/tenants/"+acme.ID, m{"status": "active"}, operator).ok(http.StatusOK)
		d.send(t, "POST /api/v2/auth/invite", invitation, as(d.login(t, acme.Owner.Email, doorwardtest.Password).text("token")), with("Idempotency-Key", "one")).ok(http.StatusCreated)
	})
}

// Each change is refused while changes are paused, except those of absent objects. send compares each
// answer with the OpenAPI document, which lists maintenance only for operations that a pause
// refuses.
func TestEveryChangeIsPaused(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		callers := d.callers(t, d.Tenant("Acme").Owner)
		d.pauseChanges(t, pauseReason)
		for _, e := range d.operations(t) {
			a := d.try(t, e, e.Body, callers[e.Who])
			if e.documents(http.StatusServiceUnavailable, "maintenance") && !e.NamesAbsent() && e.Request != changePath {
				a.fails(http.StatusServiceUnavailable, "maintenance").is("reason", pauseReason)
			}
		}
		// The samples of these two are refused for a reason that comes first.
		d.send(t, totpPath, m{}, callers["OWNER"]).fails(http.StatusServiceUnavailable, "maintenance")
		change := m{"currentPassword": password, "password": routetest.Password, "confirmPassword": routetest.Password}
		d.send(t, changePath, change, callers["OWNER"]).fails(http.StatusServiceUnavailable, "maintenance")
	}, masterKey(t))
}
