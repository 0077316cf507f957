package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

const scimUsers = "/scim/v2/Users"

// directory gives a tenant an enabled connection of the type scim with a secret, and the proved domain acme.example.
func (s *server) directory(t *testing.T, tenant *doorwardtest.Tenant) (id string, secret func(*http.Request)) {
	t.Helper()
	owner := as(tenant.Owner.Token())
	id = s.send(t, "POST "+connectionsPath, m{"type": "scim", "name": "Acme's directory", "product": "okta"}, owner).ok(http.StatusCreated).text("id")
	made := s.send(t, "POST "+connectionsPath+"/"+id+"/scim-secrets", nil, owner).ok(http.StatusCreated)
	s.send(t, "PATCH "+connectionsPath+"/"+id, m{"status": "active"}, owner).ok(http.StatusOK)
	domain := doorward.NewID(doorward.PrefixDomain)
	if _, err := s.Node.DB.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertDomain(t.Context(), doorward.Domain{ID: domain, TenantID: tenant.ID, Name: "acme.example", Token: domain, CreatedAt: tx.Now})
		return errors.Join(err, tx.VerifyDomain(t.Context(), domain, tx.Now))
	}); err != nil {
		t.Fatal(err)
	}
	return id, with("Authorization", "Bearer "+made.text("secret"))
}

// refused checks an error of SCIM.
func (a answer) refused(status int, scimType string) {
	a.t.Helper()
	a.ok(status)
	got, _ := a.at("").(m)
	sent, _ := got["scimType"].(string)
	if sent != scimType || got["detail"] == "" || a.header.Get("Content-Type") != "application/scim+json" {
		a.t.Errorf("%s %s\nanswered %s %s\nwant the scimType %q", a.route, a.sent, a.header.Get("Content-Type"), a.body, scimType)
	}
}

// first returns the first resource of a list.
func (a answer) first() answer {
	a.t.Helper()
	return a.firstOf("Resources")
}

// item is first for a list of our API.
func (a answer) item() answer {
	a.t.Helper()
	return a.firstOf("items")
}

func (a answer) firstOf(list string) answer {
	a.t.Helper()
	all, _ := a.at(list).([]any)
	if len(all) == 0 {
		a.t.Fatalf("%s answered no %s: %s", a.route, list, a.body)
	}
	text, err := json.Marshal(all[0])
	if err != nil {
		a.t.Fatal(err)
	}
	a.body = text
	return a
}

