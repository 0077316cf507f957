package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

const connectionsPath = "/api/v2/sso/connections"

// withProviders lets the server reach providers of package oidctest.
func withProviders() doorwardtest.Option {
	return func(c *node.Config) {
		c.Connections.Allow, c.Connections.Authorities = oidctest.Addresses(), oidctest.Authorities()
	}
}

// newProvider starts a provider that knows the client "doorward" with the secret.
func newProvider(t *testing.T) *oidctest.Provider {
	t.Helper()
	p := oidctest.New("")
	t.Cleanup(p.Close)
	p.Change(func(s *oidctest.Settings) {
		s.Apps = []oidctest.App{{ID: "doorward", Secrets: []string{"the client's own secret"}}}
	})
	return p
}

// markTested records a passed test of what the connection has.
func (s *server) markTested(t *testing.T, id string) {
	t.Helper()
	found, err := s.Node.DB.Read().Connection(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	parameters, pending := found.ToTest()
	if _, err := s.Node.DB.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.MarkConnectionTested(t.Context(), id, pending, parameters.Revision)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A connection is made, completed, enabled, changed, switched, disabled and deleted, and no answer has its
// secret.
func TestConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		owner, other := as(acme.Owner.Token()), as(zeta.Owner.Token())
		provider, next := newProvider(t), newProvider(t)
		made := d.send(t, "POST "+connectionsPath, m{"type": "oidc", "name": "Acme's Okta", "product": "okta", "jitRole": "VIEWER"}, owner).ok(http.StatusCreated)
		id := made.text("id")
		made.is("status", "draft").is("clientAuth", "private_key_jwt").is("emailFrom", "email").is("jit", "off").is("jitRole", "VIEWER").is("trustProviderFactor", false)
		if !strings.HasSuffix(made.text("callbackUrl"), "/api/v2/auth/sso/"+id+"/callback") || !strings.HasSuffix(made.text("startUrl"), "/api/v2/auth/sso/"+id+"/start") {
			t.Errorf("the addresses are %s and %s", made.text("callbackUrl"), made.text("startUrl"))
		}
		if !strings.HasSuffix(made.text("jwksUrl"), "/api/v2/auth/sso/"+id+"/jwks") {
			t.Errorf("the keys are at %s", made.text("jwksUrl"))
		}
		path := connectionsPath + "/" + id
		keys := d.send(t, "GET /api/v2/auth/sso/"+id+"/jwks", nil).ok(http.StatusOK)
		if set := keys.at("keys").([]any); len(set) != 1 || set[0].(m)["kty"] != "EC" || set[0].(m)["d"] != nil || keys.header.Get("Cache-Control") != "max-age=300" {
			t.Errorf("the keys are %v, %s", set, keys.header.Get("Cache-Control"))
		}

		d.send(t, "PATCH "+path, m{"issuer": "http://idp.example"}, owner).invalid("/issuer", "invalid")
		d.send(t, "PATCH "+path, m{"issuer": "https://10.0.0.1"}, owner).invalid("/issuer", "address_refused")
		before := d.send(t, "GET "+path, nil, owner).ok(http.StatusOK).header.Get("ETag")
		d.send(t, "PATCH "+path, m{"issuer": provider.Issuer(), "clientId": "doorward", "clientAuth": "secret_basic"}, owner, with("If-Match", before)).ok(http.StatusOK).
			is("connection.issuer", provider.Issuer()).is("ended.sessions", 0.0)
		d.send(t, "PATCH "+path, m{"name": "x"}, owner, with("If-Match", before)).fails(http.StatusPreconditionFailed, "precondition_failed")
		secret := d.send(t, "POST "+path+"/secrets", m{"clientSecret": "the client's own secret", "expiresAt": d.clock.now().Add(1000 * time.Hour)}, owner).ok(http.StatusCreated)
		secret.is("hint", "cret").members("", "id", "hint", "createdAt", "expiresAt")
		if strings.Contains(string(secret.body), "own secret") {
			t.Error("the answer has the secret")
		}

		d.send(t, "PATCH "+path, m{"status": "active"}, owner).fails(http.StatusConflict, "connection_not_tested")
		d.markTested(t, id)
		d.send(t, "PATCH "+path, m{"status": "active"}, owner).ok(http.StatusOK).is("connection.status", "active")
		d.send(t, "POST "+path+"/switch", nil, owner).fails(http.StatusConflict, "nothing_pending")
		d.send(t, "PATCH "+path, m{"issuer": next.Issuer()}, owner).ok(http.StatusOK).is("connection.issuer", provider.Issuer()).is("connection.pending.issuer", next.Issuer())
		d.send(t, "POST "+path+"/switch", nil, owner).fails(http.StatusConflict, "connection_not_tested")
		d.markTested(t, id)
		d.send(t, "POST "+path+"/switch", m{"dryRun": true}, owner).ok(http.StatusOK).is("connection.issuer", next.Issuer())
		d.send(t, "GET "+path, nil, owner).ok(http.StatusOK).is("issuer", provider.Issuer())
		d.send(t, "POST "+path+"/switch", nil, owner).ok(http.StatusOK).is("connection.issuer", next.Issuer())
		d.send(t, "PATCH "+path, m{"emailFrom": "upn"}, owner).ok(http.StatusOK)
		d.send(t, "DELETE "+path+"/pending", nil, owner).ok(http.StatusNoContent)
		d.send(t, "DELETE "+path+"/pending", nil, owner).fails(http.StatusConflict, "nothing_pending")

		for _, request := range []string{"GET " + path, "DELETE " + path, "GET " + path + "/attempts", "GET " + path + "/identities", "GET " + path + "/tests/tst_x", "DELETE " + path + "/pending"} {
			d.send(t, request, nil, other).fails(http.StatusNotFound, "not_found")
		}
		d.send(t, "GET "+connectionsPath, nil, owner).ok(http.StatusOK).is("total", 1.0)
		d.send(t, "GET "+connectionsPath, nil, other).ok(http.StatusOK).is("total", 0.0)
		d.send(t, "GET "+path+"/attempts", nil, owner).ok(http.StatusOK)
		d.send(t, "DELETE "+path+"?dryrun=true", nil, owner).fails(http.StatusBadRequest, "invalid_query")
		d.send(t, "PATCH "+path+"?dryRun=true", m{"status": "disabled"}, owner).ok(http.StatusOK).is("connection.status", "disabled")
		d.send(t, "DELETE "+path+"?dryRun=true", nil, owner).ok(http.StatusOK).is("managed", 0.0)
		d.send(t, "PATCH "+path, m{"status": "disabled"}, owner).ok(http.StatusOK).is("connection.status", "disabled").is("ended.sessions", 0.0)
		d.send(t, "DELETE "+path+"/secrets/"+secret.text("id"), nil, owner).ok(http.StatusNoContent)
		d.send(t, "DELETE "+path+"/secrets/"+secret.text("id"), nil, owner).fails(http.StatusNotFound, "not_found")
		d.send(t, "DELETE "+path, nil, owner).ok(http.StatusOK).is("ended.sessions", 0.0)
		d.send(t, "GET "+path, nil, owner).fails(http.StatusNotFound, "not_found")
		d.send(t, "GET /api/v2/auth/sso/"+id+"/jwks", nil).fails(http.StatusNotFound, "not_found")
	}, masterKey(t), withProviders())
}

