package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

const identitiesPath = "/api/v2/sso/identities"

// signOnSite is a tenant whose connection signs people in by a provider.
type signOnSite struct {
	*server
	t        *testing.T
	tenant   *doorwardtest.Tenant
	owner    opt
	provider *oidctest.Provider
	con      string
	path     string // of the connection
}

// signOnSite makes a tenant with a connection that makes members of the people of a proved domain, acme.example.
func (s *server) signOnSite(t *testing.T) *signOnSite {
	t.Helper()
	acme := s.Tenant("Acme")
	f := &signOnSite{server: s, t: t, tenant: acme, owner: as(acme.Owner.Token()), provider: newProvider(t)}
	f.provider.Change(func(p *oidctest.Settings) { p.Now = s.clock.now })
	f.says("1", "ann@acme.example")
	f.con = f.ask("POST "+connectionsPath, m{
		"type": "oidc", "name": "Okta", "issuer": f.provider.Issuer(), "clientId": "doorward", "clientAuth": "secret_basic", "jit": "domains",
	}).ok(http.StatusCreated).text("id")
	f.path = connectionsPath + "/" + f.con
	f.ask("POST "+f.path+"/secrets", m{"clientSecret": "the client's own secret"}).ok(http.StatusCreated)
	s.markTested(t, f.con)
	f.ask("PATCH "+f.path, m{"status": "active"}).ok(http.StatusOK)
	domain := f.ask("POST "+domainsPath, m{"domain": "acme.example"}).ok(http.StatusCreated)
	s.publish(domain)
	f.ask("POST "+domainsPath+"/"+domain.text("id")+"/verify", nil).ok(http.StatusOK)
	f.ask("PATCH "+domainsPath+"/"+domain.text("id"), m{"connectionId": f.con}).ok(http.StatusOK)
	f.ask("PUT "+ssoPolicyPath, m{"mode": "optional", "guests": "allowed"}, with("If-Match", "*")).ok(http.StatusOK)
	return f
}

// ask sends a request of the OWNER.
func (f *signOnSite) ask(route string, body any, opts ...opt) answer {
	f.t.Helper()
	return f.send(f.t, route, body, append(opts, f.owner)...)
}

// says makes the provider name somebody at the next sign-in.
func (f *signOnSite) says(subject, email string) {
	f.provider.Change(func(p *oidctest.Settings) {
		p.Person = oidctest.Person{Subject: subject, Email: email, IsVerified: true}
	})
}

// signOnPath is the address of a browser that signs in: its start or its callback.
func (f *signOnSite) signOnPath(what string) string { return "/api/v2/auth/sso/" + f.con + "/" + what }

// begin begins a sign-in, goes through the provider, and returns the function that opens the callback.
func (f *signOnSite) begin() (callback func() answer) {
	f.t.Helper()
	begun := f.send(f.t, "GET "+f.signOnPath("start"), nil).ok(http.StatusSeeOther)
	back, err := f.provider.SignIn(begun.header.Get("Location"))
	if err != nil {
		f.t.Fatal(err)
	}
	var opts []opt
	for _, set := range begun.cookies() {
		pair, _, _ := strings.Cut(set, ";")
		opts = append(opts, cookie(pair))
	}
	return func() answer {
		f.t.Helper()
		return f.send(f.t, "GET "+back.RequestURI(), nil, opts...)
	}
}