// A directory makes, finds, changes, switches off and removes a person of a proved domain.
func TestSCIMUsers(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		con, idp := d.directory(t, acme)
		owner := as(acme.Owner.Token())
		made := d.send(t, "POST "+scimUsers, m{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:User"}, "userName": "Ann@acme.example", "externalId": "00u1", "active": true,
			"name": m{"givenName": "Ann", "familyName": "Lee"}, "emails": []m{{"value": "ann@work.example", "type": "work", "primary": true}}, "nickName": "A",
			"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": m{"department": "Sales", "manager": m{"value": "26118915"}},
		}, idp).ok(http.StatusCreated)
		id := made.text("id")
		made.is("userName", "Ann@acme.example").is("active", true).is("externalId", "00u1").is("name.givenName", "Ann").is("meta.resourceType", "User")
		if !strings.HasSuffix(made.header.Get("Location"), scimUsers+"/"+id) {
			t.Errorf("the location is %q", made.header.Get("Location"))
		}
		d.send(t, "GET /api/v2/users/"+id, nil, owner).ok(http.StatusOK).is("email", "ann@acme.example").is("name", "Ann Lee").is("status", "active").is("role", "USER")
		d.send(t, "POST "+scimUsers, m{"userName": "ann@ACME.example"}, idp).refused(http.StatusConflict, "uniqueness")
		d.send(t, "POST "+scimUsers, m{"userName": "bob@acme.example", "externalId": "00u1"}, idp).refused(http.StatusConflict, "uniqueness")
		d.send(t, "POST "+scimUsers, m{"userName": "bob"}, idp).refused(http.StatusBadRequest, "invalidValue")
		for _, filter := range []string{`userName eq "ANN@acme.example"`, `externalId eq "00u1"`, `id eq "` + id + `"`, `emails[type eq "work"].value eq "ann@WORK.example"`, `emails.value eq "ann@work.example" and active eq true`} {
			d.send(t, "GET "+scimUsers+"?filter="+url.QueryEscape(filter)+"&", nil, idp).ok(http.StatusOK).is("totalResults", 1.0).first().is("id", id)
		}
		d.send(t, "GET "+scimUsers+"?filter="+url.QueryEscape(`externalId eq "00U1"`), nil, idp).ok(http.StatusOK).is("totalResults", 0.0)
		d.send(t, "GET "+scimUsers+"?filter="+url.QueryEscape(`userName co "a"`), nil, idp).refused(http.StatusBadRequest, "invalidFilter")
		all := d.send(t, "GET "+scimUsers+"?count=1&startIndex=2&attributes=userName", nil, idp).ok(http.StatusOK).is("totalResults", 2.0).is("itemsPerPage", 1.0)
		if got := all.first().at("").(m); len(got) != 3 || got["userName"] != "Ann@acme.example" {
			t.Errorf("with attributes=userName the answer is %v", got)
		}

		bob := acme.Join("bob@hand.example", "USER")
		d.send(t, "GET /api/v2/auth/session", nil, as(bob.Token())).ok(http.StatusOK)
		d.send(t, "GET "+scimUsers+"/"+bob.ID, nil, idp).ok(http.StatusOK).is("userName", "bob@hand.example").is("name.familyName", "bob").is("active", true)
		d.send(t, "PUT "+scimUsers+"/"+bob.ID, m{"userName": "bob@hand.example", "active": "false"}, idp).ok(http.StatusOK).is("active", false)
		d.send(t, "GET /api/v2/auth/session", nil, as(bob.Token())).ok(http.StatusUnauthorized)
		d.send(t, "PUT "+scimUsers+"/"+bob.ID, m{"userName": "rob@acme.example"}, idp).refused(http.StatusBadRequest, "mutability")
		d.send(t, "PATCH "+scimUsers+"/"+id, m{"schemas": []string{"urn:ietf:params:scim:api:messages:2.0:PatchOp"}, "Operations": []m{{"op": "Replace", "path": "active", "value": "False"}}}, idp).ok(http.StatusOK).is("active", false)
		off := d.send(t, "GET /api/v2/users/"+id, nil, owner).ok(http.StatusOK).is("status", "suspended")
		if by := off.at("suspendedBy").([]any); !slices.Equal(by, []any{con}) {
			t.Errorf("suspended by %v", by)
		}
		d.send(t, "PATCH /api/v2/users/"+id, m{"status": "active"}, owner).fails(http.StatusConflict, "managed_by_directory")
		d.send(t, "PATCH "+scimUsers+"/"+id, m{"Operations": []m{{"op": "replace", "value": m{"active": "no"}}}}, idp).refused(http.StatusBadRequest, "invalidValue")
		d.send(t, "PATCH "+scimUsers+"/"+id, m{"Operations": []m{{"op": "replace", "value": m{"active": true, "displayName": "Ann L."}}}}, idp).ok(http.StatusOK).is("active", true).is("displayName", "Ann L.")
		d.send(t, "PUT "+scimUsers+"/"+id, m{"userName": "ann.lee@acme.example", "displayName": "Ann Lee"}, idp).ok(http.StatusOK).is("userName", "ann.lee@acme.example").is("active", true)
		d.send(t, "GET /api/v2/users/"+id, nil, owner).ok(http.StatusOK).is("email", "ann.lee@acme.example")
		d.send(t, "PUT "+scimUsers+"/"+id, m{"userName": "ann@elsewhere.example"}, idp).refused(http.StatusBadRequest, "invalidValue")
		d.send(t, "DELETE "+scimUsers+"/"+id, nil, idp).ok(http.StatusNoContent)
		d.send(t, "GET "+scimUsers+"/"+id, nil, idp).refused(http.StatusNotFound, "")
		d.send(t, "GET /api/v2/users/"+id, nil, owner).fails(http.StatusNotFound, "not_found")
		again := d.send(t, "POST "+scimUsers, m{"userName": "ann.lee@acme.example"}, idp).ok(http.StatusCreated).text("id")
		d.send(t, "GET "+scimUsers+"/"+again, nil, idp).ok(http.StatusOK).is("active", true)
		ownerID := d.send(t, "GET "+scimUsers+"?filter="+url.QueryEscape(`userName eq "`+acme.Owner.Email+`"`), nil, idp).ok(http.StatusOK).first().text("id")
		d.send(t, "PATCH "+scimUsers+"/"+ownerID, m{"Operations": []m{{"op": "replace", "path": "active", "value": false}}}, idp).refused(http.StatusConflict, "")
		d.send(t, "DELETE "+scimUsers+"/"+ownerID, nil, idp).refused(http.StatusConflict, "")
		runs := "GET /api/v2/sso/connections/" + con + "/runs"
		run := d.send(t, runs, nil, owner).ok(http.StatusOK).item().is("made", 2.0).is("changed", 2.0).is("suspended", 2.0).is("removed", 1.0).is("to", nil)
		shown := d.send(t, runs+"/"+run.text("id"), nil, owner).ok(http.StatusOK)
		shown.item().is("kind", "made").is("before", nil).is("after.address", "ann@acme.example").is("after.role", "USER")
		if effects := shown.at("items").([]any); len(effects) != 7 {
			t.Errorf("%d effects are recorded: %+v", len(effects), effects)
		}
	})
}

