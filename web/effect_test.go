package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
)

// door is a call that raises somebody or loosens a demand of the tenant, whatever its action is called.
type door struct {
	name, route string
	body        func() any
}

// TestDoorsToEachEffect: whatever raises somebody to a rank of ADMIN or above, and whatever loosens a
// demand or limit, asks for a recent proof: an old session of an OWNER with a second factor changes
// nothing by any door, though it may tighten and suspend. Keys can't loosen anything.
func TestDoorsToEachEffect(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := acme.Owner
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "ADMIN")
		cat := acme.Join("cat@acme.example", "ADMIN")
		strict := m{
			"sessionIdleMinutes": 30, "sessionAbsoluteMinutes": 600, "invitationDays": 3, "allowedEmailDomains": []string{"acme.example"},
			"mfaGraceDays": 1, "mfaRememberDays": 1, "stepUpMinutes": 10, "keepEventsDays": 90,
		}
		d.send(t, "PATCH /api/v2/tenant", m{"settings": strict}, as(owner.Token())).ok(http.StatusOK)
		key := d.makeKey(t, owner, m{"name": "Settings", "role": "ADMIN", "permissions": []string{"settings.manage"}}).ok(http.StatusCreated).text("key")
		widened, _ := d.newKey(t, cat, m{"permissions": []string{"message.send"}})
		pending := d.send(t, "POST /api/v2/auth/invite", m{"email": "new@acme.example", "role": "ADMIN"}, as(owner.Token())).ok(http.StatusCreated).text("id")
		d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"status": "suspended"}, as(owner.Token())).ok(http.StatusOK)
		d.enrolTOTP(t, owner.Token())
		d.Advance(15 * time.Minute)
		stale := owner.Token()
		fixed := func(body any) func() any { return func() any { return body } }
		doors := []door{
			{"invite an ADMIN", "POST /api/v2/auth/invite", fixed(m{"email": "x@acme.example", "role": "ADMIN"})},
			{"invite several", "POST /api/v2/auth/invite/bulk", fixed(m{"invitations": []m{{"email": "y@acme.example", "role": "OWNER"}}})},
			{"send an invitation again", "POST /api/v2/invitations/" + pending + "/resend", fixed(nil)},
			{"send several again", "POST /api/v2/invitations/resend", fixed(m{"ids": []string{pending}})},
			{"give a role", "PATCH /api/v2/users/" + ann.ID, fixed(m{"role": "ADMIN"})},
			{"give a role to several", "POST /api/v2/users/bulk", fixed(m{"ids": []string{ann.ID}, "role": "ADMIN"})},
			{"resume an ADMIN", "PATCH /api/v2/users/" + bob.ID, fixed(m{"status": "active"})},
			{"hand keys over", "DELETE /api/v2/users/" + cat.ID + "?apiKeys=transfer", fixed(nil)},
			{"widen a key", "PATCH /api/v2/api-keys/" + widened, fixed(m{"permissions": []string{"message.send", "message.read"}})},
			{"resume several", "POST /api/v2/users/bulk", fixed(m{"ids": []string{bob.ID}, "status": "active"})},
		}
		loosened := m{
			"sessionIdleMinutes": 31, "sessionAbsoluteMinutes": 601, "invitationDays": 4, "allowedEmailDomains": []string{},
			"mfaGraceDays": 2, "mfaRememberDays": 2, "stepUpMinutes": 11, "keepEventsDays": 89,
		}
		for _, setting := range doorward.Settings(doorward.SessionLimits{}, 0) {
			if setting.Unit != "" && loosened[setting.Name] == nil {
				t.Errorf("no door loosens %s", setting.Name)
			}
		}
		for name, value := range loosened {
			doors = append(doors, door{"loosen " + name, "PATCH /api/v2/tenant", fixed(m{"settings": m{name: value}})})
		}
		before := d.stateOf(t, cat)
		for _, c := range doors {
			d.send(t, c.route, c.body(), as(stale)).fails(http.StatusForbidden, "step_up_required")
			if strings.HasPrefix(c.name, "loosen") {
				d.send(t, c.route, c.body(), bearer(key)).fails(http.StatusForbidden, "not_for_keys")
			}
		}
		if after := d.stateOf(t, cat); after != before {
			t.Errorf("refused calls have changed something:\n%s\n%s", before, after)
		}
		for name, route := range map[string]string{"tighten": "PATCH /api/v2/tenant", "suspend": "PATCH /api/v2/users/" + cat.ID} {
			body := map[string]m{"tighten": {"settings": m{"invitationDays": 2}}, "suspend": {"status": "suspended"}}[name]
			d.send(t, route, body, as(stale)).ok(http.StatusOK)
		}
	})
}

// stateOf returns what the doors could change: people, invitations and settings.
func (s *server) stateOf(t *testing.T, by *doorwardtest.Person) string {
	t.Helper()
	var all strings.Builder
	for _, route := range []string{"GET /api/v2/users?sort=name", "GET /api/v2/invitations", "GET /api/v2/tenant"} {
		all.Write(s.send(t, route, nil, as(by.Token())).ok(http.StatusOK).body)
	}
	return all.String()
}