// sealSecretElsewhere replaces the client secrets by one that the master key doesn't open.
func (f *signOnSite) sealSecretElsewhere() {
	f.t.Helper()
	id := doorward.NewID(doorward.PrefixClientSecret)
	err := f.Node.App.Access.Upkeep(f.t.Context(), func(tx *store.Tx) error {
		had, err := tx.ConnectionSecrets(f.t.Context(), f.con)
		if err != nil {
			return err
		}
		for _, one := range had {
			if _, err := tx.DeleteConnectionSecret(f.t.Context(), f.con, one.ID); err != nil {
				return err
			}
		}
		return tx.InsertConnectionSecret(f.t.Context(), store.SealedConnectionSecret{
			ConnectionSecret: doorward.ConnectionSecret{ID: id, ConnectionID: f.con, CreatedAt: tx.Now},
			Sealed:           seal.NewKey().Seal(seal.Place{Table: "connection_secrets", ID: id, Column: "secret_sealed"}, []byte("secret")),
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestListsOfConnections: the lists about a connection refuse what other lists refuse, and an identity can be
// deleted.
func TestListsOfConnections(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		f.begin()().ok(http.StatusSeeOther)
		for _, path := range []string{connectionsPath, f.path + "/attempts", f.path + "/identities"} {
			f.ask("GET "+path, nil).ok(http.StatusOK).is("total", 1.0)
			f.ask("GET "+path+"?cursor=x", nil).fails(http.StatusBadRequest, "invalid_cursor")
			f.ask("GET "+path+"?limit=201", nil).fails(http.StatusUnprocessableEntity, "validation_failed")
			f.ask("GET "+path+"?sort=size", nil).fails(http.StatusUnprocessableEntity, "validation_failed")
		}
		found := f.ask("GET "+f.path+"/identities", nil).at("items").([]any)[0].(m)
		if found["email"] != "ann@acme.example" || found["subject"] != "1" || found["issuer"] != f.provider.Issuer() {
			t.Errorf("the identity is %v", found)
		}
		identity := fmt.Sprint(identitiesPath, "/", found["id"])
		f.ask("DELETE "+identity, nil).ok(http.StatusOK).is("ended.sessions", 1.0)
		f.ask("DELETE "+identity, nil).fails(http.StatusNotFound, "not_found")
		f.ask("GET "+f.path+"/identities", nil).ok(http.StatusOK).is("total", 0.0)
	}, withProviders())
}

// TestRefusedConnections: what keeps a connection from being changed, tested and deleted.
func TestRefusedConnections(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		f.ask("DELETE "+f.path, nil, with("If-Match", `"x"`)).fails(http.StatusPreconditionFailed, "precondition_failed")
		f.ask("DELETE "+f.path+"?dryRun", nil).fails(http.StatusUnprocessableEntity, "validation_failed")
		f.ask("POST "+f.path+"/secrets?dryRun=true", m{"clientSecret": "x"}).fails(http.StatusBadRequest, "invalid_query")
		f.ask("POST "+f.path+"/test?x=1", nil).fails(http.StatusBadRequest, "invalid_query")
		f.ask("POST "+f.path+"/secrets", m{"clientSecret": "x"}).ok(http.StatusCreated)
		f.ask("POST "+f.path+"/secrets", m{"clientSecret": "x"}).fails(http.StatusConflict, "too_many_secrets")
		f.ask("POST "+f.path+"/switch", m{"dryRun": "x"}).fails(http.StatusBadRequest, "invalid_body")

		draft := f.ask("POST "+connectionsPath, m{"type": "oidc", "name": "Draft", "clientAuth": "secret_post"}).ok(http.StatusCreated).text("id")
		test := "POST " + connectionsPath + "/" + draft + "/test"
		f.ask(test, nil).invalid("/issuer", "required")
		f.ask("PATCH "+connectionsPath+"/"+draft, m{"issuer": f.provider.Issuer()}).ok(http.StatusOK)
		f.ask(test, nil).invalid("/clientId", "required")
		f.ask("PATCH "+connectionsPath+"/"+draft, m{"clientId": "doorward"}).ok(http.StatusOK)
		f.ask(test, nil).invalid("/secrets", "required")
		f.provider.Close()
		f.ask("POST "+f.path+"/test", nil).fails(http.StatusServiceUnavailable, "provider_unavailable")

		for range doorward.ConnectionsMax - 2 {
			f.ask("POST "+connectionsPath, m{"type": "oidc", "name": "Another"}).ok(http.StatusCreated)
		}
		f.ask("POST "+connectionsPath, m{"type": "oidc", "name": "Another"}).fails(http.StatusConflict, "too_many_connections")
	}, withProviders())
}

// TestLimitOfRequestsToProviders: a tenant has them asked 300 times a minute.
func TestLimitOfRequestsToProviders(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t) // asks once
		test := "POST " + f.path + "/test"
		for range 299 {
			f.ask(test, nil).ok(http.StatusCreated)
		}
		f.ask(test, nil).fails(http.StatusTooManyRequests, "too_many_attempts")
		other := m{"issuer": f.provider.Issuer() + "/other"}
		f.ask("PATCH "+f.path, other).fails(http.StatusTooManyRequests, "too_many_attempts")
		other["type"], other["name"] = "oidc", "Other"
		f.ask("POST "+connectionsPath, other).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, withProviders())
}