// What is wrong with a connection as typed is a fault of its field.
func TestFaultsOfConnections(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		send := func(body m) answer {
			all := m{"type": "oidc", "name": "x"}
			for name, value := range body {
				all[name] = value
			}
			return d.send(t, "POST "+connectionsPath, all, owner)
		}
		send(m{"type": "ldap"}).invalid("/type", "invalid")
		send(m{"name": ""}).invalid("/name", "required")
		send(m{"product": "acme"}).invalid("/product", "invalid")
		send(m{"clientAuth": "none"}).invalid("/clientAuth", "invalid")
		send(m{"clientId": " x"}).invalid("/clientId", "invalid")
		send(m{"jit": "all"}).invalid("/jit", "invalid")
		send(m{"jitRole": "OWNER"}).invalid("/jitRole", "out_of_range")
		send(m{"mappings": []m{{"group": "a", "role": "USER"}, {"group": "a", "role": "ADMIN"}}}).invalid("/mappings/1/group", "taken")
		send(m{"mappings": []m{{"group": "", "role": "USER"}}}).invalid("/mappings/0/group", "required")
		send(m{"factorAcr": []string{"a b"}}).invalid("/factorAcr/0", "invalid")
		send(m{"emailFrom": strings.Repeat("x", 101)}).invalid("/emailFrom", "invalid")
		send(m{"issuer": "https://login.microsoftonline.com/common/v2.0"}).invalid("/issuer", "multi_tenant_issuer")
		made := send(nil).ok(http.StatusCreated)
		d.send(t, "PATCH "+connectionsPath+"/"+made.text("id"), m{"status": "draft"}, owner).invalid("/status", "invalid")
		d.send(t, "POST "+connectionsPath+"/"+made.text("id")+"/secrets", m{"clientSecret": ""}, owner).invalid("/clientSecret", "required")
	}, masterKey(t))
}