// What somebody has revoked by hand stays revoked, whatever the directory says, until somebody invites by hand. An invitation
// that has expired is sent again when the directory says active.
func TestSCIMDeadInvitations(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		con, idp := d.directory(t, acme)
		owner := as(acme.Owner.Token())
		const address = "new@elsewhere.example"
		pending := func(want int) {
			t.Helper()
			if n := d.send(t, "GET /api/v2/invitations?status=PENDING", nil, owner).ok(http.StatusOK).at("items").([]any); len(n) != want {
				t.Errorf("%d invitations are pending, want %d", len(n), want)
			}
		}
		user := scimUsers + "/" + d.send(t, "POST "+scimUsers, m{"userName": address}, idp).ok(http.StatusCreated).text("id")
		is := func(state string, active bool) {
			t.Helper()
			v := d.send(t, "GET "+user, nil, idp).ok(http.StatusOK).is("active", active)
			if got, _ := v.at("").(m)["urn:doorward:scim:User"].(m); got["state"] != state {
				t.Errorf("the state is %v, want %s", got, state)
			}
		}
		say := func(active bool) answer {
			t.Helper()
			return d.send(t, "PATCH "+user, m{"Operations": []m{{"op": "replace", "path": "active", "value": active}}}, idp).ok(http.StatusOK)
		}
		is("invited", true)
		inv := d.send(t, "GET /api/v2/invitations?status=PENDING", nil, owner).ok(http.StatusOK).item().text("id")
		d.send(t, "DELETE /api/v2/invitations/"+inv, nil, owner).ok(http.StatusNoContent)
		is("revoked", false)
		say(true).is("active", false)
		d.send(t, "PUT "+user, m{"userName": address, "active": true}, idp).ok(http.StatusOK).is("active", false)
		if got := d.protocolOf(t, con, "revoked", owner); got["outcome"] != "done" || got["count"] != 2.0 || got["advice"] != "scim_revoked" {
			t.Errorf("that the directory can't invite is in the protocol as %v", got)
		}
		say(false).is("active", false)
		say(true).is("active", false)
		d.send(t, "PUT "+user, m{"userName": "other@elsewhere.example", "active": true}, idp).ok(http.StatusOK).is("active", false)
		d.send(t, "PUT "+user, m{"userName": address, "active": true}, idp).ok(http.StatusOK).is("active", false)
		d.send(t, "POST "+scimUsers, m{"userName": address, "active": true}, idp).refused(http.StatusConflict, "uniqueness")
		is("revoked", false)
		pending(0)
		for active, want := range map[string]float64{"true": 1, "false": 1} { // the OWNER is active
			d.send(t, "GET "+scimUsers+"?filter=active+eq+"+active, nil, idp).ok(http.StatusOK).is("totalResults", want)
		}
		d.send(t, "POST /api/v2/auth/invite", m{"email": address, "role": "VIEWER"}, owner).ok(http.StatusCreated)
		is("invited", true)
		d.clock.advance(8 * 24 * time.Hour)
		owner = as(acme.Owner.Login())
		is("expired", false)
		d.send(t, "PUT "+user, m{"userName": address}, idp).ok(http.StatusOK).is("active", false)
		pending(0)
		say(true).is("active", true)
		is("invited", true)
		pending(1)
		say(false)
		is0 := d.send(t, "GET "+user, nil, idp).ok(http.StatusOK).is("active", false).at("").(m)["urn:doorward:scim:User"]
		if is0 != nil {
			t.Errorf("whom the directory has switched off is %v", is0)
		}
		pending(0)
		say(true).is("active", true)
		pending(1)
	})
}

// People outside of proved domains are invited, whether they have an account or not.
func TestSCIMInvitations(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		con, idp := d.directory(t, acme)
		owner := as(acme.Owner.Token())
		const state = "urn:doorward:scim:User"
		for _, address := range []string{"new@elsewhere.example", zeta.Owner.Email} {
			made := d.send(t, "POST "+scimUsers, m{"userName": address, "displayName": "Guest"}, idp).ok(http.StatusCreated).is("active", true)
			if got := made.at("").(m)[state]; got.(m)["state"] != "invited" {
				t.Errorf("%s is %v", address, got)
			}
			id := made.text("id")
			d.send(t, "PATCH "+scimUsers+"/"+id, m{"Operations": []m{{"op": "replace", "path": "active", "value": false}}}, idp).ok(http.StatusOK).is("active", false)
			if n := d.send(t, "GET /api/v2/invitations?status=PENDING", nil, owner).ok(http.StatusOK).at("items").([]any); len(n) != 0 {
				t.Errorf("%d invitations are pending", len(n))
			}
			d.send(t, "PATCH "+scimUsers+"/"+id, m{"Operations": []m{{"op": "replace", "path": "active", "value": true}}}, idp).ok(http.StatusOK).is("active", true)
			d.send(t, "GET "+scimUsers+"/"+id, nil, idp).ok(http.StatusOK).is("userName", address)
			d.send(t, "DELETE "+scimUsers+"/"+id, nil, idp).ok(http.StatusNoContent)
		}
		d.send(t, "PATCH "+connectionsPath+"/"+con, m{"directory": m{"outside": "refuse"}}, owner).ok(http.StatusOK).is("connection.directory.outside", "refuse")
		d.send(t, "POST "+scimUsers, m{"userName": "new@elsewhere.example"}, idp).refused(http.StatusBadRequest, "invalidValue")
	})
}

// A request without a good secret is told which one to send, and where it is made, whatever it came with.
func TestSCIMUnauthenticated(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		_, key := d.newKey(t, acme.Owner, m{})
		unknown := secret.NewKey("dwc_")
		for name, with := range map[string]func(*http.Request){
			"nothing": func(*http.Request) {}, "a session": as(acme.Owner.Token()), "an API key": as(key), "an unknown secret": as(unknown.Reveal()),
		} {
			got := d.send(t, "GET "+scimUsers, nil, with)
			got.refused(http.StatusUnauthorized, "")
			if detail := got.text("detail"); !strings.Contains(detail, "Bearer dwc_…") || !strings.Contains(detail, "/scim-secrets") || strings.Contains(detail, "cookie") {
				t.Errorf("%s is answered %q", name, detail)
			}
		}
	})
}

