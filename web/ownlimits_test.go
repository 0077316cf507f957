package web_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// From its sessions an account begins 120 challenges and makes 120 changes of its own an hour. Then each
// kind is 429 with Retry-After, an answer that asks for a proof has no challenge, and what ends access goes on.
func TestOwnLimits(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		const limit = 120
		_, globex, ann := d.inTwoTenants(t, "OWNER", "USER")
		a := d.enrolTOTP(t, ann.Token())
		d.Advance(time.Hour + time.Minute)
		signIn := func() string {
			t.Helper()
			d.Advance(30 * time.Second) // for the next code
			return d.send(t, secondPath, m{"challenge": d.login(t, ann.Email, password).text("challenge"), "code": a.code(t)}).ok(http.StatusOK).text("token")
		}
		token := signIn()
		self := "PATCH /api/v2/users/" + ann.ID
		for i := range limit {
			d.send(t, self, m{"name": fmt.Sprint("Ann ", i)}, as(token)).ok(http.StatusOK)
		}
		refused := func(request string, body any) {
			t.Helper()
			got := d.send(t, request, body, as(token)).fails(http.StatusTooManyRequests, "too_many_attempts").retryAfter()
			if got <= 50*time.Minute || got > time.Hour {
				t.Errorf("%s: Retry-After is %v", request, got)
			}
		}
		refused(self, m{"name": "Ann"})
		refused(totpPath, nil)
		refused("POST /api/v2/auth/factors/passkey/begin", nil)
		refused("POST /api/v2/auth/factors/recovery", nil)
		refused("PATCH /api/v2/auth/factors/"+a.id, m{"name": "Phone"})
		refused("POST /api/v2/auth/change-email", m{"email": "ann@globex.example"})
		refused(switchPath, m{"tenantId": globex.ID})
		for range limit {
			d.send(t, "POST /api/v2/auth/step-up/begin", nil, as(token)).ok(http.StatusOK)
		}
		refused("POST /api/v2/auth/step-up/begin", nil)

		remove := "DELETE /api/v2/auth/factors/" + a.id
		d.Advance(11 * time.Minute)
		if asked := d.send(t, remove, nil, as(token)).fails(http.StatusForbidden, "step_up_required"); asked.at("challenge") != nil || asked.at("acr") != "aal2" {
			t.Errorf("beyond the limit the answer is %s", asked.body)
		}
		d.send(t, remove, nil, as(signIn())).ok(http.StatusNoContent)
	}, masterKey(t))
}