// connectionSteps record the events of a connection.
func (r *recorder) connectionSteps() []step {
	var made, secret answer
	path := func() string { return connectionsPath + "/" + made.text("id") }
	return []step{
		{"a connection", func() {
			made = r.ask("POST "+connectionsPath, m{"type": "oidc", "name": "Okta", "clientId": "doorward"}, r.as(r.owner)).ok(http.StatusCreated)
			r.names[made.text("id")] = "CONNECTION"
		}, []string{`Acme: OWNER done connection.create connection CONNECTION, name "" "Okta", jit "" "off", jitRole "" "USER", mappings "" "", groupsFrom "" "", factorAcr "" "", trustProviderFactor "" "false", ends "" "tenant", endsKeys "" "false", outside "" "invite", emptyByRemove "" "false", issuer "" "", clientId "" "doorward", clientAuth "" "secret_basic", emailFrom "" "email"`}},
		{"a connection by an ADMIN", func() {
			r.ask("POST "+connectionsPath, m{"type": "oidc", "name": "Okta"}, r.as(r.ann)).fails(http.StatusForbidden, "forbidden")
		}, []string{`Acme: ann refused connection.create tenant Acme, reason "" "forbidden"`}},
		{"a client secret", func() {
			secret = r.ask("POST "+path()+"/secrets", m{"clientSecret": r.secret("client's own")}, r.as(r.owner)).ok(http.StatusCreated)
		}, []string{`Acme: OWNER done connection.secret connection CONNECTION, clientSecret "" "` + hintOf(r.secret("client's own")) + `"`}},
		{"a change of a connection", func() {
			r.ask("PATCH "+path(), m{"name": "Keycloak", "emailFrom": "upn"}, r.as(r.owner)).ok(http.StatusOK)
		}, []string{`Acme: OWNER done connection.update connection CONNECTION, name "Okta" "Keycloak", emailFrom "email" "upn"`}},
		{"a set-up link", func() {
			r.secrets = append(r.secrets, tokenOf(r.ask("POST "+path()+"/setup-link", nil, r.as(r.owner)).ok(http.StatusCreated)))
		}, []string{`Acme: OWNER done connection.setup_link connection CONNECTION, setupLink "" "stl", endsAt "" "TIME"`}},
		{"another set-up link", func() {
			r.secrets = append(r.secrets, tokenOf(r.ask("POST "+path()+"/setup-link", m{"days": 1}, r.as(r.owner)).ok(http.StatusCreated)))
		}, []string{`Acme: OWNER done connection.setup_link connection CONNECTION, setupLink "stl" "stl", endsAt "" "TIME"`}},
		{"the end of a set-up link", func() {
			r.ask("DELETE "+path()+"/setup-link", nil, r.as(r.owner)).ok(http.StatusNoContent)
		}, []string{`Acme: OWNER done connection.setup_link connection CONNECTION, setupLink "stl" ""`}},
		{"the end of a client secret", func() {
			r.ask("DELETE "+path()+"/secrets/"+secret.text("id"), nil, r.as(r.owner)).ok(http.StatusNoContent)
		}, []string{`Acme: OWNER done connection.secret connection CONNECTION, clientSecret "` + hintOf(r.secret("client's own")) + `" ""`}},
		{"a connection enabled and disabled", func() {
			r.server.markTested(r.t, made.text("id"))
			r.ask("PATCH "+path(), m{"status": "active"}, r.as(r.owner)).ok(http.StatusOK)
			r.ask("PATCH "+path(), m{"status": "disabled"}, r.as(r.owner)).ok(http.StatusOK)
		}, []string{
			`Acme: OWNER done connection.enable connection CONNECTION, status "draft" "active"`,
			`Acme: OWNER done connection.disable connection CONNECTION, status "active" "disabled"`,
		}},
		{"a connection deleted", func() {
			r.ask("DELETE "+path(), nil, r.as(r.owner)).ok(http.StatusOK)
		}, []string{`Acme: OWNER done connection.delete connection CONNECTION, name "Keycloak" ""`}},
	}
}

// secret returns a client secret that no event may have.
func (r *recorder) secret(text string) string {
	text = "a secret that is the " + text
	r.secrets = append(r.secrets, text)
	return text
}

// tokenOf returns the token of a set-up link.
func tokenOf(made answer) string {
	made.t.Helper()
	_, token, found := strings.Cut(made.text("url"), "/setup#token=")
	if !found {
		made.t.Fatalf("%s is no set-up link", made.text("url"))
	}
	return token
}

func hintOf(secret string) string { return secret[len(secret)-4:] }