// A secret of a draft reads, but does not write; one of a disabled connection rests; one that was deleted has ended.
func TestSCIMSecrets(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		con := connectionsPath + "/" + d.send(t, "POST "+connectionsPath, m{"type": "scim", "name": "x"}, owner).ok(http.StatusCreated).text("id")
		d.send(t, "POST "+con+"/scim-secrets", m{"expiresInDays": 0}, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
		made := d.send(t, "POST "+con+"/scim-secrets", m{"expiresInDays": 30}, owner).ok(http.StatusCreated)
		idp := with("Authorization", "Bearer "+made.text("secret"))
		d.send(t, "GET /scim/v2/ServiceProviderConfig", nil, idp).ok(http.StatusOK).is("patch.supported", true)
		d.send(t, "GET /scim/v2", nil, idp).ok(http.StatusOK).is("patch.supported", true)
		d.send(t, "GET /scim/v2/Schemas", nil, idp).ok(http.StatusOK).is("totalResults", 4.0)
		d.send(t, "GET /scim/v2/ResourceTypes/User", nil, idp).ok(http.StatusOK).is("endpoint", "/Users")
		d.send(t, "GET "+scimUsers, nil, idp).ok(http.StatusOK).is("totalResults", 1.0)
		d.send(t, "POST "+scimUsers, m{"userName": "a@b.example"}, idp).refused(http.StatusForbidden, "")
		for _, request := range []string{"POST " + scimUsers + "?attributes=id&attributes=id", "PUT " + scimUsers + "/x", "PATCH /scim/v2/Groups/grp_absent"} { // a draft, before anything is read
			d.send(t, request, m{"userName": 1}, idp).refused(http.StatusForbidden, "")
		}
		d.send(t, "PATCH "+con, m{"status": "active"}, owner).ok(http.StatusOK)
		d.send(t, "POST "+scimUsers+"?attributes=id&attributes=id", m{"userName": "a@b.example"}, idp).refused(http.StatusBadRequest, "invalidFilter") // and made nobody
		d.send(t, "POST "+scimUsers, m{"userName": "a@b.example"}, idp).ok(http.StatusCreated)
		d.send(t, "PATCH "+con, m{"status": "disabled"}, owner).ok(http.StatusOK).is("ended.scimSecrets", 1.0)
		d.send(t, "GET "+scimUsers, nil, idp).refused(http.StatusUnauthorized, "")
		d.send(t, "PATCH "+con, m{"status": "active"}, owner).ok(http.StatusOK)
		d.send(t, "GET "+scimUsers, nil, idp).ok(http.StatusOK)
		second := d.send(t, "POST "+con+"/scim-secrets", nil, owner).ok(http.StatusCreated)
		d.send(t, "POST "+con+"/scim-secrets", nil, owner).fails(http.StatusConflict, "too_many_secrets")
		d.send(t, "DELETE "+con+"/scim-secrets/"+made.text("id"), nil, owner).ok(http.StatusNoContent)
		d.send(t, "GET "+scimUsers, nil, idp).refused(http.StatusUnauthorized, "")
		next := with("Authorization", "Bearer "+second.text("secret"))
		d.send(t, "GET "+scimUsers, nil, next).ok(http.StatusOK)
		d.send(t, "POST "+reportPath, m{"key": second.text("secret")}).ok(http.StatusNoContent)
		d.send(t, "GET "+scimUsers, nil, next).refused(http.StatusUnauthorized, "")
		d.send(t, "GET "+scimUsers, nil, owner).refused(http.StatusUnauthorized, "")
		d.send(t, "GET /scim/v2/nothing", nil, next).refused(http.StatusNotFound, "")
	})
}

// A secret that a set-up link has made is answered as if there were nobody while the connection is a draft, and doesn't write; it
// reads and writes once the connection is enabled.
func TestSCIMSecretsOfLinks(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		id := d.send(t, "POST "+connectionsPath, m{"type": "scim", "name": "x"}, owner).ok(http.StatusCreated).text("id")
		con := connectionsPath + "/" + id
		owners := with("Authorization", "Bearer "+d.send(t, "POST "+con+"/scim-secrets", nil, owner).ok(http.StatusCreated).text("secret"))
		_, link := beginLink(t, d.Node, tokenOf(d.send(t, "POST "+con+"/setup-link", nil, owner).ok(http.StatusCreated)))
		made, err := d.Node.App.Directories.AddSecret(t.Context(), link, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		idp := with("Authorization", "Bearer "+made.Text)
		d.send(t, "GET /scim/v2/ServiceProviderConfig", nil, idp).ok(http.StatusOK).is("patch.supported", true)
		d.send(t, "GET /scim/v2/Schemas", nil, idp).ok(http.StatusOK).is("totalResults", 4.0)
		d.seesNobody(t, acme.Owner, idp)
		d.send(t, "GET "+scimUsers, nil, owners).ok(http.StatusOK).is("totalResults", 1.0)
		d.send(t, "GET "+scimUsers+"/"+acme.Owner.ID, nil, owners).ok(http.StatusOK).is("id", acme.Owner.ID)
		for _, write := range []string{"PUT", "PATCH", "DELETE"} { // alike for who is there and who isn't
			body := m{"userName": "a@b.example", "Operations": []m{{"op": "replace", "path": "active", "value": false}}}
			d.send(t, write+" "+scimUsers+"/"+acme.Owner.ID, body, idp).refused(http.StatusForbidden, "")
			d.send(t, write+" "+scimUsers+"/usr_nobody", body, idp).refused(http.StatusForbidden, "")
		}
		d.send(t, "POST "+scimUsers, m{"userName": "a@b.example"}, idp).refused(http.StatusForbidden, "")
		d.send(t, "PATCH "+con, m{"status": "active"}, owner).ok(http.StatusOK)
		d.send(t, "GET "+scimUsers, nil, idp).ok(http.StatusOK).is("totalResults", 1.0)
		d.send(t, "GET "+scimUsers+"/"+acme.Owner.ID, nil, idp).ok(http.StatusOK)
		d.send(t, "POST "+scimUsers, m{"userName": "a@b.example"}, idp).ok(http.StatusCreated)
	})
}

