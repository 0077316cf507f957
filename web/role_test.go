package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/api"
)

const rolesPath = "/api/v2/roles"

// A role is created, shown, changed and deleted, with immediate effect for those who have it.
func TestRoles(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner, ann := as(acme.Owner.Token()), acme.Join("ann@acme.example", "USER")
		d.send(t, "POST "+rolesPath, m{"name": "desk", "permissions": []string{"user.role"}}, owner).invalid("/name", "invalid", "/permissions/0", "invalid")
		made := d.send(t, "POST "+rolesPath, m{"name": "DESK", "about": "answers", "permissions": []string{"user.read", "message.read"}}, owner).ok(http.StatusCreated)
		id, tag := made.text("id"), made.header.Get("ETag")
		d.send(t, "POST "+rolesPath, m{"name": "DESK", "permissions": []string{"user.read"}}, owner).invalid("/name", "taken")
		d.send(t, "GET "+rolesPath+"/"+id, nil, owner).ok(http.StatusOK).is("rank", "VIEWER").is("members", 0.0).is("builtin", false)
		d.send(t, "PATCH /api/v2/users/"+ann.ID, m{"role": "DESK"}, owner).ok(http.StatusOK).is("user.role", "DESK")
		if items := d.send(t, "GET "+rolesPath, nil, owner).ok(http.StatusOK).at("items").([]any); len(items) != 5 {
			t.Errorf("%d roles are listed, want 5", len(items))
		}
		check := func(action string, status int) {
			t.Helper()
			if a := d.send(t, "GET /api/v2/access/check?action="+action, nil, as(ann.Token())); a.status != status {
				t.Errorf("a check of %s is answered %d, want %d", action, a.status, status)
			}
		}
		check("message.send", http.StatusForbidden)
		check("message.read", http.StatusOK)
		d.send(t, "PATCH "+rolesPath+"/"+id, m{"permissions": []string{"message.send"}}, owner).ok(http.StatusOK).is("rank", "USER").is("members", 1.0)
		check("message.send", http.StatusOK)
		check("message.read", http.StatusForbidden)
		d.send(t, "PATCH "+rolesPath+"/"+id, m{"about": "x"}, owner, with("If-Match", tag)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.send(t, "PATCH "+rolesPath+"/"+id, m{"permissions": []string{"ghost.walk"}}, owner).invalid("/permissions/0", "invalid")
		d.send(t, "DELETE "+rolesPath+"/"+id, nil, owner).fails(http.StatusConflict, "role_in_use")
		d.send(t, "DELETE "+rolesPath+"/"+id+"?replaceBy=VIEWER", nil, owner).ok(http.StatusNoContent)
		d.send(t, "DELETE "+rolesPath+"/"+id, nil, owner).fails(http.StatusNotFound, "not_found")
		d.send(t, "GET /api/v2/users/"+ann.ID, nil, owner).ok(http.StatusOK).is("role", "VIEWER")
		check("message.read", http.StatusOK)
		for n := range 50 {
			d.send(t, "POST "+rolesPath, m{"name": fmt.Sprintf("R%d", n+10), "permissions": []string{"user.read"}}, owner).ok(http.StatusCreated)
		}
		d.send(t, "POST "+rolesPath, m{"name": "R99", "permissions": []string{"user.read"}}, owner).fails(http.StatusConflict, "too_many_roles")
	})
}

