package console

import (
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// samlSamples are the pages of connections by SAML.
func samlSamples() []uitest.Sample {
	draft := func(p doorward.Product) ui.View {
		return sampledSAMLPage(sampledSAML(p, doorward.ConnectionDraft), "setup")
	}
	entities := draft(doorward.OtherProduct)
	body, _ := entities.Body.(connectionPage)
	body.SAML.MetadataURL, body.SAML.Entities = "https://federation.example/metadata.xml", []string{"https://idp.acme.example/saml/" + strings.Repeat("a-long-name/", 10), "https://idp.globex.example/saml"}
	entities.Body = body
	wrong := draft(doorward.Google)
	body, _ = wrong.Body.(connectionPage)
	body.SAML.Metadata = "<EntityDescriptor>\n</EntityDescriptor>"
	wrong.Body = body
	unsigned := sampledSAML(doorward.Keycloak, doorward.ConnectionDraft)
	unsigned.Provider = sampledMetadata(1200)
	unsigned.InForce.Issuer, unsigned.InForce.MetadataURL = unsigned.Provider.EntityID, "https://keycloak.example/realms/acme/protocol/saml/descriptor"
	active, ended := sampledSAML(doorward.Okta, doorward.ConnectionActive), sampledSAML(doorward.Google, doorward.ConnectionActive)
	ended.InForce.MetadataURL, ended.InForce.RemovedCertificates, ended.Pending = "", []string{"ab"}, nil
	ended.Provider.Certificates = ended.Provider.Certificates[:1]
	ended.now = noon.AddDate(0, 0, 13)
	read := noon.Add(-20 * time.Hour)
	failing := sampledSAMLPage(active, "certificates")
	body, _ = failing.Body.(connectionPage)
	body.ReadAt, body.Reading = &read, &ui.Attempt{Type: doorward.SAML, Product: doorward.Okta, Attempt: doorward.Attempt{
		Kind: doorward.AttemptMetadata, Outcome: doorward.AttemptUnavailable, At: noon.Add(-time.Hour), Check: "metadata", Seen: "502 Bad Gateway", Advice: "retry", Count: 3, RequestIDs: []string{"req_5tqm7x3yh4n6rj7wd2c5tpae7k"},
	}}
	failing.Body = body
	take := connectionQuestion{pageData: basePage, Connection: active, Act: "certificate", Of: strings.Repeat("0a", 32), Part: "0A:1B:2C:3D:4E:5F:60:71…", Danger: true, Back: connectionPath + "/con_saml?tab=certificates"}
	back := take
	back.Act, back.Of, back.Part, back.Danger = "certificates-back", "", "", false
	return []uitest.Sample{
		{Name: "saml", View: sampledSAMLPage(active, "setup"), Frame: owner},
		{Name: "saml-draft", View: draft(doorward.Entra), Frame: owner},
		{Name: "saml-unsigned", View: sampledSAMLPage(unsigned, "setup"), Frame: owner},
		{Name: "saml-onelogin", View: draft(doorward.OneLogin), Frame: owner},
		{Name: "saml-entities", View: entities, Frame: refusedWith("entityId.required")},
		{Name: "saml-refused", View: wrong, Frame: refusedWith("metadata.invalid")},
		{Name: "saml-certificates", View: failing, Frame: owner},
		{Name: "saml-certificates-ended", View: sampledSAMLPage(ended, "certificates"), Frame: owner},
		{Name: "saml-certificates-none", View: sampledSAMLPage(sampledSAML(doorward.Okta, doorward.ConnectionDraft), "certificates"), Frame: owner},
		{Name: "saml-access", View: sampledSAMLPage(active, "access"), Frame: owner},
		{Name: "saml-test-missing", View: sampledSAMLPage(sampledSAML(doorward.Okta, doorward.ConnectionDraft), "test"), Frame: owner},
		{Name: "saml-test-failed", View: sampledSAMLTest(doorward.TestFailed), Frame: owner},
		{Name: "saml-test-waiting", View: sampledSAMLTest(doorward.TestWaiting), Frame: owner},
		{Name: "connectionact-certificate", View: ui.View{Page: "connectionact", Title: "sso.certificate.title", Body: take}, Frame: owner},
		{Name: "connectionact-certificates-back", View: ui.View{Page: "connectionact", Title: "sso.certificates-back.title", Body: back}, Frame: owner},
	}
}

// sampledMetadata are a provider's, with a certificate that ends in n days and one that ends later.
func sampledMetadata(days int) metadata.Provider {
	certificate := func(pair string, until time.Time) metadata.Certificate {
		return metadata.Certificate{Fingerprint: strings.Repeat(pair, 32), From: until.AddDate(-10, 0, 0), Until: until}
	}
	return metadata.Provider{
		EntityID: "http://www.okta.com/exk1fxpq9bTVQnJbE5d7", SSOURL: "https://acme.okta.com/app/acme_doorward_1/exk1fxpq9bTVQnJbE5d7/sso/saml", WantsSigned: true,
		Certificates: []metadata.Certificate{certificate("0a", noon.AddDate(0, 0, days)), certificate("f7", noon.AddDate(0, 0, days+16))},
	}
}

// sampledSAML is a connection by SAML: an active one has a change that waits.
func sampledSAML(p doorward.Product, status doorward.ConnectionStatus) provider {
	used := noon.Add(-time.Hour)
	one := provider{connection.Shown{Connection: doorward.Connection{
		ID: "con_saml", TenantID: acme.ID, Type: doorward.SAML, Product: p, Name: "Acme SAML", Status: status, CreatedAt: noon.AddDate(0, -2, 0), JIT: doorward.JITDomains, JITRole: doorward.RoleUser,
		Ends: doorward.EndsTenant, InForce: doorward.ConnectionParameters{EmailFrom: "email"},
	}}, noon}
	if status != doorward.ConnectionActive {
		return one
	}
	one.Provider, one.PendingProvider = sampledMetadata(12), sampledMetadata(1200)
	one.InForce = doorward.ConnectionParameters{Issuer: one.Provider.EntityID, MetadataURL: "https://acme.okta.com/app/exk1fxpq9bTVQnJbE5d7/sso/saml/metadata", EmailFrom: "email", TestedAt: &used}
	waiting := one.InForce
	waiting.SubjectFrom, waiting.MetadataURL, waiting.TestedAt = "id", "", nil
	one.LastSignInAt, one.Pending, one.GroupsFrom, one.SignRequests = &used, &waiting, "groups", true
	return one
}

func sampledSAMLPage(p provider, tab string) ui.View {
	const address = "https://auth.acme.example/api/v2/auth/sso/con_6tqm7x3yh4n6rj7wd2c5tpae7k/"
	body := connectionPage{
		pageData: basePage, Connection: p, Guide: ui.Guide{Type: doorward.SAML, Product: p.Product, Start: address + "start", ACS: address + "acs", EntityID: address + "metadata"},
		SAML: ui.StoredSAML(p.Connection), Roles: highestFirst(nil)[1:], Domains: []string{"acme.example"},
		Tabs: onTab(tab, "setup", "certificates", "test", "access", "identities", "directory", "protocol", "activity"),
	}
	return ui.View{Page: "connection", Title: "sso.title", Body: body, Wide: true, Scripts: []string{"secret.js"}}
}

func sampledSAMLTest(status doorward.TestStatus) ui.View {
	v := sampledSAMLPage(sampledSAML(doorward.Okta, doorward.ConnectionActive), "test")
	body, _ := v.Body.(connectionPage)
	begun := noon.Add(-time.Hour)
	edited, isPending := body.Connection.ToTest()
	test := doorward.ConnectionTest{ID: "tst_1", Status: status, Pending: isPending, Fingerprint: edited.Fingerprint(), CreatedAt: begun}
	if status == doorward.TestFailed {
		test.BegunAt, test.EndedAt = &begun, &begun
		test.Checks = []doorward.TestCheck{
			{Name: "state", OK: true},
			{Name: "signature", OK: true},
			{Name: "audience", Seen: "https://auth.acme.example/another", Wanted: body.Guide.EntityID, Advice: "audience"},
		}
		body.Claims = readable([]byte(`{"NameID":"ann@acme.example","attributes":{"email":["ann@acme.example"],"groups":["it-admins"]}}`))
	}
	shown := ui.NewTestResult(test, body.Connection.Connection, body.Guide, "")
	if shown.Waits() {
		shown.URL = body.Guide.Start + "?test=tst_1"
	}
	body.Test = &shown
	v.Body = body
	return v
}
