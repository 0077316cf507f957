package hosted

import (
	"fmt"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// setupSamples are the pages of set-up links.
func setupSamples() []uitest.Sample {
	begun := setupInvitation{Link: sampledLink(), Connection: sampledSetup(doorward.Okta, doorward.ConnectionDraft).Connection.Connection, Token: token}
	other := begun
	other.Other = "Globex Entra"
	goOn := askCode("setup")
	form, _ := goOn.Body.(codeForm)
	form.GoOn, form.Label = "/setup/provider", "setup.token"
	goOn.Body = form
	refused := ui.Frame{Posted: true, Alert: true, Faults: map[string]string{"issuer": "The provider calls itself by another issuer. Copy it exactly, with or without the slash at its end.", "clientSecret": "Copy the secret from the provider."}}
	unproved := ui.Frame{Posted: true, Alert: true, Fault: "The record was not found."}
	saved := func(v ui.View) ui.View {
		v.Done = "done.setup-saved"
		return v
	}
	all := []uitest.Sample{
		{Name: "setup-code", View: goOn},
		{Name: "setup", View: ui.View{Page: "setup", Tenant: withWordmark, Body: begun}},
		{Name: "setup-other", View: ui.View{Page: "setup", Tenant: withSymbol, Body: other}},
		{Name: "setupprovider-refused", View: sampledProvider(doorward.OtherProduct, doorward.ConnectionDraft), Frame: refused},
		{Name: "setupprovider-active", View: sampledProvider(doorward.Entra, doorward.ConnectionActive)},
		{Name: "setupdomains", View: saved(sampledSetupDomains(false))},
		{Name: "setupdomains-unproved", View: sampledSetupDomains(true), Frame: unproved},
		{Name: "setupdomains-none", View: noSetupDomains()},
		{Name: "setuptest-idle", View: idleSetup()},
		{Name: "setuptest", View: sampledSetupTest("")},
		{Name: "setuptest-missing", View: missingSetupTest()},
		{Name: "setuptest-waiting", View: sampledSetupTest(doorward.TestWaiting)},
		{Name: "setuptest-passed", View: sampledSetupTest(doorward.TestPassed)},
		{Name: "setuptest-failed", View: sampledSetupTest(doorward.TestFailed)},
		{Name: "setuptest-unanswered", View: unansweredSetupTest()},
		{Name: "setupdirectory", View: sampledSetupDirectory(doorward.Okta, false)},
		{Name: "setupdirectory-made", View: sampledSetupDirectory(doorward.JumpCloud, true)},
		{Name: "setupdirectory-entra", View: sampledSetupDirectory(doorward.Entra, false)},
		{Name: "setupprotocol", View: sampledSetupProtocol()},
		{Name: "setupprotocol-none", View: noSetupProtocol()},
	}
	all = append(all, samlSetupSamples()...)
	for _, p := range doorward.Products {
		all = append(all, uitest.Sample{Name: "setupprovider-" + string(p), View: sampledProvider(p, doorward.ConnectionDraft)})
	}
	return all
}

func sampledLink() doorward.SetupLink {
	return doorward.SetupLink{ID: "stl_1", TenantID: "tnt_acme", ConnectionID: "con_1", MakerEmail: acme.Email, TenantName: "Acme", CreatedAt: noon, EndsAt: noon.AddDate(0, 0, 7)}
}

// sampledSetup is a set-up of a connection to the product; an active one has a change that waits.
func sampledSetup(p doorward.Product, status doorward.ConnectionStatus) setupStep {
	s := setupStep{Link: sampledLink(), Tenant: withWordmark, Domains: sampledDomains()}
	s.Connection.Connection = doorward.Connection{
		ID: "con_1", TenantID: "tnt_acme", Name: "Acme ID", Product: p, Status: status,
		InForce: doorward.ConnectionParameters{ClientAuth: p.DefaultClientAuth(), EmailFrom: "email"},
	}
	if status == doorward.ConnectionActive {
		tested, soon := noon.Add(-time.Hour), noon.AddDate(0, 0, 12)
		s.Connection.InForce.Issuer, s.Connection.InForce.ClientID, s.Connection.InForce.TestedAt = "https://login.microsoftonline.com/8f0d2c1e-6a57-4f0e-9a33-2f5a1c9d7e10/v2.0", "0oa1b2c3d4e5F6g7H8i9", &tested
		s.Connection.Pending = &s.Connection.InForce
		s.Connection.Secrets = []doorward.ConnectionSecret{{ID: "ccs_1", Hint: "9xQ2", CreatedAt: tested, ExpiresAt: &soon}, {ID: "ccs_2", Hint: "Ab3f", CreatedAt: tested, ExpiresAt: &tested}}
	}
	return s
}

func sampledDomains() (all []doorward.Domain) {
	for n, status := range []doorward.DomainStatus{doorward.DomainVerified, doorward.DomainPending, doorward.DomainLapsed} {
		name := []string{"acme.example", "xn--bcher-kva.example", strings.Repeat("a-long-name.", 8) + "example"}[n]
		all = append(all, doorward.Domain{ID: fmt.Sprint("dom_", n), TenantID: "tnt_acme", ConnectionID: "con_1", Name: name, Status: status, Token: "k5xr2m7tq4wd6yh3n5j7pae2c9", CreatedAt: noon})
	}
	return all
}

// onStep is the page of the step, with its tabs.
func onStep(s setupStep, name string, body func(setupStep) any) ui.View {
	s.Tabs.Items = s.tabs("")
	v := s.view(name)
	v.Body = body(s)
	if name == "test" {
		v.Scripts = copyScript
	}
	return v
}

func sampledProvider(p doorward.Product, status doorward.ConnectionStatus) ui.View {
	v := onStep(sampledSetup(p, status), "provider", func(s setupStep) any {
		edited, _ := s.Connection.ToTest()
		body := setupProvider{setupStep: s, Form: ui.StoredParameters(edited), Version: "v", now: noon, Guide: sampledGuide(s)}
		if body.UsesKeys() {
			body.Guide.KeysURL, body.Keys = setupAddress+"jwks", []ui.PublishedKey{{ID: "jN3w1p0mQk2r7t", Alg: "ES256"}, {ID: "b8Xc5s9vLz4y6u", Alg: "ES256"}}
		}
		return body
	})
	v.Scripts = copyScript
	return v
}

// sampledSetupDirectory is the step of a directory alone that has just been given a secret, or else of a connection by which
// people sign in, too.
func sampledSetupDirectory(p doorward.Product, made bool) ui.View {
	used, ended := noon.Add(-time.Minute), noon.Add(-time.Hour)
	s := sampledSetup(p, doorward.ConnectionDraft)
	s.Connection.Type = doorward.OpenIDConnect
	last := doorward.Attempt{
		Kind: doorward.AttemptSCIM, Outcome: doorward.AttemptRefused, At: used, Count: 3, Check: "draft", Advice: "scim_draft", RequestIDs: []string{"req_5tqm7x3yh4n6rj7wd2c5tpae7k"},
		Seen: "POST /Users (active, displayName, emails, externalId, name, schemas, userName) → 403 The connection is a draft: its directory changes nothing. An OWNER enables the connection.",
	}
	s.Connection.SCIM = []doorward.SCIMSecret{{ID: "scs_1", Hint: "dwc_w0eB…g3VC", CreatedAt: used, LastUsedAt: &used}, {ID: "scs_2", Hint: "dwc_QLZV…h90D", CreatedAt: ended, ExpiresAt: &ended}}
	if made {
		s.Connection.Type, last = doorward.SCIMDirectory, doorward.Attempt{}
		s.Connection.SCIM = []doorward.SCIMSecret{{ID: "scs_1", Hint: "dwc_w0eB…g3VC", CreatedAt: noon}}
	}
	v := onStep(s, "directory", func(s setupStep) any {
		body := setupDirectory{
			setupStep: s, Directory: ui.DirectoryGuide{Product: p, URL: "https://auth.acme.example/scim/v2"}, now: noon,
			State: ui.NewDirectoryState(s.Connection.Connection, s.Connection.SCIM, last, s.Link.MakerEmail),
		}
		if made {
			body.Made = "dwc_3f8h2k9qm4x7yh4n6rj7wd2c5tpae7kb6m"
		}
		return body
	})
	v.Scripts = copyScript
	return v
}

// sampledSetupDomains has a domain whose record has just not been found, if unproved, else one whose record is
// open.
func sampledSetupDomains(unproved bool) ui.View {
	v := onStep(sampledSetup(doorward.Okta, doorward.ConnectionDraft), "domains", func(s setupStep) any {
		body := setupDomains{setupStep: s}
		if !unproved {
			body.Next = "/setup/domains?page=2"
		}
		for n, d := range s.Domains {
			one := setupDomain{Domain: d, Record: ui.RecordOf(d), IsOpen: n == 1}
			if n == 1 && unproved {
				one.Looked, one.Seen = true, []string{"v=spf1 include:_spf.acme.example ~all", "doorward-verification=…another token"}
			}
			body.Shown = append(body.Shown, one)
		}
		return body
	})
	v.Scripts = copyScript
	return v
}

func noSetupDomains() ui.View {
	s := sampledSetup(doorward.Okta, doorward.ConnectionDraft)
	s.Domains = nil
	return onStep(s, "domains", func(s setupStep) any { return setupDomains{setupStep: s} })
}

func missingSetupTest() ui.View {
	s := sampledSetup(doorward.Entra, doorward.ConnectionDraft)
	return onStep(s, "test", func(s setupStep) any { return setupTest{setupStep: s} })
}

// setupAddress is the beginning of the addresses of the connection.
const setupAddress = "https://auth.acme.example/api/v2/auth/sso/con_6tqm7x3yh4n6rj7wd2c5tpae7k/"

func sampledGuide(s setupStep) ui.Guide {
	c := s.Connection
	return ui.Guide{Type: c.Type, Product: c.Product, Callback: setupAddress + "callback", Start: setupAddress + "start", ACS: setupAddress + "acs", EntityID: setupAddress + "metadata"}
}

// sampledTest is a test of what the connection has now, which was begun an hour ago.
func sampledTest(s setupStep, status doorward.TestStatus, checks []doorward.TestCheck) doorward.ConnectionTest {
	edited, isPending := s.Connection.ToTest()
	begun := noon.Add(-time.Hour)
	test := doorward.ConnectionTest{ID: "tst_1", Status: status, Checks: checks, Pending: isPending, Fingerprint: edited.Fingerprint(), CreatedAt: begun, BegunAt: &begun}
	if status != doorward.TestWaiting && checks[len(checks)-1].Name != "callback" {
		test.EndedAt = &begun
	}
	return test
}

func sampledSetupTest(status doorward.TestStatus) ui.View {
	s := sampledSetup(doorward.Entra, doorward.ConnectionActive)
	if status != doorward.TestPassed {
		untested := *s.Connection.Pending
		untested.TestedAt = nil
		s.Connection.Pending = &untested
	}
	checks := []doorward.TestCheck{{Name: "state", OK: true}, {Name: "client", OK: true}, {Name: "iss", OK: true}}
	switch status {
	case doorward.TestPassed:
		checks = append(checks, doorward.TestCheck{Name: "email", OK: true, Seen: "ann@acme.example", Wanted: "email"}, doorward.TestCheck{Name: "domain", Seen: "acme.example", Advice: "domain"})
	case doorward.TestFailed:
		checks = append(checks[:1], doorward.TestCheck{Name: "client", Seen: "invalid_client", Advice: "client_secret"})
	}
	return onStep(s, "test", func(s setupStep) any {
		body := setupTest{setupStep: s}
		if status != "" {
			result := ui.NewTestResult(sampledTest(s, status, checks), s.Connection.Connection, sampledGuide(s), s.Link.MakerEmail)
			body.Result = &result
		}
		return body
	})
}

// unansweredSetupTest is a test whose provider hasn't led back in time, and whose connection was changed since.
func unansweredSetupTest() ui.View {
	s := sampledSetup(doorward.Okta, doorward.ConnectionDraft)
	s.Connection.InForce.Issuer, s.Connection.InForce.ClientID = "https://acme.okta.com", "0oa1b2c3d4e5F6g7H8i9"
	return onStep(s, "test", func(s setupStep) any {
		test := sampledTest(s, doorward.TestFailed, []doorward.TestCheck{{Name: "callback", Advice: "redirect_uri"}})
		test.Fingerprint = nil
		result := ui.NewTestResult(test, s.Connection.Connection, sampledGuide(s), s.Link.MakerEmail)
		return setupTest{setupStep: s, Result: &result}
	})
}

// idleSetup is a connection that is active while the policy is off.
func idleSetup() ui.View {
	s := sampledSetup(doorward.Entra, doorward.ConnectionActive)
	s.IsIdle = true
	return onStep(s, "test", func(s setupStep) any { return setupTest{setupStep: s} })
}

func sampledSetupProtocol() ui.View {
	return onStep(sampledSetup(doorward.Okta, doorward.ConnectionDraft), "protocol", func(s setupStep) any {
		body := setupProtocol{setupStep: s, setupPages: setupPages{Prev: "/setup/protocol?page=1", Next: "/setup/protocol?page=3"}}
		for n, a := range []doorward.Attempt{
			{Kind: doorward.AttemptTest, Outcome: doorward.AttemptDone},
			{Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "provider_error", Seen: "access_denied: User is not assigned to the client application.", Advice: "assignment", Count: 7},
			{Kind: doorward.AttemptTest, Outcome: doorward.AttemptRefused, Check: "client", Seen: "invalid_client", Advice: "client_key"},
			{Kind: doorward.AttemptMetadata, Outcome: doorward.AttemptUnavailable, Check: "of_a_newer_version", Advice: "retry"},
			{Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "joining", Advice: "joining"},
		} {
			a.ID, a.At, a.Count, a.RequestIDs = fmt.Sprint("att_", n), noon.Add(-time.Duration(n)*time.Hour), max(a.Count, 1), []string{"req_5tqm7x3yh4n6rj7wd2c5tpae7k", "req_7vkq2m5x3yh4n6rj7wd2c5tpae"}
			body.Attempts = append(body.Attempts, ui.Attempt{Attempt: a, Product: doorward.Okta})
		}
		return body
	})
}

func noSetupProtocol() ui.View {
	return onStep(sampledSetup(doorward.Okta, doorward.ConnectionDraft), "protocol", func(s setupStep) any { return setupProtocol{setupStep: s} })
}
