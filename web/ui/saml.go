package ui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/web/front"
)

// MaxMetadata is how many bytes a provider's metadata may have, as a file or as a text. MaxMetadataFields bounds a form
// with both besides the file.
const (
	MaxMetadata       = 256 << 10
	MaxMetadataFields = MaxMetadata + 16<<10
)

// MetadataFile is the name of the form's field with a file.
const MetadataFile = "metadataFile"

// The values of the field metadataBy: how a provider's metadata come.
const (
	ByAddress = "address" // they are read every day
	ByText    = "text"    // somebody gives them, as a file or a text
)

// SAMLForm are the fields for what a connection of SAML signs people in by, as typed or as stored. The template
// "samlFields" shows them.
type SAMLForm struct {
	By                                string // ByAddress or ByText
	MetadataURL, Metadata, EntityID   string
	SubjectFrom, EmailFrom            string
	Entities                          []string // the providers of the metadata to choose from; empty: there is one, or it isn't known
	IsGiven                           bool     // metadata were given as a text before
	SignRequests, Encrypt, IsRefilled bool     // IsRefilled: a form that is shown again
}

// subjects are the attributes that the products' guides have as the person's id, where the NameID is none to rely on.
var subjects = map[doorward.Product]string{doorward.Entra: "objectidentifier", doorward.Okta: "id"}

// SAMLFormOf returns the fields: as typed if the form is shown again, else as stored. A connection whose metadata aren't
// known has the suggestion of its product as the attribute with the person's id.
func SAMLFormOf(c *Call, of doorward.Connection) SAMLForm {
	f := StoredSAML(of)
	if c.Values("metadataBy") == nil {
		return f
	}
	typed := SAMLForm{
		By: c.Value("metadataBy"), MetadataURL: c.Value("metadataUrl"), Metadata: c.Value("metadata"), EntityID: c.Value("entityId"),
		SubjectFrom: c.Value("subjectFrom"), EmailFrom: c.Value("emailFrom"), IsGiven: f.IsGiven, IsRefilled: true,
		SignRequests: c.Value("signRequests") != "", Encrypt: c.Value("encrypt") != "",
	}
	for _, fault := range c.FieldErrors() {
		typed.Entities = append(typed.Entities, fault.Entities...)
	}
	return typed
}

// StoredSAML returns the fields as they are stored.
func StoredSAML(of doorward.Connection) SAMLForm {
	p, _ := of.ToTest()
	f := SAMLForm{By: ByAddress, MetadataURL: p.MetadataURL, SubjectFrom: p.SubjectFrom, EmailFrom: p.EmailFrom, SignRequests: of.SignRequests, Encrypt: of.Encrypt}
	if f.IsGiven = p.Issuer != "" && p.MetadataURL == ""; f.IsGiven || p.Issuer == "" && of.Product == doorward.Google {
		f.By = ByText
	}
	if p.Issuer == "" {
		f.SubjectFrom = cmp.Or(p.SubjectFrom, subjects[of.Product])
	}
	return f
}

// MetadataWays are the ways in which metadata come, in the order of the form.
func (SAMLForm) MetadataWays() []string { return []string{ByAddress, ByText} }

// SAMLTyped is what was sent of a connection of SAML, for a change of it; nil: it stays.
type SAMLTyped struct{ MetadataURL, Metadata, EntityID, SubjectFrom, EmailFrom *string }

// Draft returns it as a change.
func (t SAMLTyped) Draft() connection.Draft {
	return connection.Draft{MetadataURL: t.MetadataURL, Metadata: t.Metadata, EntityID: t.EntityID, SubjectFrom: t.SubjectFrom, EmailFrom: t.EmailFrom}
}