// Nobody can use the roles of a tenant to get or give permissions that their own role lacks.
func TestRolesRaiseNobody(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner, admin := as(acme.Owner.Token()), acme.Join("admin@acme.example", "ADMIN")
		eve, bob := acme.Join("eve@acme.example", "VIEWER"), acme.Join("bob@acme.example", "VIEWER")
		ids := map[string]string{}
		create := func(name string, permissions ...string) {
			t.Helper()
			ids[name] = d.send(t, "POST "+rolesPath, m{"name": name, "permissions": permissions}, owner).ok(http.StatusCreated).text("id")
		}
		give := func(who *doorwardtest.Person, role string) {
			t.Helper()
			d.send(t, "PATCH /api/v2/users/"+who.ID, m{"role": role}, owner).ok(http.StatusOK)
		}
		create("TOP", "billing.read")
		create("LOW", "message.read")
		create("SENDER", "message.send")
		// MANAGER has the rank of an ADMIN, and acts with that of a VIEWER.
		create("MANAGER", "user.read", "tenant.read", "message.read", "report.read", "user.manage", "user.invite", "apikey.manage", "role.manage")
		create("BURSAR", adminsPermissions("billing.read")...) // has the rank of an OWNER, and acts with that of an ADMIN
		give(eve, "MANAGER")
		pending := d.send(t, invitePath, m{"email": "top@x.example", "role": "TOP"}, owner).ok(http.StatusCreated).text("id")
		raised := d.send(t, invitePath, m{"email": "low@x.example", "role": "LOW"}, owner).ok(http.StatusCreated).text("id")

		requireForbidden := func(who *doorwardtest.Person, route string, body any) {
			t.Helper()
			d.send(t, route, body, as(who.Token())).fails(http.StatusForbidden, "forbidden")
		}
		for who, above := range map[*doorwardtest.Person][]string{admin: {"OWNER", "TOP", "BURSAR"}, eve: {"OWNER", "ADMIN", "USER", "TOP", "SENDER", "MANAGER", "BURSAR"}} {
			for _, role := range above {
				requireForbidden(who, invitePath, m{"email": "new@x.example", "role": role})
				row := d.send(t, bulkPath, m{"invitations": []m{{"email": "new@x.example", "role": role}}}, as(who.Token())).ok(http.StatusOK).at("items").([]any)[0].(m)
				if row["status"] != 403.0 {
					t.Errorf("%s can invite to %s in bulk: %v", who.Email, role, row)
				}
				requireForbidden(who, "PATCH /api/v2/users/"+bob.ID, m{"role": role})
				requireForbidden(who, "PATCH /api/v2/users/"+who.ID, m{"role": role})
				if role != "OWNER" {
					requireForbidden(who, "POST /api/v2/api-keys", m{"name": "k", "role": role, "permissions": []string{"message.read"}})
				}
				requireForbidden(who, "DELETE "+rolesPath+"/"+ids["LOW"]+"?replaceBy="+role, nil)
				if id := ids[role]; id != "" {
					requireForbidden(who, "PATCH "+rolesPath+"/"+id, m{"name": "MINE"})
					requireForbidden(who, "PATCH "+rolesPath+"/"+id, m{"permissions": []string{"message.read"}})
					requireForbidden(who, "DELETE "+rolesPath+"/"+id+"?replaceBy=VIEWER", nil)
				}
			}
			requireForbidden(who, "PATCH "+rolesPath+"/"+ids["LOW"], m{"permissions": []string{"message.read", "tenant.destroy"}})
			requireForbidden(who, "POST "+rolesPath, m{"name": "MORE", "permissions": []string{"tenant.destroy"}})
			requireForbidden(who, "POST /api/v2/invitations/"+pending+"/resend", nil)
			requireForbidden(who, "DELETE /api/v2/invitations/"+pending, nil)
			for _, name := range []string{"TOP", "OWNER"} { // a name in use can't be taken
				d.send(t, "PATCH "+rolesPath+"/"+ids["LOW"], m{"name": name}, as(who.Token())).invalid("/name", "taken")
			}
		}
		// People can't change their own role if its rank is above the one that they act with.
		give(eve, "BURSAR")
		requireForbidden(eve, "PATCH "+rolesPath+"/"+ids["BURSAR"], m{"permissions": adminsPermissions("billing.read", "billing.manage")})
		requireForbidden(eve, "PATCH "+rolesPath+"/"+ids["BURSAR"], m{"about": "mine"})
		// Members keep a role that is renamed. They don't get a new role with the old name.
		give(bob, "LOW")
		d.send(t, "PATCH "+rolesPath+"/"+ids["LOW"], m{"name": "LOWER"}, owner).ok(http.StatusOK)
		create("LOW", "tenant.destroy")
		d.send(t, "GET /api/v2/users/"+bob.ID, nil, owner).ok(http.StatusOK).is("role", "LOWER")
		d.send(t, "GET /api/v2/invitations/"+raised, nil, owner).ok(http.StatusOK).is("role", "LOWER")
	})
}

// adminsPermissions returns the permissions of an ADMIN, and more.
func adminsPermissions(more ...string) []string {
	for _, a := range (doorward.User{Role: doorward.RoleAdmin}).Permissions() {
		more = append(more, string(a))
	}
	return more
}

// A role with all permissions of an OWNER acts as one, but the last OWNER stays.
func TestLastOwnerBesideEqualRoles(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner, boss := as(acme.Owner.Token()), acme.Join("boss@acme.example", "USER")
		id := d.send(t, "POST "+rolesPath, m{"name": "BOSS", "permissions": doorward.User{Role: doorward.RoleOwner}.Permissions()}, owner).ok(http.StatusCreated).text("id")
		d.send(t, "PATCH /api/v2/users/"+boss.ID, m{"role": "BOSS"}, owner).ok(http.StatusOK)
		by, ownerPath := as(boss.Token()), "/api/v2/users/"+acme.Owner.ID
		for _, edit := range []m{{"role": "BOSS"}, {"role": "VIEWER"}, {"status": "suspended"}} {
			d.send(t, "PATCH "+ownerPath, edit, by).fails(http.StatusConflict, "last_owner")
			d.send(t, "PATCH "+ownerPath, edit, owner).fails(http.StatusConflict, "last_owner")
		}
		d.send(t, "DELETE "+ownerPath, nil, by).fails(http.StatusConflict, "last_owner")
		d.send(t, "DELETE /api/v2/auth/memberships/"+acme.ID, nil, owner).fails(http.StatusConflict, "last_owner")
		d.send(t, "DELETE "+rolesPath+"/"+id+"?replaceBy=OWNER", nil, by).ok(http.StatusNoContent)
		d.send(t, "PATCH "+ownerPath, m{"role": "VIEWER"}, by).ok(http.StatusOK)
	})
}

