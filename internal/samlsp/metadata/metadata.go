// Package metadata reads what a provider says of itself (saml-metadata-2.0-os): from a text, or at an address.
//
//	client := metadata.New(guarded, time.Now, metadata.WithRefused(guard.IsRefused))
//	provider, err := client.Fetch(ctx, address, "") // keep it as JSON, read it daily
//	provider, err := metadata.Parse(text, "", now)
//
// Each error is a *fault.Fault with CheckOfMetadata and a code. A signature of the metadata isn't looked at: they are
// trusted as they were read, over https or by an administrator.
package metadata

import (
	"cmp"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/beevik/etree"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/gate"
)

// Provider is what Doorward needs of a provider's metadata (saml-metadata-2.0-os). It can be kept as JSON.
type Provider struct {
	EntityID     string        `json:"entityId"`
	SSOURL       string        `json:"ssoUrl"` // of HTTP-Redirect
	Certificates []Certificate `json:"certificates"`
	// WantsSigned says that the provider wants signed requests.
	WantsSigned bool `json:"wantsSigned,omitzero"`
}

// Certificate is one by which a provider signs. Until is for notices: it is good until it is taken away.
type Certificate struct {
	DER         []byte    `json:"der"`
	Fingerprint string    `json:"fingerprint"` // SHA-256 of DER, in hexadecimal digits
	From        time.Time `json:"from"`
	Until       time.Time `json:"until"`
}

const (
	entityMax       = 1024 // bytes of an entityID (saml-metadata 2.2.1), and of an address
	entitiesMax     = 100  // that a fault lists
	certificatesMax = 10   // of one provider
	rsaMin          = 2048 // bits (NIST SP 800-131A)
)

// Parse reads the metadata of the provider with the entityID; empty: the only one in the text. Errors: a
// *fault.Fault with CheckOfMetadata and a code: required, unknown_entity, invalid, doctype, too_large, no_certificate or
// expired.
func Parse(said []byte, entityID string, now time.Time) (Provider, error) {
	said = inUTF8(said)
	if err := gate.Check(said); err != nil {
		return Provider{}, metadataRefused(err)
	}
	root, err := dom.Parse(said)
	if err != nil {
		return Provider{}, invalidMetadata("no XML", "")
	}
	found := providersIn(root, time.Time{}, nil)
	if len(found) == 0 {
		return Provider{}, invalidMetadata(root.Tag, "the metadata of an identity provider of SAML 2.0")
	}
	i, f := choose(found, entityID)
	if f != nil {
		return Provider{}, f
	}
	return found[i].provider(now)
}

func metadataRefused(err error) *fault.Fault {
	f := fault.OfGate(err)
	code := fault.CodeInvalid
	switch refused, _ := err.(*gate.Error); refused.Kind { //nolint:errorlint // gate.Check returns nothing else
	case gate.Size, gate.Limit:
		code = fault.CodeTooLarge
	case gate.Doctype:
		code = fault.CodeDoctype
	}
	f.Check, f.Code = fault.CheckOfMetadata, code
	return f
}

func invalidMetadata(seen, wanted string) *fault.Fault {
	return &fault.Fault{Check: fault.CheckOfMetadata, Code: fault.CodeInvalid, Seen: fault.Clip(seen), Wanted: fault.Clip(wanted), Advice: fault.AdviceProvider}
}

// described is a provider that metadata describe.
type described struct {
	entityID string
	role     *etree.Element // its IDPSSODescriptor of SAML 2.0
	until    time.Time      // the earliest validUntil around it; zero: none
	isValid  bool           // every validUntil is a time
}

// providersIn returns the providers in an EntityDescriptor, or in an EntitiesDescriptor and those within it.
func providersIn(el *etree.Element, until time.Time, found []described) []described {
	until, isValid := earlier(el, until)
	switch {
	case dom.Is(el, dom.Metadata, "EntitiesDescriptor"):
		for _, child := range el.ChildElements() {
			found = providersIn(child, until, found)
		}
	case dom.Is(el, dom.Metadata, "EntityDescriptor"):
		for _, role := range dom.Children(el, dom.Metadata, "IDPSSODescriptor") {
			if slices.Contains(strings.Fields(dom.Attribute(role, "protocolSupportEnumeration")), dom.Protocol) {
				until, roleIsValid := earlier(role, until)
				return append(found, described{dom.Attribute(el, "entityID"), role, until, isValid && roleIsValid})
			}
		}
	}
	return found
}

// earlier returns the earlier of a time and the element's validUntil.
func earlier(el *etree.Element, until time.Time) (time.Time, bool) {
	own, isValid := dom.Time(el, "validUntil")
	if until.IsZero() || !own.IsZero() && own.Before(until) {
		until = own
	}
	return until, isValid
}

