package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/app/apptest"
)

// A connection by SAML is made of metadata at an address or of a text, shows what to copy to the provider, loses a
// certificate, and is refreshed. Our own metadata are anybody's.
func TestSAMLConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		owner, other := as(acme.Owner.Token()), as(zeta.Owner.Token())
		far := d.clock.now().AddDate(1, 0, 0)
		a, b := apptest.SAMLCertificate(far), apptest.SAMLCertificate(far)
		one, another := apptest.SAMLMetadata("https://idp.example", a, b), apptest.SAMLMetadata("https://other.example", a)
		server := apptest.NewMetadataServer(t, apptest.SAMLFederation(one, another))
		make := func(members m) answer {
			members["type"], members["name"] = "saml", "Acme's SAML"
			return d.send(t, "POST "+connectionsPath, members, owner)
		}
		refused := make(m{"metadataUrl": server.Address()}).invalid("/entityId", "required")
		if all := element(refused.at("errors"), 0)["entities"].([]any); len(all) != 2 || all[0] != "https://idp.example" {
			t.Errorf("the entities are %v", all)
		}
		make(m{"metadataUrl": "https://10.0.0.1/metadata"}).invalid("/metadataUrl", "address_refused")
		make(m{"metadata": "<!DOCTYPE x>" + one}).invalid("/metadata", "doctype")
		make(m{"metadata": strings.Repeat(" ", 300<<10) + one}).invalid("/metadata", "too_large")
		make(m{"metadata": strings.Repeat(" ", 600<<10)}).fails(http.StatusRequestEntityTooLarge, "body_too_large")
		make(m{"issuer": "https://idp.example"}).invalid("/issuer", "invalid")
		draft := make(m{}).ok(http.StatusCreated)
		draft.is("entityId", nil)

		made := make(m{"metadataUrl": server.Address(), "entityId": "https://idp.example", "subjectFrom": "uid"}).ok(http.StatusCreated)
		id := made.text("id")
		ours := d.URL + "/api/v2/auth/sso/" + id
		made.is("entityId", "https://idp.example").is("ssoUrl", "https://idp.example/sso").is("metadataUrl", server.Address()).is("subjectFrom", "uid").
			is("signRequests", false).is("encrypt", false).is("emailFrom", "email").is("status", "draft").
			is("spEntityId", ours+"/metadata").is("spMetadataUrl", ours+"/metadata").is("acsUrl", ours+"/acs").is("startUrl", ours+"/start").
			is("issuer", nil).is("clientAuth", nil).is("jwksUrl", nil).is("revokeUrl", nil)
		path := connectionsPath + "/" + id
		first := element(made.at("certificates"), 0)["fingerprint"].(string)

		d.send(t, "PATCH "+path, m{"certificates": []string{}}, owner).fails(http.StatusConflict, "certificate_needed")
		d.send(t, "PATCH "+path, m{"certificates": []string{"00"}}, owner).invalid("/certificates/0", "invalid")
		edited := d.send(t, "PATCH "+path, m{"certificates": []string{first}, "signRequests": true}, owner).ok(http.StatusOK)
		edited.is("connection.signRequests", true)
		if all := edited.at("connection.certificates").([]any); len(all) != 1 || element(all, 0)["fingerprint"] != first {
			t.Errorf("the certificates are %v", all)
		}
		d.send(t, "POST "+path+"/refresh", nil, owner).ok(http.StatusOK)
		server.Say(http.StatusNotFound, "")
		d.send(t, "POST "+path+"/refresh", nil, owner).fails(http.StatusServiceUnavailable, "provider_unavailable")
		server.Say(http.StatusOK, another)
		d.send(t, "POST "+path+"/refresh", nil, owner).invalid("/entityId", "unknown_entity")
		d.send(t, "POST "+path+"/refresh", nil, other).fails(http.StatusNotFound, "not_found")
		d.send(t, "POST "+connectionsPath+"/"+draft.text("id")+"/refresh", nil, owner).invalid("/metadataUrl", "required")
		d.send(t, "POST "+path+"/secrets", m{"clientSecret": "a secret"}, owner).invalid("/clientSecret", "invalid")
		entry := d.send(t, "GET "+path+"/attempts", nil, owner).ok(http.StatusOK)
		if last := element(entry.at("items"), 0); last["kind"] != "metadata" || last["outcome"] != "unavailable" || last["requestId"] == nil {
			t.Errorf("the protocol has %v", last)
		}

		metadata := d.send(t, "GET /api/v2/auth/sso/"+id+"/metadata", nil).ok(http.StatusOK)
		if text := string(metadata.body); metadata.header.Get("Content-Type") != "application/samlmetadata+xml" || !strings.Contains(text, `entityID="`+ours+`/metadata"`) ||
			!strings.Contains(text, ours+"/acs") || strings.Count(text, "<md:KeyDescriptor") != 1 {
			t.Errorf("our metadata are %s %s", metadata.header.Get("Content-Type"), text)
		}
		oidc := d.send(t, "POST "+connectionsPath, m{"type": "oidc", "name": "Okta"}, owner).ok(http.StatusCreated)
		d.send(t, "GET /api/v2/auth/sso/"+oidc.text("id")+"/metadata", nil).fails(http.StatusNotFound, "not_found")

		d.markTested(t, id)
		d.send(t, "PATCH "+path, m{"status": "active"}, owner).ok(http.StatusOK)
		d.send(t, "PATCH "+path, m{"metadata": another}, owner).ok(http.StatusOK).is("connection.entityId", "https://idp.example").
			is("connection.pending.entityId", "https://other.example").is("connection.pending.ssoUrl", "https://idp.example/sso").is("connection.pending.metadataUrl", nil)
		// Pending alone is a certificate that is then taken away.
		both := make(m{"metadata": one}).ok(http.StatusCreated)
		at := connectionsPath + "/" + both.text("id")
		d.markTested(t, both.text("id"))
		d.send(t, "PATCH "+at, m{"status": "active"}, owner).ok(http.StatusOK)
		d.send(t, "PATCH "+at, m{"metadata": apptest.SAMLMetadata("https://idp.example", a)}, owner).ok(http.StatusOK)
		d.markTested(t, both.text("id"))
		left := element(both.at("certificates"), 1)["fingerprint"]
		d.send(t, "PATCH "+at, m{"certificates": []any{left}}, owner).ok(http.StatusOK)
		d.send(t, "POST "+at+"/switch", nil, owner).fails(http.StatusConflict, "certificate_needed")
		d.send(t, "POST /api/v2/auth/sso/"+id+"/revoke", m{"sub_id": m{"format": "email", "email": "ann@acme.example"}}, with("Authorization", "Bearer x")).fails(http.StatusNotFound, "not_found")
	}, masterKey(t), withProviders())
}

// element returns an object in a list.
func element(list any, i int) m { return list.([]any)[i].(m) }
