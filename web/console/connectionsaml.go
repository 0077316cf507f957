package console

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/web/ui"
)

// IsSAML reports whether people sign in by SAML.
func (p provider) IsSAML() bool { return p.Type == doorward.SAML }

// Said is what the metadata say that the form changes and a test tries; nil: nothing is known.
func (p provider) Said() *ui.SAMLProvider {
	said := p.Provider
	if p.Pending != nil {
		said = p.PendingProvider
	}
	if said.EntityID == "" {
		return nil
	}
	return ui.NewSAMLProvider(said, p.now)
}

// Trusted is what the metadata say by which people sign in now; nil: nothing is known.
func (p provider) Trusted() *ui.SAMLProvider {
	if p.Provider.EntityID == "" {
		return nil
	}
	return ui.NewSAMLProvider(p.Provider, p.now)
}

// CertificateEnds is the end of the provider's certificate that ends last, if that is soon or has passed; else nil.
func (p provider) CertificateEnds() *time.Time { return p.Trusted().Ends() }

// HasNoCertificate reports whether all certificates in the provider's metadata were taken away by hand, so that nobody
// is signed in.
func (p provider) HasNoCertificate() bool {
	return p.Provider.EntityID != "" && len(p.Provider.Certificates) == 0
}

// NeedsSigning reports whether the provider wants signed requests, and they aren't.
func (p provider) NeedsSigning() bool {
	said := p.Said()
	return said != nil && said.WantsSigned && !p.SignRequests
}

// ReadsAgain reports whether the metadata that are in force can be read again, since they have an address.
func (p provider) ReadsAgain() bool { return p.InForce.MetadataURL != "" }

// samlDifferences are Differences of a connection of SAML: those alone that the switch changes, since addresses are long.
func samlDifferences(p provider) []difference {
	a, b := p.InForce, p.Pending
	all := []difference{
		{Label: "saml.provider", InForce: a.Issuer, Pending: b.Issuer},
		{Label: "field.metadataUrl", InForce: a.MetadataURL, Pending: b.MetadataURL, Blank: "saml.inMetadata"},
		{Label: "saml.ssoUrl", InForce: p.Provider.SSOURL, Pending: p.PendingProvider.SSOURL},
		{Label: "saml.certificates", InForce: shortPrints(p.Provider), Pending: shortPrints(p.PendingProvider)},
		{Label: "field.subjectFrom", InForce: a.SubjectFrom, Pending: b.SubjectFrom, Blank: "saml.nameid"},
		{Label: "saml.emailFrom", InForce: a.EmailFrom, Pending: b.EmailFrom},
	}
	return slices.DeleteFunc(all, func(d difference) bool { return !d.Differs() })
}

// shortPrints are the beginnings of the fingerprints of the provider's certificates.
func shortPrints(said metadata.Provider) string {
	var all []string
	for _, one := range ui.NewSAMLProvider(said, time.Time{}).Certificates {
		all = append(all, one.Short())
	}
	return strings.Join(all, ", ")
}

// samlConnectionFields are connectionFields of the form of a connection of SAML.
func samlConnectionFields(c *ui.Call, p provider) []editedField {
	e := p.Edited()
	return []editedField{
		textField(c, "name", "field.name", p.Name), textField(c, "metadataUrl", "field.metadataUrl", e.MetadataURL),
		textField(c, "subjectFrom", "field.subjectFrom", e.SubjectFrom), textField(c, "emailFrom", "saml.emailFrom", e.EmailFrom),
		choiceField(c, "signRequests", "saml.sign", "check", checked(p.SignRequests)), choiceField(c, "encrypt", "saml.encrypt", "check", checked(p.Encrypt)),
	}
}

// editSAML saves what a connection of SAML is called, signs people in by, signs and lets be encrypted.
func (h *console) editSAML(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	typed, err := ui.TypedSAML(c, p.Connection)
	if err != nil {
		return ui.View{}, err
	}
	name, signs, encrypts := strings.TrimSpace(c.Value("name")), c.Value("signRequests") != "", c.Value("encrypt") != ""
	change := connection.Change{Versions: version(c), Draft: typed.Draft()}
	change.Name, change.SignRequests, change.Encrypt = &name, &signs, &encrypts
	after, _, err := h.app.Connections.Edit(ctx, c.Caller, p.ID, change)
	return redirectDone(c, connectionPath+"/"+p.ID, savedConnection(after), nil), faultsToFormFields(err)
}

// savedConnection is the message about a connection that was saved, without "done.".
func savedConnection(after connection.Shown) string {
	if after.Pending != nil {
		return "connection-pending"
	}
	return "connection"
}

// refreshConnection reads again what the provider says of itself.
func (h *console) refreshConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	_, err = h.app.Connections.Refresh(ctx, c.Caller, p.ID)
	done := "connection-refresh"
	if !p.IsSAML() {
		done = "connection-reread"
	}
	return redirectDone(c, connectionPath+"/"+p.ID, done, nil), err
}

// fillCertificates reads when the metadata were read, and what the protocol says of the last reading.
func (h *console) fillCertificates(ctx context.Context, c *ui.Call, body *connectionPage) error {
	p := body.Connection
	at, err := h.app.Connections.ReadAt(ctx, c.Caller, p.ID, false)
	if err != nil {
		return err
	}
	if !at.IsZero() {
		body.ReadAt = &at
	}
	last, err := h.app.Connections.LastAttempt(ctx, c.Caller, p.ID, doorward.AttemptMetadata)
	if err == nil && last.Count > 0 && last.Outcome != doorward.AttemptDone {
		body.Reading = &ui.Attempt{Attempt: last, Type: p.Type, Product: p.Product}
	}
	return err
}

// fingerprint is the form of a certificate's fingerprint in paths.
var fingerprint = regexp.MustCompile(`^[0-9a-f]{64}$`)

// takeCertificate takes a certificate of the provider away, at once. Errors: not_found; certificate_needed for the last
// one; precondition_failed if others have changed meanwhile.
func (h *console) takeCertificate(ctx context.Context, c *ui.Call, id, print string) (connection.Ended, error) {
	found, err := h.app.Connections.Connection(ctx, c.Caller, id)
	if err != nil {
		return connection.Ended{}, err
	}
	keep := []string{}
	for _, one := range found.Provider.Certificates {
		keep = append(keep, one.Fingerprint)
	}
	at := slices.Index(keep, print)
	if at < 0 {
		return connection.Ended{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	keep = slices.Delete(keep, at, at+1)
	_, _, err = h.app.Connections.Edit(ctx, c.Caller, id, connection.Change{Draft: connection.Draft{Certificates: &keep}})
	if doorward.HasCode(err, doorward.CodeValidationFailed) { // the provider was read again just now
		err = doorward.Fail(doorward.CodePreconditionFailed, "")
	}
	return connection.Ended{}, err
}

// bringCertificatesBack gives the connection the address of its metadata once more, which brings back what was taken away
// by hand.
func (h *console) bringCertificatesBack(ctx context.Context, c *ui.Call, id string) (connection.Ended, error) {
	found, err := h.app.Connections.Connection(ctx, c.Caller, id)
	if err != nil {
		return connection.Ended{}, err
	}
	edited, _ := found.ToTest()
	_, ended, err := h.app.Connections.Edit(ctx, c.Caller, id, connection.Change{Draft: connection.Draft{MetadataURL: &edited.MetadataURL}})
	return ended, err
}