// A policy that forbids everything refuses each endpoint that needs a permission in a tenant,
// except those that end sessions or restore the tenant.
func TestPoliciesRefuseEverywhere(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner, ann := as(acme.Owner.Token()), acme.Join("ann@acme.example", "USER")
		all := doorward.User{Role: doorward.RoleOwner}.Permissions()
		d.send(t, "POST "+rolesPath, m{"name": "BOSS", "permissions": all}, owner).ok(http.StatusCreated)
		d.send(t, "PATCH /api/v2/users/"+ann.ID, m{"role": "BOSS"}, owner).ok(http.StatusOK)
		d.send(t, "PUT "+policyPath, m{"text": `@id("none") forbid(principal, action, resource);`}, owner, with("If-Match", "*")).ok(http.StatusOK)
		for _, r := range api.Routes(nil) {
			if strings.HasSuffix(r.Path, "/logout") {
				continue // it would end the session
			}
			path := strings.NewReplacer("{id}", "x", "{version}", "1").Replace(r.Path)
			a := d.send(t, r.Method+" "+path, nil, as(ann.Token()), with("If-Match", "*"))
			if refused := a.status == http.StatusForbidden && a.text("code") == "denied_by_policy"; refused != r.Guard.CanBeDeniedByPolicy() {
				t.Errorf("%s %s is answered %d %s", r.Method, r.Path, a.status, a.body)
			}
		}
		d.send(t, "GET "+policyPath, nil, owner).ok(http.StatusOK)
		d.send(t, "GET "+policyPath+"/versions?cursor=x", nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
		d.send(t, "GET "+policyPath+"/versions?limit=0", nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
		d.send(t, "POST "+policyPath+"/versions/1/restore", nil, owner, with("If-Match", `"other"`)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.send(t, "PUT "+policyPath, m{"text": ""}, owner, with("If-Match", "*")).ok(http.StatusOK)
	})
}

// Only with force can a model remove an action that a policy names. A text that names it then
// can't be restored.
func TestModelInUse(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner, operator := as(d.Tenant("Acme").Owner.Token()), bearer(d.operatorKey(t))
		d.send(t, "PUT "+policyPath, m{"text": noSending}, owner, with("If-Match", "*")).ok(http.StatusOK)
		text := m{"text": "actions:\n  invoice.read: {roles: [OWNER]}\n"}
		d.send(t, "PUT "+modelPath, text, operator, with("If-Match", "*")).fails(http.StatusConflict, "model_in_use")
		d.send(t, "PUT "+modelPath+"?force=true", text, operator, with("If-Match", "*")).ok(http.StatusOK)
		d.send(t, "PUT "+policyPath, m{"text": ""}, owner, with("If-Match", "*")).ok(http.StatusOK)
		d.send(t, "POST "+policyPath+"/versions/1/restore", nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
	})
}

// With If-Match, roles, API keys and webhooks are deleted only in the version that it names.
func TestDeleteIfMatch(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		for path, made := range map[string]struct {
			body m
			id   string
		}{
			rolesPath: {m{"name": "SUPPORT", "permissions": []string{"message.read"}}, "id"},
			keysPath:  {m{"name": "Sync", "permissions": []string{"message.read"}}, "apiKey.id"},
			hooksPath: {m{"url": "http://localhost:1/", "events": []string{"*"}}, "webhook.id"},
		} {
			object := " " + path + "/" + d.send(t, "POST "+path, made.body, owner).ok(http.StatusCreated).text(made.id)
			tag := func() string {
				t.Helper()
				return d.send(t, "GET"+object, nil, owner).ok(http.StatusOK).header.Get("ETag")
			}
			old, change := tag(), m{"about": "x"}
			if path == keysPath {
				change = m{"name": "Other"}
			}
			d.send(t, "PATCH"+object, change, owner).ok(http.StatusOK)
			d.send(t, "DELETE"+object, nil, owner, with("If-Match", old)).fails(http.StatusPreconditionFailed, "precondition_failed")
			d.send(t, "DELETE"+object, nil, owner, with("If-Match", tag())).ok(http.StatusNoContent)
		}
	})
}
