// Package samltest is a SAML provider for tests: it answers requests as the specifications say, and can lie in each
// field, and in each byte before and after it signs.
//
//	provider := samltest.New("https://idp.example/saml")
//	request, err := samltest.Read(addressOfStart)
//	answer := provider.Answer(request, time.Now())
//	answer.NameID = "somebody else"
//	form, err := provider.Form(answer)
//
// Its signatures are made by the canonical forms of goxmldsig; the tests of samlsp have them judged by xmlsec1, too.
package samltest

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"strings"
	"time"
)

// Provider is a provider.
type Provider struct {
	EntityID, SSOURL string
	Key              *rsa.PrivateKey
	Certificate      []byte // DER
}

// New makes a provider, with a key of its own. It panics without random bits.
func New(entityID string) *Provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return &Provider{EntityID: entityID, SSOURL: entityID + "/sso", Key: key, Certificate: CertificateFor(key, time.Now().Add(24*time.Hour))}
}

// CertificateFor returns a certificate, DER, of the key, which is good until the time. It panics without random bits.
func CertificateFor(key *rsa.PrivateKey, until time.Time) []byte {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "samltest"}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return der
}

// Metadata returns the provider's metadata, with its certificate for signing and for encryption.
func (p *Provider) Metadata() []byte {
	key := `<ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>` +
		base64.StdEncoding.EncodeToString(p.Certificate) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`
	return []byte(`<?xml version="1.0"?><md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="` + Escape(p.EntityID) + `">` +
		`<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` +
		`<md:KeyDescriptor use="signing">` + key + `</md:KeyDescriptor><md:KeyDescriptor use="encryption">` + key + `</md:KeyDescriptor>` +
		`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="` + Escape(p.SSOURL) + `/post"/>` +
		`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="` + Escape(p.SSOURL) + `"/>` +
		`</md:IDPSSODescriptor></md:EntityDescriptor>`)
}

// Request is an AuthnRequest.
type Request struct {
	ID           string `xml:"ID,attr"`
	Version      string `xml:"Version,attr"`
	IssueInstant string `xml:"IssueInstant,attr"`
	Destination  string `xml:"Destination,attr"`
	ACS          string `xml:"AssertionConsumerServiceURL,attr"`
	Binding      string `xml:"ProtocolBinding,attr"`
	ForceAuthn   string `xml:"ForceAuthn,attr"`
	Issuer       string `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	NameIDPolicy *struct {
		Format string `xml:"Format,attr"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:protocol NameIDPolicy"`
	Contexts []string `xml:"urn:oasis:names:tc:SAML:2.0:protocol RequestedAuthnContext>AuthnContextClassRef"`

	Text       string     `xml:"-"` // the XML
	RelayState string     `xml:"-"`
	Query      url.Values `xml:"-"`
	RawQuery   string     `xml:"-"` // what a signature covers a part of
}

// Read reads the request in the address that a browser is sent to. Errors: another form than HTTP-Redirect's.
func Read(address string) (r Request, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return r, err
	}
	packed, err := base64.StdEncoding.DecodeString(u.Query().Get("SAMLRequest"))
	if err != nil {
		return r, err
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return r, err
	}
	err = xml.Unmarshal(text, &r)
	r.Text, r.Query, r.RawQuery, r.RelayState = string(text), u.Query(), u.RawQuery, u.Query().Get("RelayState")
	return r, err
}

// Attribute is an attribute of an assertion.
type Attribute struct {
	Name, FriendlyName string
	Values             []string
}

// Answer is a response with one assertion. Change what you like.
type Answer struct {
	ID, InResponseTo, Destination, Issuer, Status, RelayState string
	Issued                                                    time.Time

	AssertionID, AssertionIssuer, AssertionInResponseTo string
	AssertionIssued                                     time.Time
	NameID, NameIDFormat, Audience, Recipient           string
	NotBefore, NotOnOrAfter, ConfirmedUntil             time.Time // zero: left out
	AuthnInstant, SessionNotOnOrAfter                   time.Time // zero: left out
	Context                                             string
	Attributes                                          []Attribute

	SignAssertion, SignResponse bool
	Signing                     Signing
	Encrypting                  *Encrypting // nil: plain
	// EditAssertion and EditResponse change the XML before it is signed, Edit what was signed and sealed; nil: nothing.
	EditAssertion, EditResponse, Edit func(string) string
}