// TypedSAML returns what was sent. A file counts before the text, and takes its place in a form that is shown again: no
// browser sends a file twice. An address that stays isn't sent on: to name it again brings back certificates that were
// taken away by hand. Errors: validation_failed where a connection that knows its provider would have neither an address
// nor a text.
func TypedSAML(c *Call, of doorward.Connection) (typed SAMLTyped, err error) {
	was, _ := of.ToTest()
	value := func(name string) *string {
		text := strings.TrimSpace(c.Value(name))
		return &text
	}
	text := withoutMark(c.Value("metadata"))
	if file := withoutMark(string(c.File())); file != "" {
		if text = file; front.IsText(file) {
			c.Preset("metadata", file)
		}
	}
	typed.SubjectFrom, typed.EmailFrom = value("subjectFrom"), value("emailFrom")
	if entityID := value("entityId"); *entityID != "" {
		typed.EntityID = entityID
	}
	if c.Value("metadataBy") != ByText {
		address := value("metadataUrl")
		switch {
		case *address == "" && was.Issuer != "":
			return typed, doorward.Invalid("/metadataUrl", "required", "Enter the address of the provider's metadata.")
		case *address != was.MetadataURL:
			typed.MetadataURL = address
		}
		return typed, nil
	}
	switch {
	case strings.TrimSpace(text) != "":
		typed.Metadata = &text
	case was.MetadataURL != "":
		return typed, doorward.Invalid("/metadata", "required", "Choose the file, or paste its text.")
	}
	return typed, nil
}

// withoutMark returns the text without the byte order mark with which Windows begins a file in UTF-8.
func withoutMark(text string) string { return strings.TrimPrefix(text, "\ufeff") }

// certificateEndsSoon is how long before its end the pages warn of a certificate; mails begin then, too.
const certificateEndsSoon = 30 * 24 * time.Hour

// SAMLProvider is what a provider of SAML says of itself. The template "samlProvider" shows it.
type SAMLProvider struct {
	EntityID, SSOURL string
	Certificates     []Certificate
	WantsSigned      bool // it wants signed requests
}

// Certificate is one by which the provider signs.
type Certificate struct {
	Fingerprint string // SHA-256, in hexadecimal digits
	From, Until time.Time
	now         time.Time
}

// NewSAMLProvider returns what the metadata say.
func NewSAMLProvider(said metadata.Provider, now time.Time) *SAMLProvider {
	p := &SAMLProvider{EntityID: said.EntityID, SSOURL: said.SSOURL, WantsSigned: said.WantsSigned}
	for _, one := range said.Certificates {
		p.Certificates = append(p.Certificates, Certificate{one.Fingerprint, one.From, one.Until, now})
	}
	return p
}

// HasEnded reports whether the certificate's end has passed. It is good until it is taken away, all the same.
func (c Certificate) HasEnded() bool { return !c.now.Before(c.Until) }

// EndsSoon reports whether the end is near, or has passed.
func (c Certificate) EndsSoon() bool { return c.Until.Sub(c.now) <= certificateEndsSoon }

// Days is how many days are left, a begun one included.
func (c Certificate) Days() int {
	const day = 24 * time.Hour
	return int((c.Until.Sub(c.now) + day - 1) / day)
}

// Short is the beginning of the fingerprint, in pairs of digits as the consoles of providers show it.
func (c Certificate) Short() string {
	pairs := strings.Split(c.Print(), ":")
	return strings.Join(pairs[:min(len(pairs), 8)], ":") + "…"
}

// Print is the fingerprint in pairs of digits.
func (c Certificate) Print() string {
	digits := strings.ToUpper(c.Fingerprint)
	var pairs []string
	for pair := range slices.Chunk([]byte(digits), 2) {
		pairs = append(pairs, string(pair))
	}
	return strings.Join(pairs, ":")
}

// Ends is the end of the certificate that ends last, if that is soon or has passed; else nil.
func (p *SAMLProvider) Ends() *time.Time {
	if p == nil || len(p.Certificates) == 0 {
		return nil
	}
	last := slices.MaxFunc(p.Certificates, func(a, b Certificate) int { return a.Until.Compare(b.Until) })
	if !last.EndsSoon() {
		return nil
	}
	return &last.Until
}