// seesNobody checks that the directory is answered as if the tenant had nobody, although it has the OWNER.
func (s *server) seesNobody(t *testing.T, owner *doorwardtest.Person, idp func(*http.Request)) {
	t.Helper()
	for _, query := range []string{
		"", "?startIndex=1&count=2", "?count=0", "?filter=" + url.QueryEscape(`userName eq "`+owner.Email+`"`), "?filter=" + url.QueryEscape(`id eq "`+owner.ID+`"`),
		"?filter=" + url.QueryEscape(`emails.value eq "`+owner.Email+`"`), "?filter=" + url.QueryEscape(`active eq true`),
	} {
		s.send(t, "GET "+scimUsers+query, nil, idp).ok(http.StatusOK).is("totalResults", 0.0).is("startIndex", 1.0)
	}
	s.send(t, "GET "+scimUsers+"?filter="+url.QueryEscape(`title co "x"`), nil, idp).refused(http.StatusBadRequest, "invalidFilter")
	s.send(t, "GET "+scimUsers+"/"+owner.ID, nil, idp).refused(http.StatusNotFound, "")
	s.send(t, "GET /scim/v2/Groups?filter="+url.QueryEscape(`members eq "`+owner.ID+`"`), nil, idp).ok(http.StatusOK).is("totalResults", 0.0)
	s.send(t, "GET /scim/v2/Groups/grp_nobody", nil, idp).refused(http.StatusNotFound, "")
}

// protocolOf returns the newest entry of a connection's protocol that has the check.
func (s *server) protocolOf(t *testing.T, con, check string, owner func(*http.Request)) m {
	t.Helper()
	all, _ := s.send(t, "GET "+connectionsPath+"/"+con+"/attempts?limit=100", nil, owner).ok(http.StatusOK).at("items").([]any)
	for _, one := range all {
		if one.(m)["check"] == check {
			return one.(m)
		}
	}
	t.Fatalf("the protocol has no entry of %s: %v", check, all)
	return nil
}

// TestSCIMProtocolErased: what was refused of a person goes with the account, also where no userName says whose it is.
func TestSCIMProtocolErased(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		con, idp := d.directory(t, acme)
		pat := acme.Join("pat@elsewhere.example", "USER")
		d.send(t, "POST "+scimUsers, m{"externalId": "00u-pat"}, idp).refused(http.StatusBadRequest, "invalidValue")
		d.send(t, "POST "+scimUsers, m{"userName": "pat", "emails": []m{{"value": "Pat@elsewhere.example"}}}, idp).refused(http.StatusBadRequest, "invalidValue")
		d.send(t, "POST "+scimUsers, m{"userName": "pat.private", "externalId": "x"}, idp).refused(http.StatusBadRequest, "invalidValue")
		d.send(t, "POST "+scimUsers, m{"userName": "PAT@elsewhere.example"}, idp).refused(http.StatusConflict, "uniqueness")
		d.send(t, "PATCH "+scimUsers+"/"+pat.ID, m{"Operations": []m{{"op": "replace", "path": "externalId", "value": 7}}}, idp).ok(http.StatusBadRequest)
		d.send(t, "PUT "+scimUsers+"/"+pat.ID, m{"userName": "pat.other"}, idp).refused(http.StatusBadRequest, "invalidValue")
		kim := d.send(t, "POST "+scimUsers, m{"userName": "pat-kim@acme.example"}, idp).ok(http.StatusCreated).text("id") // has another address later
		d.send(t, "POST "+scimUsers, m{"userName": "pat-kim@acme.example"}, idp).refused(http.StatusConflict, "uniqueness")
		for _, next := range []string{"pat-lee@acme.example", "pat-roe@acme.example"} {
			d.send(t, "PUT "+scimUsers+"/"+kim, m{"userName": next}, idp).ok(http.StatusOK)
			d.send(t, "POST "+scimUsers, m{"userName": next, "externalId": "y"}, idp).refused(http.StatusConflict, "uniqueness")
		}
		for _, address := range []string{pat.Email, "pat-roe@acme.example"} {
			if _, err := d.Node.App.Users.EraseAddress(t.Context(), doorward.OperatorAtTerminal(), address); err != nil {
				t.Fatal(err)
			}
		}
		protocol := d.send(t, "GET "+connectionsPath+"/"+con+"/attempts?limit=100", nil, as(acme.Owner.Token())).ok(http.StatusOK)
		if text := strings.ToLower(string(protocol.body)); strings.Contains(text, `"pat`) || strings.Contains(text, "00u-pat") || strings.Contains(text, "pat@") || strings.Contains(text, pat.ID) {
			t.Errorf("the protocol still has the person: %s", text)
		}
	})
}

