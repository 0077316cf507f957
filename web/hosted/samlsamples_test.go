package hosted

import (
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// samlSetupSamples are the pages of set-up links of connections by SAML.
func samlSetupSamples() (all []uitest.Sample) {
	for _, p := range doorward.Products {
		all = append(all, uitest.Sample{Name: "setupsaml-" + string(p), View: sampledSAMLSetup(p, doorward.ConnectionDraft)})
	}
	entities := sampledSAMLSetup(doorward.OtherProduct, doorward.ConnectionDraft)
	body, _ := entities.Body.(setupProvider)
	body.SAML.By, body.SAML.Metadata, body.SAML.Entities = ui.ByText, "<EntitiesDescriptor>\n…", []string{"https://idp.acme.example/saml", "https://idp.globex.example/saml"}
	entities.Body = body
	refused := ui.Frame{Posted: true, Alert: true, Faults: map[string]string{"entityId": "Choose your provider."}}
	unread := ui.Frame{Posted: true, Alert: true, Faults: map[string]string{"metadataUrl": "The address answers 404 Not Found, not with a provider’s document. Look for a mistyped address."}}
	return append(
		all,
		uitest.Sample{Name: "setupsaml-active", View: sampledSAMLSetup(doorward.Okta, doorward.ConnectionActive)},
		uitest.Sample{Name: "setupsaml-entities", View: entities, Frame: refused},
		uitest.Sample{Name: "setupsaml-refused", View: sampledSAMLSetup(doorward.Entra, doorward.ConnectionDraft), Frame: unread},
		uitest.Sample{Name: "setupsaml-test-missing", View: onStep(samlSetup(doorward.Entra, doorward.ConnectionDraft), "test", func(s setupStep) any { return setupTest{setupStep: s} })},
		uitest.Sample{Name: "setupsaml-test-failed", View: sampledSAMLSetupTest(true)},
		uitest.Sample{Name: "setupsaml-test-unanswered", View: sampledSAMLSetupTest(false)},
	)
}

// samlSetup is a set-up of a connection by SAML; an active one has a change that waits.
func samlSetup(p doorward.Product, status doorward.ConnectionStatus) setupStep {
	s := sampledSetup(p, status)
	s.Connection.Type, s.Connection.Secrets, s.Connection.Pending = doorward.SAML, nil, nil
	s.Connection.InForce = doorward.ConnectionParameters{EmailFrom: "email"}
	if status == doorward.ConnectionActive {
		s.Connection.Provider = metadata.Provider{
			EntityID: "http://www.okta.com/exk1fxpq9bTVQnJbE5d7", SSOURL: "https://acme.okta.com/app/acme_doorward_1/exk1fxpq9bTVQnJbE5d7/sso/saml", WantsSigned: true,
			Certificates: []metadata.Certificate{{Fingerprint: strings.Repeat("0a", 32), From: noon.AddDate(-10, 0, 0), Until: noon.Add(-time.Hour)}, {Fingerprint: strings.Repeat("f7", 32), From: noon, Until: noon.AddDate(0, 0, 12)}},
		}
		s.Connection.InForce.Issuer, s.Connection.InForce.MetadataURL = s.Connection.Provider.EntityID, "https://acme.okta.com/app/exk1fxpq9bTVQnJbE5d7/sso/saml/metadata"
	}
	return s
}

func sampledSAMLSetup(p doorward.Product, status doorward.ConnectionStatus) ui.View {
	v := onStep(samlSetup(p, status), "provider", func(s setupStep) any {
		return setupProvider{setupStep: s, SAML: ui.StoredSAML(s.Connection.Connection), Version: "v", now: noon, Guide: sampledGuide(s)}
	})
	v.Scripts = copyScript
	return v
}

func sampledSAMLSetupTest(answered bool) ui.View {
	s := samlSetup(doorward.Okta, doorward.ConnectionActive)
	checks := []doorward.TestCheck{{Name: "callback"}}
	if answered {
		checks = []doorward.TestCheck{{Name: "state", OK: true}, {Name: "recipient", Seen: "https://auth.acme.example/acs", Wanted: setupAddress + "acs", Advice: "acs_address"}}
	}
	return onStep(s, "test", func(s setupStep) any {
		result := ui.NewTestResult(sampledTest(s, doorward.TestFailed, checks), s.Connection.Connection, sampledGuide(s), s.Link.MakerEmail)
		return setupTest{setupStep: s, Result: &result}
	})
}
