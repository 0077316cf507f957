package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/app/user"
)

// These tests prove statements of docs/asvs.md that no other test proves.

func TestNoDefaultAccounts(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		for person, err := range d.Node.App.Users.All(t.Context(), "", user.Filter{}) {
			t.Errorf("a new installation has %v, %v", person, err)
		}
		for _, name := range []string{"root", "admin", "owner@acme.example"} {
			d.login(t, name, "open sesame 9042").fails(http.StatusUnauthorized, "invalid_credentials")
		}
	})
}

func TestPasswordsDontExpire(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		d.Advance(10 * 365 * 24 * time.Hour)
		d.login(t, owner.Email, password).ok(http.StatusOK)
	})
}

// When an administrator suspends, removes or signs out a person, all the person's sessions in
// that tenant have ended when the answer arrives, and none in other tenants.
func TestAdministratorsEndSessions(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		for name, end := range map[string]func(id string) answer{
			"signed-out": func(id string) answer {
				return d.send(t, "DELETE /api/v2/users/"+id+"/sessions", nil, as(acme.Owner.Token()))
			},
			"suspended": func(id string) answer {
				return d.send(t, "PATCH /api/v2/users/"+id, m{"status": "suspended"}, as(acme.Owner.Token()))
			},
			"removed": func(id string) answer {
				return d.send(t, "DELETE /api/v2/users/"+id, nil, as(acme.Owner.Token()))
			},
		} {
			person := acme.Join(name+"@acme.example", "USER")
			d.addMember(t, globex, person, "USER")
			inGlobex := d.send(t, loginPath, m{"email": person.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
			secondInAcme := d.send(t, loginPath, m{"email": person.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK).text("token")
			end(person.ID).ok(http.StatusOK).is("ended.sessions", 2.0)
			for token, status := range map[string]int{person.Token(): 401, secondInAcme: 401, inGlobex: 200} {
				d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(status)
			}
		}
	})
}