// TestSCIMOffBesideRefusals: a request that switches somebody off does that, whatever else in it is refused. It says in the
// answer and in the protocol what wasn't taken.
func TestSCIMOffBesideRefusals(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		con, idp := d.directory(t, acme)
		owner := as(acme.Owner.Token())
		d.send(t, "POST "+scimUsers, m{"userName": "taken@acme.example", "externalId": "taken"}, idp).ok(http.StatusCreated)
		off := m{"op": "Replace", "path": "active", "value": "False"}
		for i, c := range []struct {
			method        string
			body          m
			check, advice string
		}{
			{"PATCH", m{"Operations": []m{{"op": "replace", "value": m{"active": false, "userName": "x-bob@acme.example"}}}}, "mutability", "scim_own"}, // Okta
			{"PATCH", m{"Operations": []m{{"op": "Replace", "path": "userName", "value": "x-bob@acme.example"}, off}}, "mutability", "scim_own"},        // Entra ID
			{"PUT", m{"userName": "x-bob@acme.example", "active": false}, "mutability", "scim_own"},
			{"PUT", m{"userName": "taken@acme.example", "active": "False"}, "mutability", "scim_own"},
			{"PUT", m{"userName": "no address", "active": false}, "invalidValue", "scim_address"},
			{"PUT", m{"active": false}, "invalidValue", "scim_value"},
			{"PUT", m{"userName": "", "externalId": []m{{"a": 1}}, "active": false}, "invalidValue", "scim_value"},
			{"PATCH", m{"Operations": []m{off, {"op": "add", "path": "externalId", "value": "taken"}}}, "uniqueness", "scim_uniqueness"},
			{"PATCH", m{"Operations": []m{{"op": "remove", "path": `emails[type eq "home"]`}, off}}, "noTarget", "scim_target"},
			{"PATCH", m{"Operations": []m{{"op": "replace", "path": "emails[", "value": "x"}, off}}, "invalidPath", "scim_target"},
			{"PATCH", m{"Operations": []m{{"op": "replace", "path": "id", "value": "x"}, off}}, "mutability", "scim_mutability"},
		} {
			d.clock.advance(time.Minute)
			bob := acme.Join(fmt.Sprintf("bob%d@hand.example", i), "USER")
			path := scimUsers + "/" + bob.ID
			answered := d.send(t, c.method+" "+path, c.body, idp).ok(http.StatusOK).is("active", false).is("userName", bob.Email)
			said, _ := answered.at("").(m)["urn:doorward:scim:User"].(m)
			if text, _ := said["refused"].(string); !strings.Contains(text, c.check) {
				t.Errorf("%s %v answers %s", c.method, c.body, answered.body)
			}
			d.send(t, "GET /api/v2/auth/session", nil, as(bob.Token())).ok(http.StatusUnauthorized)
			got := d.protocolOf(t, con, c.check, owner)
			if seen, _ := got["seen"].(string); got["outcome"] != "done" || got["advice"] != c.advice || !strings.Contains(seen, "→ 200 active: false, without the rest: "+c.check) || got["userId"] != bob.ID {
				t.Errorf("%s %v is in the protocol as %v", c.method, c.body, got)
			}
			d.send(t, c.method+" "+path, c.body, idp).ok(http.StatusOK).is("active", false) // again it changes nothing
			if _, has := d.send(t, "GET "+path, nil, idp).ok(http.StatusOK).at("").(m)["urn:doorward:scim:User"]; has {
				t.Error("a later answer has the refusal, too")
			}
		}
		ann := acme.Join("ann@hand.example", "USER")
		path := scimUsers + "/" + ann.ID
		d.send(t, "PUT "+path, m{"userName": ann.Email, "active": "no"}, idp).refused(http.StatusBadRequest, "invalidValue")
		d.send(t, "PATCH "+scimUsers+"/"+acme.Owner.ID, m{"Operations": []m{off, {"op": "replace", "path": "userName", "value": "x@acme.example"}}}, idp).refused(http.StatusConflict, "")
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK)
		d.send(t, "PATCH "+path+"?a=%zz&a=1", m{"Operations": []m{off}}, idp).ok(http.StatusOK)
		d.send(t, "DELETE "+path+"?a=%zz&a=1", nil, idp).ok(http.StatusNoContent)
		eve := d.send(t, "POST "+scimUsers, m{"userName": "eve@partner.example"}, idp).ok(http.StatusCreated).text("id")
		d.send(t, "PUT "+scimUsers+"/"+eve, m{"userName": "taken@acme.example", "active": false}, idp).ok(http.StatusOK).is("active", false).is("userName", "eve@partner.example")
	})
}