// Answer returns the response to the request, of somebody who has signed in now.
func (p *Provider) Answer(r Request, now time.Time) Answer {
	return Answer{
		ID: newID(), InResponseTo: r.ID, Destination: r.ACS, Issuer: p.EntityID, RelayState: r.RelayState, Issued: now,
		Status:      "urn:oasis:names:tc:SAML:2.0:status:Success",
		AssertionID: newID(), AssertionIssuer: p.EntityID, AssertionInResponseTo: r.ID, AssertionIssued: now,
		NameID: "ann-7", NameIDFormat: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
		Audience: r.Issuer, Recipient: r.ACS, NotBefore: now.Add(-time.Minute), NotOnOrAfter: now.Add(5 * time.Minute),
		ConfirmedUntil: now.Add(5 * time.Minute), AuthnInstant: now,
		Context:       "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport",
		Attributes:    []Attribute{{Name: "email", Values: []string{"ann@example.com"}}},
		SignAssertion: true,
	}
}

func newID() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // it doesn't fail
	return "_" + hex.EncodeToString(bits[:])
}

// Escape returns the text as XML has it.
func Escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}

func at(name string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(` %s="%s"`, name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

func (a Answer) assertion() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="%s"%s Version="2.0">`, a.AssertionID, at("IssueInstant", a.AssertionIssued))
	fmt.Fprintf(&b, `<saml:Issuer>%s</saml:Issuer><saml:Subject>`, Escape(a.AssertionIssuer))
	fmt.Fprintf(&b, `<saml:NameID Format="%s">%s</saml:NameID>`, a.NameIDFormat, Escape(a.NameID))
	fmt.Fprintf(&b, `<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData InResponseTo="%s"%s Recipient="%s"></saml:SubjectConfirmationData></saml:SubjectConfirmation></saml:Subject>`,
		Escape(a.AssertionInResponseTo), at("NotOnOrAfter", a.ConfirmedUntil), Escape(a.Recipient))
	fmt.Fprintf(&b, `<saml:Conditions%s%s><saml:AudienceRestriction><saml:Audience>%s</saml:Audience></saml:AudienceRestriction></saml:Conditions>`,
		at("NotBefore", a.NotBefore), at("NotOnOrAfter", a.NotOnOrAfter), Escape(a.Audience))
	fmt.Fprintf(&b, `<saml:AuthnStatement%s SessionIndex="_s"%s><saml:AuthnContext><saml:AuthnContextClassRef>%s</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`,
		at("AuthnInstant", a.AuthnInstant), at("SessionNotOnOrAfter", a.SessionNotOnOrAfter), Escape(a.Context))
	if len(a.Attributes) > 0 {
		b.WriteString(`<saml:AttributeStatement>`)
		for _, attribute := range a.Attributes {
			fmt.Fprintf(&b, `<saml:Attribute FriendlyName="%s" Name="%s">`, Escape(attribute.FriendlyName), Escape(attribute.Name))
			for _, value := range attribute.Values {
				fmt.Fprintf(&b, `<saml:AttributeValue>%s</saml:AttributeValue>`, Escape(value))
			}
			b.WriteString(`</saml:Attribute>`)
		}
		b.WriteString(`</saml:AttributeStatement>`)
	}
	b.WriteString(`</saml:Assertion>`)
	return b.String()
}

// Text returns the response's XML. Errors: XML that can't be signed.
func (p *Provider) Text(a Answer) (text string, err error) {
	assertion := edited(a.assertion(), a.EditAssertion)
	if a.SignAssertion {
		if assertion, err = p.Sign(assertion, a.AssertionID, a.Signing); err != nil {
			return "", err
		}
	}
	if a.Encrypting != nil {
		if assertion, err = a.Encrypting.seal(assertion); err != nil {
			return "", err
		}
	}
	text = fmt.Sprintf(`<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" Destination="%s" ID="%s" InResponseTo="%s"%s Version="2.0">`,
		Escape(a.Destination), a.ID, Escape(a.InResponseTo), at("IssueInstant", a.Issued)) +
		fmt.Sprintf(`<saml:Issuer xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">%s</saml:Issuer>`, Escape(a.Issuer)) +
		fmt.Sprintf(`<samlp:Status><samlp:StatusCode Value="%s"></samlp:StatusCode></samlp:Status>%s</samlp:Response>`, Escape(a.Status), assertion)
	text = edited(text, a.EditResponse)
	if a.SignResponse {
		if text, err = p.Sign(text, a.ID, a.Signing); err != nil {
			return "", err
		}
	}
	return edited(text, a.Edit), nil
}

func edited(text string, edit func(string) string) string {
	if edit == nil {
		return text
	}
	return edit(text)
}

// Form returns the form that the browser posts to acs. Errors: as Text.
func (p *Provider) Form(a Answer) (url.Values, error) {
	text, err := p.Text(a)
	return FormOf(text, a.RelayState), err
}

// FormOf returns the form with any text.
func FormOf(text, relayState string) url.Values {
	form := url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(text))}}
	if relayState != "" {
		form.Set("RelayState", relayState)
	}
	return form
}
