// Package xmlsec verifies signatures of XML and decrypts it, as SAML uses both (saml-core 5 and 6).
//
//	signed, by, f := xmlsec.Verify(element, certificates) // what the element's own signature covers, and who has signed
//	plain, f := xmlsec.Decrypt(element, key, isCovered)
//
// Signatures are RSA with SHA-2, over the element that they are in and nothing else. Encryption is AES with a
// key by RSA-OAEP; AES-CBC only where a verified signature covers the ciphertext.
package xmlsec

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// RSASHA256 is the algorithm of our own signatures, too.
const RSASHA256 = dsig.RSASHA256SignatureMethod

// The algorithms that are taken. HMAC isn't among them, since a certificate is no secret; nor ECDSA, whose values package
// dsig reads in another encoding than XML Signature has. Canonical forms leave out comments: what they keep of them
// could be read as something else.
var (
	signatureMethods = []string{RSASHA256, dsig.RSASHA384SignatureMethod, dsig.RSASHA512SignatureMethod}
	digestMethods    = []string{
		"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384",
		"http://www.w3.org/2001/04/xmlenc#sha512",
	}
	canonicalForms = []string{
		string(dsig.CanonicalXML10ExclusiveAlgorithmId), string(dsig.CanonicalXML10RecAlgorithmId), string(dsig.CanonicalXML11AlgorithmId),
	}
	enveloped = []string{string(dsig.EnvelopedSignatureAltorithmId)}
)

// onceInSignature are the elements of a signature of which there is exactly one.
var onceInSignature = []string{
	"SignedInfo", "SignatureValue", "CanonicalizationMethod", "SignatureMethod", "Reference", "Transforms", "DigestMethod", "DigestValue",
}

// checkSignature checks the form of the element's signature: its algorithms, and that it covers the element itself
// (saml-core 5.4).
func checkSignature(el, signature *etree.Element) *fault.Fault {
	for _, tag := range onceInSignature {
		if dom.Count(signature, tag) != 1 {
			return fault.Structure("a Signature without one " + tag)
		}
	}
	if dom.Count(signature, "Object", "Manifest") > 0 {
		return fault.Structure("a Signature with Object")
	}
	info := dom.Only(signature, dom.Signature, "SignedInfo")
	reference := dom.Only(info, dom.Signature, "Reference")
	form, method := dom.Only(info, dom.Signature, "CanonicalizationMethod"), dom.Only(info, dom.Signature, "SignatureMethod")
	changes, digest := dom.Only(reference, dom.Signature, "Transforms"), dom.Only(reference, dom.Signature, "DigestMethod")
	if reference == nil || form == nil || method == nil || changes == nil || digest == nil {
		return fault.Structure("a Signature in another form")
	}
	steps := changes.ChildElements()
	if len(steps) != 2 {
		return fault.Structure("a Signature with other transforms than two")
	}
	for _, use := range []struct {
		by    *etree.Element
		taken []string
	}{{form, canonicalForms}, {method, signatureMethods}, {digest, digestMethods}, {steps[0], enveloped}, {steps[1], canonicalForms}} {
		if name := dom.Attribute(use.by, "Algorithm"); !slices.Contains(use.taken, name) {
			return &fault.Fault{Check: fault.CheckAlg, Seen: fault.Clip(name), Wanted: fault.Clip(use.taken[0]), Advice: fault.AdviceSHA256}
		}
	}
	if id := dom.Attribute(el, "ID"); id == "" || dom.Attribute(reference, "URI") != "#"+id {
		return &fault.Fault{Check: fault.CheckSignature, Seen: "a signature of another element", Advice: fault.AdviceSign}
	}
	return nil
}

// Verify returns what the element's signature covers, read from the bytes that were signed; without the signature
// itself. by is the certificate that has signed. Certificates are DER; their dates are not looked at. Errors: a
// *fault.Fault with structure, alg, signature or certificate; ReadAgain with the last.
func Verify(el *etree.Element, certificates [][]byte) (signed *etree.Element, by []byte, f *fault.Fault) {
	signature := dom.Only(el, dom.Signature, "Signature")
	if f := checkSignature(el, signature); f != nil {
		return nil, nil, f
	}
	able, named := candidates(signature, certificates)
	detached, err := detach(el)
	if err != nil {
		return nil, nil, fault.Structure("namespaces that can't be resolved")
	}
	if own := dom.Only(detached, dom.Signature, "Signature"); own != nil {
		for _, info := range dom.Children(own, dom.Signature, "KeyInfo") {
			own.RemoveChild(info)
		}
	}
	changed := named != nil && len(able) > 0
	for _, certificate := range able {
		signed, err := verify(detached, certificate)
		if err == nil {
			return signed, certificate.Raw, nil
		}
		// The certificate has signed, but something else: package dsig has one error for it.
		changed = changed || err.Error() == errDigest
	}
	if changed {
		return nil, nil, &fault.Fault{Check: fault.CheckSignature, Seen: "what was signed has been changed", Advice: fault.AdviceProvider}
	}
	return nil, nil, &fault.Fault{
		Check: fault.CheckCertificate, Seen: "a signature by another certificate", Wanted: "one of the connection's certificates",
		Advice: fault.AdviceCertificate, ReadAgain: true, Signer: fingerprint(named),
	}
}

// errDigest is the text of package dsig's error for a digest that isn't the signed one.
const errDigest = "Signature could not be verified"

// fingerprint returns that of a certificate in DER; empty: there is none.
func fingerprint(der []byte) string {
	if der == nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// candidates returns the certificates that can have signed: the one that the signature names, if it is the
// connection's; without a name, nil, all of the connection's.
func candidates(signature *etree.Element, kept [][]byte) (all []*x509.Certificate, named []byte) {
	if el := dom.Only(dom.Only(signature, dom.Signature, "KeyInfo"), dom.Signature, "X509Data"); el != nil {
		if certificates := dom.Children(el, dom.Signature, "X509Certificate"); len(certificates) > 0 {
			named, _ = base64.StdEncoding.DecodeString(dom.WithoutBlanks(dom.Text(certificates[0])))
		}
	}
	for _, der := range kept {
		certificate, err := x509.ParseCertificate(der)
		if err != nil || named != nil && !bytes.Equal(named, der) {
			continue
		}
		certificate.NotBefore, certificate.NotAfter = time.Time{}, farFuture // it is good until it is taken away
		all = append(all, certificate)
	}
	return all, named
}

// farFuture is the end of certificates without one (RFC 5280, 4.1.2.5).
var farFuture = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func verify(el *etree.Element, certificate *x509.Certificate) (*etree.Element, error) {
	ctx := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{certificate}})
	ctx.IdAttribute = "ID"
	return ctx.Validate(el)
}

// detach returns a copy of the element with the namespaces that are declared around it.
func detach(el *etree.Element) (*etree.Element, error) {
	ctx, err := scope(el)
	if err != nil {
		return nil, err
	}
	return etreeutils.NSDetatch(ctx, el)
}

// scope returns the namespaces of an element. That of package etreeutils gives up after 1,000 elements.
func scope(el *etree.Element) (ctx etreeutils.NSContext, err error) {
	if el.Parent() == nil {
		return etreeutils.EmptyNSContext, nil
	}
	if ctx, err = scope(el.Parent()); err != nil {
		return ctx, err
	}
	return ctx.SubContext(el)
}
