package samlsp

import (
	"encoding/base64"
	"errors"
	"net/url"

	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/metadata"
)

// Package saml has no other way to say how old an assertion may be; of itself it allows for 90 s. Its skew of clocks is
// this package's: TestAttacks has responses at both limits.
func init() { saml.MaxIssueDelay = IssuedMax }

// second has package saml judge the response, too: an error of this package's own reading then opens nothing. It has to
// find the same assertion with the same NameID.
func (j *judge) second(a Asserted) *fault.Fault {
	acs, err := url.Parse(j.ACSURL)
	if err != nil {
		return &fault.Fault{Check: fault.CheckRecipient, Err: errors.New("samlsp: the acs address is none")}
	}
	entity, err := url.Parse(j.EntityID)
	if err != nil {
		return &fault.Fault{Check: fault.CheckAudience, Err: errors.New("samlsp: our entityID is no address")}
	}
	provider := saml.ServiceProvider{
		EntityID: j.EntityID, MetadataURL: *entity, AcsURL: *acs, IDPMetadata: forLibrary(j.Provider),
		Clock: dsig.NewFakeClockAt(j.now), IgnoreCertificateExpiry: true, RejectSHA1Signatures: true,
		RejectUnknownConditions: true, RequireSignedResponseForCBC: true,
	}
	if j.Decrypt != nil {
		provider.EncryptionKey = j.Decrypt.private
	}
	read, err := provider.ParseXMLResponse(j.asked.text, []string{j.asked.RequestID}, *acs)
	if err != nil {
		return disagreement(err)
	}
	nameID := dom.Text(dom.Only(dom.Only(j.assertion, dom.Assertion, "Subject"), dom.Assertion, "NameID"))
	if read.ID != a.AssertionID || read.Subject == nil || read.Subject.NameID == nil || dom.Trim(read.Subject.NameID.Value) != nameID {
		return disagreement(errors.New("another subject"))
	}
	return nil
}

func disagreement(err error) *fault.Fault {
	f := fault.Structure("a response that two readers don't read alike")
	if refused, is := errors.AsType[*saml.InvalidResponseError](err); is && refused.PrivateErr != nil {
		err = refused.PrivateErr // its own text says nothing, and it has the whole response
	}
	f.Err = errors.New(fault.Clip(err.Error()))
	return f
}

// forLibrary returns the metadata in the form of package saml.
func forLibrary(p metadata.Provider) *saml.EntityDescriptor {
	var keys []saml.KeyDescriptor
	for _, certificate := range p.Certificates {
		keys = append(keys, saml.KeyDescriptor{Use: "signing", KeyInfo: saml.KeyInfo{X509Data: saml.X509Data{
			X509Certificates: []saml.X509Certificate{{Data: base64.StdEncoding.EncodeToString(certificate.DER)}},
		}}})
	}
	role := saml.IDPSSODescriptor{}
	role.KeyDescriptors = keys
	return &saml.EntityDescriptor{EntityID: p.EntityID, IDPSSODescriptors: []saml.IDPSSODescriptor{role}}
}