// TestSCIMProtocol: each refused request of a directory, and each that is odd, is in the protocol of its connection, with
// what was asked, the answer and an advice, and without values of attributes. The same again is counted there.
func TestSCIMProtocol(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		con, idp := d.directory(t, acme)
		owner := as(acme.Owner.Token())
		short := with("Authorization", "Bearer "+d.send(t, "POST "+connectionsPath+"/"+con+"/scim-secrets", m{"expiresInDays": 1}, owner).ok(http.StatusCreated).text("secret"))
		patch := func(path string, operations ...m) m { return m{"Operations": operations} }
		ann := d.send(t, "POST "+scimUsers, m{"userName": "ann@acme.example", "externalId": "a1"}, idp).ok(http.StatusCreated).text("id")
		group := d.send(t, "POST /scim/v2/Groups", m{"displayName": "All"}, idp).ok(http.StatusCreated).text("id")
		hand := acme.Join("hand@elsewhere.example", "USER")
		advices := map[any]bool{}
		for _, c := range []struct {
			request              string
			body                 m
			status               int
			check, advice, asked string
			subject              string
		}{
			{"POST /Users", m{"userName": "ann@acme.example", "displayName": "Zoe Private"}, 409, "uniqueness", "scim_uniqueness", "POST /Users (displayName, userName) → 409 uniqueness ", "ann@acme.example"},
			{"POST /Users", m{"userName": "ann", "externalId": "x"}, 400, "invalidValue", "scim_address", "POST /Users (externalId, userName) → 400 invalidValue ", ""},
			{"POST /Users", m{"externalId": "x"}, 400, "invalidValue", "scim_value", "POST /Users (externalId) → 400 ", ""},
			{"PATCH /Users/" + ann, patch("", m{"op": "Replace", "path": `emails[value eq "secret@x.example"].value`, "value": 7}), 400, "invalidValue", "scim_value", "PATCH /Users/{id} (replace emails.value) → 400 ", ann},
			{"PATCH /Users/" + ann, patch("", m{"op": "add", "value": m{"active": "maybe"}}), 400, "invalidValue", "scim_value", "PATCH /Users/{id} (add active) → 400 ", ann},
			{"PATCH /Users/" + ann, patch("", m{"op": "remove"}), 400, "noTarget", "scim_target", "PATCH /Users/{id} (remove) → 400 noTarget ", ann},
			{"PUT /Users/" + hand.ID, m{"userName": "other@acme.example"}, 400, "mutability", "scim_own", "PUT /Users/{id} (userName) → 400 mutability ", "other@acme.example"},
			{"PUT /Users/" + ann, m{"userName": "ann@other.example"}, 400, "invalidValue", "scim_domain", "PUT /Users/{id} (userName) → 400 ", "ann@other.example"},
			{"PATCH /Groups/" + group, patch("", m{"op": "replace", "path": `members[value eq "u"].type`, "value": "x"}), 400, "mutability", "scim_mutability", "PATCH /Groups/{id} (replace members.type) → 400 ", group},
			{"PATCH /Groups/" + group, patch("", m{"op": "add", "path": "members", "value": []m{{"value": "usr_nobody"}}}), 400, "invalidValue", "scim_member", "PATCH /Groups/{id} (add members) → 400 ", group},
			{"GET /Users?filter=" + url.QueryEscape(`title co "private"`), nil, 400, "invalidFilter", "scim_filter", "GET /Users → 400 invalidFilter ", ""},
			{"GET /Users/usr_nobody", nil, 404, "unknown", "scim_unknown", "GET /Users/{id} → 404 ", "usr_nobody"},
			{"DELETE /Users/" + acme.Owner.ID, nil, 409, "last_owner", "scim_owner", "DELETE /Users/{id} → 409 ", acme.Owner.ID},
		} {
			before := 0.0
			d.clock.advance(time.Minute)
			for range 2 {
				var body any
				if c.body != nil {
					body = c.body
				}
				method, path, _ := strings.Cut(c.request, " ")
				d.send(t, method+" /scim/v2"+path, body, idp).ok(c.status)
				got := d.protocolOf(t, con, c.check, owner)
				seen, _ := got["seen"].(string)
				subject, _ := got["subject"].(string)
				if got["kind"] != "scim" || got["outcome"] != "refused" || got["advice"] != c.advice || !strings.HasPrefix(seen, c.asked) || subject != c.subject {
					t.Errorf("%s %v is in the protocol as %v", c.request, c.body, got)
				}
				if strings.Contains(seen, "rivate") || strings.Contains(seen, "secret@") {
					t.Errorf("%s: the protocol has values: %s", c.request, seen)
				}
				if n := got["count"].(float64); n != before+1 {
					t.Errorf("%s is counted %v times", c.request, n)
				}
				before++
			}
			advices[c.advice] = true
		}
		owner = as(acme.Owner.Login())
		d.send(t, "PATCH "+connectionsPath+"/"+con, m{"directory": m{"outside": "refuse"}}, owner).ok(http.StatusOK)
		d.send(t, "POST "+scimUsers, m{"userName": "new@elsewhere.example"}, idp).refused(http.StatusBadRequest, "invalidValue")
		if got := d.protocolOf(t, con, "invalidValue", owner); got["advice"] != "scim_domain" {
			t.Errorf("an address elsewhere is in the protocol as %v", got)
		}
		d.send(t, "PATCH /api/v2/users/"+ann, m{"status": "suspended"}, owner).ok(http.StatusOK)
		for range 2 {
			d.send(t, "PATCH "+scimUsers+"/"+ann, patch("", m{"op": "replace", "path": "active", "value": true}), idp).ok(http.StatusOK).is("active", false)
			d.send(t, "PATCH /scim/v2/Groups/"+group, patch("", m{"op": "remove", "path": `members[value eq "` + ann + `"]`}), idp).ok(http.StatusNoContent)
		}
		for check, advice := range map[string]string{"suspended": "reinstate", "groups": "scim_members"} {
			if got := d.protocolOf(t, con, check, owner); got["outcome"] != "done" || got["count"] != 2.0 || got["advice"] != advice {
				t.Errorf("%s is in the protocol as %v", check, got)
			}
		}
		d.clock.advance(25 * time.Hour)
		owner = as(acme.Owner.Login())
		d.send(t, "GET "+scimUsers, nil, short).refused(http.StatusUnauthorized, "")
		if got := d.protocolOf(t, con, "secret", owner); got["advice"] != "scim_secret" {
			t.Errorf("a secret that has ended is in the protocol as %v", got)
		}
		d.send(t, "PATCH "+connectionsPath+"/"+con, m{"status": "disabled"}, owner).ok(http.StatusOK)
		d.send(t, "GET "+scimUsers, nil, idp).refused(http.StatusUnauthorized, "")
		if got := d.protocolOf(t, con, "secret", owner); got["advice"] != "scim_disabled" || !strings.HasPrefix(got["seen"].(string), "GET /Users → 401 the secret dwc_") {
			t.Errorf("a secret that rests is in the protocol as %v", got)
		}
	})
}