// choose returns the index of the provider with the entityID.
func choose(found []described, entityID string) (int, *fault.Fault) {
	if entityID == "" && len(found) == 1 {
		return 0, nil
	}
	if i := slices.IndexFunc(found, func(d described) bool { return d.entityID == entityID }); i >= 0 && entityID != "" {
		return i, nil
	}
	f := &fault.Fault{Check: fault.CheckOfMetadata, Code: fault.CodeUnknownEntity, Wanted: fault.Clip(entityID), Advice: fault.AdviceEntity}
	if entityID == "" {
		f.Code, f.Advice = fault.CodeRequired, ""
	}
	for _, d := range found[:min(len(found), entitiesMax)] {
		if isEntityID(d.entityID) && !slices.Contains(f.Entities, d.entityID) {
			f.Entities = append(f.Entities, d.entityID)
		}
	}
	f.Seen = fault.Clip(strings.Join(f.Entities, " "))
	return 0, f
}

// provider returns what the metadata say, or a *fault.Fault.
func (d described) provider(now time.Time) (Provider, error) {
	p := Provider{EntityID: d.entityID, WantsSigned: isTrue(dom.Attribute(d.role, "WantAuthnRequestsSigned"))}
	if !isEntityID(p.EntityID) {
		return Provider{}, invalidMetadata(d.entityID, "an entityID of 1 to 1024 characters")
	}
	if !d.isValid {
		return Provider{}, invalidMetadata("a validUntil that is no time", "")
	}
	if !d.until.IsZero() && !now.Before(d.until) {
		return Provider{}, &fault.Fault{
			Check: fault.CheckOfMetadata, Code: fault.CodeExpired, Seen: d.until.UTC().Format(time.RFC3339), Advice: fault.AdviceCertificate,
		}
	}
	for _, service := range dom.Children(d.role, dom.Metadata, "SingleSignOnService") {
		if dom.Attribute(service, "Binding") == dom.Redirect {
			p.SSOURL = dom.Attribute(service, "Location")
			break
		}
	}
	if !isPlainURL(p.SSOURL) {
		return Provider{}, invalidMetadata(p.SSOURL, "a SingleSignOnService by HTTP-Redirect, at an address with https")
	}
	var f *fault.Fault
	if p.Certificates, f = certificatesOf(d.role); f != nil {
		return Provider{}, f
	}
	return p, nil
}

func isEntityID(text string) bool {
	return text != "" && len(text) <= entityMax && !strings.ContainsFunc(text, unicode.IsControl)
}

func isTrue(value string) bool { return value == "true" || value == "1" }

// isPlainURL reports whether the address has https, a host, no user and no fragment, in printable ASCII.
func isPlainURL(address string) bool {
	isOdd := func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' || r == '#' }
	if len(address) > entityMax || strings.ContainsFunc(address, isOdd) {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.Opaque == "" && u.User == nil
}

// certificatesOf returns the certificates that sign: those of keys for signing, or for whatever. Those of a kind that
// can't verify a signature here are left out. Of a chain the first one is the signer's (XML Signature 1.1, 4.5.4).
func certificatesOf(role *etree.Element) (all []Certificate, f *fault.Fault) {
	seen := "none"
	for _, key := range dom.Children(role, dom.Metadata, "KeyDescriptor") {
		if use := dom.Attribute(key, "use"); use != "" && use != "signing" {
			continue
		}
		for _, data := range dataOf(key) {
			certificate, why := certificateOf(data)
			seen = cmp.Or(why, seen)
			isThere := func(c Certificate) bool { return c.Fingerprint == certificate.Fingerprint }
			if why == "" && !slices.ContainsFunc(all, isThere) {
				all = append(all, certificate)
			}
		}
	}
	if len(all) == 0 {
		return nil, &fault.Fault{
			Check: fault.CheckOfMetadata, Code: fault.CodeNoCertificate, Seen: fault.Clip(seen), Advice: fault.AdviceProvider,
			Wanted: "a certificate for signing, with RSA of at least 2048 bits",
		}
	}
	if len(all) > certificatesMax {
		return nil, &fault.Fault{Check: fault.CheckOfMetadata, Code: fault.CodeTooLarge, Seen: "more than 10 certificates", Advice: fault.AdviceProvider}
	}
	return all, nil
}

// dataOf returns the first certificate of each X509Data.
func dataOf(key *etree.Element) (found []string) {
	for _, info := range dom.Children(key, dom.Signature, "KeyInfo") {
		for _, data := range dom.Children(info, dom.Signature, "X509Data") {
			if certificates := dom.Children(data, dom.Signature, "X509Certificate"); len(certificates) > 0 {
				found = append(found, dom.Text(certificates[0]))
			}
		}
	}
	return found
}

// certificateOf reads a certificate. why says why it can't be used; empty: it can.
func certificateOf(encoded string) (c Certificate, why string) {
	der, err := base64.StdEncoding.DecodeString(dom.WithoutBlanks(encoded))
	if err != nil {
		return c, "a certificate that is no base64"
	}
	read, err := x509.ParseCertificate(der)
	if err != nil {
		return c, "a certificate that can't be read: " + err.Error()
	}
	key, isRSA := read.PublicKey.(*rsa.PublicKey)
	if !isRSA {
		return c, "a certificate with " + read.PublicKeyAlgorithm.String()
	}
	if key.N.BitLen() < rsaMin {
		return c, "a certificate with RSA of less than 2048 bits"
	}
	sum := sha256.Sum256(der)
	return Certificate{DER: der, Fingerprint: hex.EncodeToString(sum[:]), From: read.NotBefore.UTC(), Until: read.NotAfter.UTC()}, ""
}
