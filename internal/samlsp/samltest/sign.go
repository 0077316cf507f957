package samltest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // as a lie
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/beevik/etree"
	"github.com/crewjam/saml/xmlenc"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"
)

// Signing says how a provider signs. The zero value: RSA with SHA-256, exclusive canonical form, the provider's
// certificate in KeyInfo.
type Signing struct {
	SHA1, HMAC bool
	SHA1Digest bool            // SHA-1 for what is signed, SHA-256 for the signature
	Whole      bool            // the reference is to the whole document, by an empty URI
	Key        *rsa.PrivateKey // nil: the provider's
	KeyInfo    string          // instead of the certificate's; "-": none
	Inclusive  bool            // canonical form 1.0 instead of the exclusive one
	Prefixes   string          // InclusiveNamespaces' PrefixList
	URI        string          // instead of that of the element
	Last       bool            // the signature is the last child of the element, not the one after Issuer
	NoPrefix   bool            // the signature is in the default namespace
}

// Sign signs the element with the ID in the text, and puts the signature into it. Errors: there is no such element.
func (p *Provider) Sign(text, id string, how Signing) (string, error) {
	document := etree.NewDocument()
	if err := document.ReadFromString(text); err != nil {
		return "", err
	}
	el := document.FindElement(fmt.Sprintf("//*[@ID='%s']", id))
	if el == nil {
		return "", errors.New("samltest: no element with the ID " + id)
	}
	copied, err := detached(el)
	if err != nil {
		return "", err
	}
	form := how.canonicalizer()
	covered, err := form.Canonicalize(copied)
	if err != nil {
		return "", err
	}
	signature, err := p.signature(covered, id, how, form)
	if err != nil {
		return "", err
	}
	place := 0
	if issuer := el.SelectElement("Issuer"); issuer != nil {
		place = issuer.Index() + 1
	}
	if how.Last {
		place = len(el.Child)
	}
	el.InsertChildAt(place, signature)
	document.WriteSettings.CanonicalEndTags = true // as the canonical form has them
	return document.WriteToString()
}

func (how Signing) canonicalizer() dsig.Canonicalizer {
	if how.Inclusive {
		return dsig.MakeC14N10RecCanonicalizer()
	}
	return dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList(how.Prefixes)
}

// signature returns a Signature over the bytes.
func (p *Provider) signature(covered []byte, id string, how Signing, form dsig.Canonicalizer) (*etree.Element, error) {
	method, digestMethod, hash := dsig.RSASHA256SignatureMethod, "http://www.w3.org/2001/04/xmlenc#sha256", crypto.SHA256
	if how.SHA1 {
		method, digestMethod, hash = dsig.RSASHA1SignatureMethod, "http://www.w3.org/2000/09/xmldsig#sha1", crypto.SHA1
	}
	digest := sum(hash, covered)
	if how.SHA1Digest {
		digestMethod, digest = "http://www.w3.org/2000/09/xmldsig#sha1", sum(crypto.SHA1, covered)
	}
	if how.HMAC {
		method = "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"
	}
	uri := "#" + id
	if how.URI != "" {
		uri = how.URI
	}
	if how.Whole {
		uri = ""
	}
	prefixes := ""
	if how.Prefixes != "" {
		prefixes = `<ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="` + how.Prefixes + `"></ec:InclusiveNamespaces>`
	}
	info := fmt.Sprintf(`<ds:SignedInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"></ds:CanonicalizationMethod>`+
		`<ds:SignatureMethod Algorithm="%s"></ds:SignatureMethod><ds:Reference URI="%s"><ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"></ds:Transform>`+
		`<ds:Transform Algorithm="%s">%s</ds:Transform></ds:Transforms><ds:DigestMethod Algorithm="%s"></ds:DigestMethod><ds:DigestValue>%s</ds:DigestValue></ds:Reference></ds:SignedInfo>`,
		method, uri, form.Algorithm(), prefixes, digestMethod, base64.StdEncoding.EncodeToString(digest))
	prefix := func(text string) string { return text }
	if how.NoPrefix {
		prefix = strings.NewReplacer("<ds:", "<", "</ds:", "</", "xmlns:ds=", "xmlns=").Replace
	}
	info = prefix(info)
	value, err := p.value(info, how, hash)
	if err != nil {
		return nil, err
	}
	keyInfo := how.KeyInfo
	switch keyInfo {
	case "":
		keyInfo = KeyInfo(p.Certificate)
	case "-":
		keyInfo = ""
	}
	// In SignedInfo, the declaration is the Signature's, as providers write it.
	info = strings.Replace(info, prefix(` xmlns:ds="http://www.w3.org/2000/09/xmldsig#"`), "", 1)
	document := etree.NewDocument()
	err = document.ReadFromString(prefix(`<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#">` + info + `<ds:SignatureValue>` + value + `</ds:SignatureValue>` + keyInfo + `</ds:Signature>`))
	return document.Root(), err
}