// TestConnectionsWithoutEvents: a tenant that has used up its events changes no connection, but disables and
// deletes one.
func TestConnectionsWithoutEvents(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		f.ask("PATCH "+f.path, m{"emailFrom": "upn"}).ok(http.StatusOK)
		d.markTested(t, f.con)
		d.setQuotas(t, f.tenant.ID, m{"eventsPerDay": 0})
		for _, c := range []struct {
			route string
			body  any
		}{
			{"POST " + connectionsPath, m{"type": "oidc", "name": "Another"}},
			{"PATCH " + f.path, m{"name": "x"}},
			{"POST " + f.path + "/switch", nil},
			{"DELETE " + f.path + "/pending", nil},
			{"POST " + f.path + "/test", nil},
			{"POST " + f.path + "/setup-link", m{"days": 1}},
		} {
			f.ask(c.route, c.body).fails(http.StatusConflict, "quota_exceeded").is("quota", "eventsPerDay")
		}
		f.ask("GET "+f.path, nil).ok(http.StatusOK).is("name", "Okta").is("emailFrom", "email").is("pending.emailFrom", "upn")
		f.ask("PATCH "+f.path, m{"status": "disabled"}).ok(http.StatusOK)
		f.ask("DELETE "+f.path, nil).ok(http.StatusOK)
	}, withProviders())
}

// TestConnectionsWithoutMasterKey: what seals or opens a secret is refused while the master key is missing.
func TestConnectionsWithoutMasterKey(t *testing.T) {
	t.Parallel()
	t.Run("of the installation", func(t *testing.T) {
		t.Parallel()
		d := start(t, doorwardtest.Database(dbtest.Postgres(t)))
		owner := as(d.Tenant("Acme").Owner.Token())
		made := d.send(t, "POST "+connectionsPath, m{"type": "oidc", "name": "x"}, owner).ok(http.StatusCreated)
		path := connectionsPath + "/" + made.text("id")
		d.send(t, "POST "+connectionsPath, m{"type": "oidc", "name": "x", "clientAuth": "private_key_jwt"}, owner).fails(http.StatusConflict, "master_key_missing")
		d.send(t, "PATCH "+path, m{"clientAuth": "private_key_jwt"}, owner).fails(http.StatusConflict, "master_key_missing")
		d.send(t, "POST "+path+"/secrets", m{"clientSecret": "x"}, owner).fails(http.StatusConflict, "master_key_missing")
		d.send(t, "GET "+connectionsPath, nil, owner).ok(http.StatusOK).is("total", 1.0)
	})
	t.Run("of a secret", func(t *testing.T) {
		onSQLite(t, func(t *testing.T, d *server) {
			f := d.signOnSite(t)
			callback := f.begin()
			f.sealSecretElsewhere()
			callback().fails(http.StatusConflict, "master_key_missing")
			d.send(t, "GET "+f.signOnPath("start"), nil).fails(http.StatusConflict, "master_key_missing")
			f.ask("POST "+f.path+"/test", nil).fails(http.StatusConflict, "master_key_missing")
		}, withProviders())
	})
}

// TestRefusedCallbacks: each way in which a sign-in by a provider ends without a session.
func TestRefusedCallbacks(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		f.begin()().ok(http.StatusSeeOther)
		for status, code := range map[doorward.TenantStatus]string{doorward.TenantFrozen: "tenant_frozen", doorward.TenantClosing: "tenant_closing"} {
			callback := f.begin()
			d.setTenantStatus(t, f.tenant, status)
			callback().fails(http.StatusForbidden, code)
			d.setTenantStatus(t, f.tenant, doorward.TenantActive)
		}

		d.setQuotas(t, f.tenant.ID, m{"people": 2})
		f.says("2", "bob@acme.example")
		f.begin()().fails(http.StatusConflict, "quota_exceeded").is("quota", "people")
		if last := f.ask("GET "+f.path+"/attempts?limit=1", nil).at("items").([]any)[0].(m); last["outcome"] != "refused" || last["seen"] != "quota_exceeded" || last["subject"] != "2" {
			t.Errorf("the protocol has %v", last)
		}
		f.says("3", "zoe@zeta.example")
		f.begin()().fails(http.StatusForbidden, "sign_on_refused")
		f.provider.Change(func(p *oidctest.Settings) { p.Person.Error = "access_denied" })
		f.begin()().fails(http.StatusForbidden, "sign_on_refused")
		f.says("1", "ann@acme.example")
		callback := f.begin()
		callback().ok(http.StatusSeeOther)
		callback().fails(http.StatusBadRequest, "sign_on_state") // once more

		callback = f.begin()
		f.provider.Close()
		callback().fails(http.StatusServiceUnavailable, "provider_unavailable")
	}, withProviders())
}