// TestSCIMTenantRefusals: a full tenant, and one that the operator has frozen or is closing, refuse a directory's requests, and
// the protocol says what to do.
func TestSCIMTenantRefusals(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		con, idp := d.directory(t, acme)
		entry := func(advice string) doorward.Attempt {
			t.Helper()
			page, err := d.Node.DB.Read().AttemptPage(t.Context(), con, doorward.Window{Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.Items {
				if a.Advice == advice {
					return a
				}
			}
			t.Errorf("the protocol has no entry with the advice %s: %+v", advice, page.Items)
			return doorward.Attempt{}
		}
		d.setQuotas(t, acme.ID, m{"people": 1})
		for _, name := range []string{"ann@acme.example", "gus@elsewhere.example"} { // a member, and an invitation
			d.send(t, "POST "+scimUsers, m{"userName": name}, idp).refused(http.StatusConflict, "")
		}
		if a := entry("scim_quota"); a.Check != "refused" || !strings.Contains(a.Seen, "POST /Users (userName) → 409") {
			t.Errorf("the quota is in the protocol as %+v", a)
		}
		d.send(t, "GET "+scimUsers, nil, idp).ok(http.StatusOK).is("totalResults", 1.0)
		for _, status := range []doorward.TenantStatus{doorward.TenantFrozen, doorward.TenantClosing} {
			d.setTenantStatus(t, acme, status)
			for _, request := range []string{"GET " + scimUsers, "DELETE " + scimUsers + "/" + acme.Owner.ID, "POST /scim/v2/Groups"} {
				d.send(t, request, m{"displayName": "All"}, idp).refused(http.StatusForbidden, "")
			}
			word := strings.ToLower(string(status)) // of the newest entry
			if a := entry("scim_tenant"); a.Check != "tenant" || a.Outcome != doorward.AttemptRefused || !strings.Contains(strings.ToLower(a.Seen), word) {
				t.Errorf("%s: in the protocol as %+v", status, a)
			}
		}
		d.setTenantStatus(t, acme, doorward.TenantActive)
		d.setQuotas(t, acme.ID, m{"people": 2})
		d.send(t, "POST "+scimUsers, m{"userName": "ann@acme.example"}, idp).ok(http.StatusCreated)
	})
}

// Nothing that a directory sends beside it keeps somebody in: what they have as a name is often their own word.
func TestSCIMOffBesideHostileValues(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		con, idp := d.directory(t, acme)
		d.send(t, "POST "+scimUsers, m{"userName": "taken@acme.example", "externalId": "taken"}, idp).ok(http.StatusCreated)
		long := strings.Repeat("x", 300_000)
		for i, beside := range []string{
			`"displayName": "a\u0000"`, `"displayName": "a\ud83d"`, "\"displayName\": \"a\xf0\x9f\"", `"displayName": "` + long + `"`, `"displayName": "\u202e<b>"`,
			`"externalId": "taken"`, `"userName": "taken@acme.example"`, `"userName": "a@\u202eacme.example"`, `"userName": "` + long + `@acme.example"`, `"userName": 7`,
			`"emails": 7`, `"name": "x"`, `"roles": {"x": [[[[[7]]]]]}`, `"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": 7`,
		} {
			for _, sent := range []string{`PUT {"active": "False", ` + beside + `}`, `PATCH {"Operations": [{"op": "Replace", "value": {` + beside + `, "active": false}}]}`} {
				method, body, _ := strings.Cut(sent, " ")
				id := d.send(t, "POST "+scimUsers, m{"userName": fmt.Sprintf("p%d%s@acme.example", i, strings.ToLower(method))}, idp).ok(http.StatusCreated).text("id")
				d.send(t, method+" "+scimUsers+"/"+id, body, idp).ok(http.StatusOK).is("active", false)
				d.send(t, "GET /api/v2/users/"+id, nil, as(acme.Owner.Token())).ok(http.StatusOK).is("status", "suspended")
			}
		}
		d.send(t, "GET "+connectionsPath+"/"+con+"/attempts", nil, as(acme.Owner.Token())).ok(http.StatusOK)
	})
}