func (p *Provider) value(info string, how Signing, hash crypto.Hash) (string, error) {
	if how.HMAC { // with what everybody knows as the secret, as readers of a certificate might take it
		mac := hmac.New(crypto.SHA256.New, p.Certificate)
		mac.Write([]byte(info))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
	}
	key := p.Key
	if how.Key != nil {
		key = how.Key
	}
	value, err := rsa.SignPKCS1v15(rand.Reader, key, hash, sum(hash, []byte(info)))
	return base64.StdEncoding.EncodeToString(value), err
}

func sum(hash crypto.Hash, text []byte) []byte {
	if hash == crypto.SHA1 {
		short := sha1.Sum(text) //nolint:gosec // as a lie
		return short[:]
	}
	h := hash.New()
	h.Write(text)
	return h.Sum(nil)
}

// KeyInfo returns a KeyInfo with the certificate.
func KeyInfo(der []byte) string {
	return `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + base64.StdEncoding.EncodeToString(der) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`
}

func detached(el *etree.Element) (*etree.Element, error) {
	ctx := etreeutils.EmptyNSContext
	var around []*etree.Element
	for parent := el.Parent(); parent != nil; parent = parent.Parent() {
		around = append(around, parent)
	}
	for i := len(around) - 1; i >= 0; i-- {
		var err error
		if ctx, err = ctx.SubContext(around[i]); err != nil {
			return nil, err
		}
	}
	return etreeutils.NSDetatch(ctx, el)
}

// Encrypting says to which certificate an assertion is encrypted, and how.
type Encrypting struct {
	Certificate []byte // DER
	CBC, RSA15  bool   // instead of AES-256-GCM, and of RSA-OAEP
	OAEP11      bool   // with SHA-256
	Beside      bool   // the key is beside EncryptedData, not within it
}

func (e Encrypting) seal(assertion string) (string, error) {
	certificate, err := x509.ParseCertificate(e.Certificate)
	if err != nil {
		return "", err
	}
	by := xmlenc.OAEP()
	by.DigestMethod = xmlenc.SHA1
	if e.OAEP11 {
		by = xmlenc.OAEP_SHA256()
	}
	if e.RSA15 {
		by = xmlenc.PKCS1v15()
	}
	by.BlockCipher = xmlenc.AES256GCM
	if e.CBC {
		by.BlockCipher = xmlenc.AES256CBC
	}
	data, err := by.Encrypt(certificate, []byte(assertion), nil)
	if err != nil {
		return "", err
	}
	data.CreateAttr("Type", "http://www.w3.org/2001/04/xmlenc#Element")
	el := etree.NewElement("saml:EncryptedAssertion")
	el.CreateAttr("xmlns:saml", "urn:oasis:names:tc:SAML:2.0:assertion")
	el.AddChild(data)
	if key := data.FindElement("./KeyInfo/EncryptedKey"); e.Beside && key != nil {
		data.RemoveChild(key.Parent())
		key.CreateAttr("xmlns:ds", dsig.Namespace)
		el.AddChild(key)
	}
	document := etree.NewDocument()
	document.SetRoot(el)
	return document.WriteToString()
}