// TestLimitsOfSignOn: a client begins 600 sign-ins a minute, and ends 60 refused.
func TestLimitsOfSignOn(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		stray := "GET " + f.signOnPath("callback") + "?state=" + url.QueryEscape(forged) + "&code=x"
		for range 61 { // an image in a page of another site counts nothing
			d.send(t, stray, nil, with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Dest", "image")).fails(http.StatusBadRequest, "sign_on_state")
		}
		f.begin()().ok(http.StatusSeeOther)
		own := f.begin()
		for range 60 {
			d.send(t, stray, nil).fails(http.StatusBadRequest, "sign_on_state")
		}
		d.send(t, stray, nil).fails(http.StatusTooManyRequests, "too_many_attempts")
		own().ok(http.StatusSeeOther) // it has a cookie, and is counted apart
		f.says("3", "zoe@zeta.example")
		own = f.begin()
		for range 60 {
			f.begin()().fails(http.StatusForbidden, "sign_on_refused")
		}
		if a := own().fails(http.StatusTooManyRequests, "too_many_attempts"); len(a.cookies()) > 0 {
			t.Errorf("the sign-in can't be ended later: %v", a.cookies())
		}
		begin := "GET " + f.signOnPath("start")
		for range 537 {
			d.send(t, begin, nil).ok(http.StatusSeeOther)
		}
		d.send(t, begin, nil).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, withProviders())
}

// TestStartOutOfReach: of a provider that nothing is known of yet, and that doesn't answer, the browser isn't
// led anywhere.
func TestStartOutOfReach(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		next := newProvider(t)
		err := d.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
			found, err := tx.Connection(t.Context(), f.con)
			if err != nil {
				return err
			}
			found.InForce.Issuer = next.Issuer()
			return tx.SetConnectionParameters(t.Context(), f.con, false, found.InForce)
		})
		if err != nil {
			t.Fatal(err)
		}
		next.Close()
		d.send(t, "GET "+f.signOnPath("start"), nil).fails(http.StatusServiceUnavailable, "provider_unavailable")
	}, withProviders())
}

// TestRefusedSSOPolicies: what was changed by somebody else isn't changed or confirmed, and nothing is demanded
// without a proved domain.
func TestRefusedSSOPolicies(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		required, old := m{"mode": "required", "guests": "allowed"}, with("If-Match", `"0"`)
		f.ask("PUT "+ssoPolicyPath, required, old).fails(http.StatusPreconditionFailed, "precondition_failed")
		f.ask("POST "+ssoPolicyPath+"/confirm", nil, old).fails(http.StatusPreconditionFailed, "precondition_failed")
		domain := f.ask("GET "+domainsPath, nil).ok(http.StatusOK).at("items").([]any)[0].(m)
		f.ask(fmt.Sprint("PATCH ", domainsPath, "/", domain["id"]), m{"connectionId": ""}).ok(http.StatusOK)
		f.ask("PUT "+ssoPolicyPath, required, with("If-Match", "*")).fails(http.StatusConflict, "domain_needed")
	}, withProviders())
}

// TestStartWithoutASecret: where the last client secret of a connection was deleted, a sign-in can't begin.
func TestStartWithoutASecret(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		d.send(t, "GET "+f.signOnPath("start"), nil).ok(http.StatusSeeOther)
		secrets, _ := f.ask("GET "+f.path, nil).ok(http.StatusOK).at("secrets").([]any)
		for _, one := range secrets {
			f.ask("DELETE "+f.path+"/secrets/"+one.(m)["id"].(string), nil).ok(http.StatusNoContent)
		}
		d.send(t, "GET "+f.signOnPath("start"), nil).fails(http.StatusForbidden, "sign_on_refused").is("check", "client")
	}, withProviders())
}

// TestStartWithAnOddTest: what can't be the id of a test is none, also to PostgreSQL, which refuses such text.
func TestStartWithAnOddTest(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		con := d.send(t, "POST "+connectionsPath, m{"type": "oidc", "name": "Draft"}, as(d.Tenant("Acme").Owner.Token())).ok(http.StatusCreated).text("id")
		for _, id := range []string{"%00", "tst_%00", "tst_%ff", "x"} {
			d.send(t, "GET /api/v2/auth/sso/"+con+"/start?test="+id, nil).fails(http.StatusNotFound, "not_found")
		}
	}, withProviders())
}
