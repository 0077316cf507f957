package samlsp_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/gate"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// attack is a response that is refused by the check, or accepted by none.
type attack struct {
	name, check string
	change      func(w *world, a *samltest.Answer)
}

// replaced returns an edit that replaces the one place where old stands.
func replaced(old, with string) func(string) string {
	return func(text string) string {
		if strings.Count(text, old) != 1 {
			panic(fmt.Sprintf("%q stands %d times in %s", old, strings.Count(text, old), text))
		}
		return strings.Replace(text, old, with, 1)
	}
}

// inserted returns an edit that inserts a text before the one place where a tag stands.
func inserted(what, before string) func(string) string { return replaced(before, what+before) }

var attacks = []attack{
	{"nothing", "", func(*world, *samltest.Answer) {}},
	{"nothing, the response signed", "", func(_ *world, a *samltest.Answer) { a.SignAssertion, a.SignResponse = false, true }},
	{"nothing, both signed", "", func(_ *world, a *samltest.Answer) { a.SignResponse = true }},

	// signatures
	{"no signature", fault.CheckSignature, func(_ *world, a *samltest.Answer) { a.SignAssertion = false }},
	{"by another certificate", fault.CheckCertificate, func(_ *world, a *samltest.Answer) {
		a.Signing.Key, a.Signing.KeyInfo = otherProvider().Key, samltest.KeyInfo(otherProvider().Certificate)
	}},
	{"by another key, without a certificate", fault.CheckCertificate, func(_ *world, a *samltest.Answer) {
		a.Signing.Key, a.Signing.KeyInfo = otherProvider().Key, "-"
	}},
	{"by another key, in the name of ours", fault.CheckSignature, func(_ *world, a *samltest.Answer) { a.Signing.Key = otherProvider().Key }},
	{"with a name of the key alone", "", func(_ *world, a *samltest.Answer) {
		a.Signing.KeyInfo = "<ds:KeyInfo><ds:KeyName>a</ds:KeyName></ds:KeyInfo>"
	}},
	{"by another key, which stands beside", fault.CheckCertificate, func(_ *world, a *samltest.Answer) {
		key := otherProvider().Key
		a.Signing.Key, a.Signing.KeyInfo = key, "<ds:KeyInfo><ds:KeyValue><ds:RSAKeyValue><ds:Modulus>"+base64.StdEncoding.EncodeToString(key.N.Bytes())+
			"</ds:Modulus><ds:Exponent>AQAB</ds:Exponent></ds:RSAKeyValue></ds:KeyValue></ds:KeyInfo>"
	}},
	{"by a certificate that was taken away", fault.CheckCertificate, func(w *world, _ *samltest.Answer) {
		w.config.Provider.Certificates[0].DER = otherProvider().Certificate
	}},
	{"without any certificate", fault.CheckCertificate, func(w *world, _ *samltest.Answer) { w.config.Provider.Certificates = nil }},
	{"SHA-1", fault.CheckAlg, func(_ *world, a *samltest.Answer) { a.Signing.SHA1 = true }},
	{"SHA-1 of the response", fault.CheckAlg, func(_ *world, a *samltest.Answer) {
		a.Signing.SHA1, a.SignAssertion, a.SignResponse = true, false, true
	}},
	{"SHA-1 of the digest alone", fault.CheckAlg, func(_ *world, a *samltest.Answer) { a.Signing.SHA1Digest = true }},
	{"HMAC by the certificate", fault.CheckAlg, func(_ *world, a *samltest.Answer) { a.Signing.HMAC = true }},
	{"HMAC, without the certificate", fault.CheckAlg, func(_ *world, a *samltest.Answer) { a.Signing.HMAC, a.Signing.KeyInfo = true, "-" }},
	{"another transform", fault.CheckAlg, func(_ *world, a *samltest.Answer) {
		a.Edit = replaced(`<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#">`, `<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116">`)
	}},
	{"a form that keeps comments", fault.CheckAlg, func(_ *world, a *samltest.Answer) {
		a.Edit = replaced(`<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#">`, `<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#WithComments">`)
	}},
	{"a third transform", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = inserted(`<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>`, `</ds:Transforms>`)
	}},
	{"of the whole document", fault.CheckSignature, func(_ *world, a *samltest.Answer) {
		a.SignAssertion, a.SignResponse, a.Signing.Whole = false, true, true
	}},
	{"of another element", fault.CheckSignature, func(_ *world, a *samltest.Answer) { a.Signing.URI = "#_other" }},
	{"the subject changed", fault.CheckSignature, func(_ *world, a *samltest.Answer) { a.Edit = replaced(">ann-7<", ">bob-8<") }},
	{"the subject changed, without a certificate", fault.CheckSignature, func(_ *world, a *samltest.Answer) {
		a.Edit, a.Signing.KeyInfo = replaced(">ann-7<", ">bob-8<"), "-"
	}},
	{"the subject changed in a signed response", fault.CheckSignature, func(_ *world, a *samltest.Answer) {
		a.Edit, a.SignAssertion, a.SignResponse = replaced(">ann-7<", ">bob-8<"), false, true
	}},
	{"the response's signature wrong, the assertion's right", fault.CheckSignature, func(_ *world, a *samltest.Answer) {
		a.SignResponse, a.Edit = true, func(text string) string {
			return strings.Replace(text, `Version="2.0">`, `Version="2.0" Consent="no">`, 1)
		}
	}},
	{"the assertion's signature wrong, the response's right", fault.CheckSignature, func(_ *world, a *samltest.Answer) {
		a.SignResponse, a.EditResponse = true, replaced(">ann-7<", ">bob-8<")
	}},
	{"two signatures", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string {
			signature := signaturePattern.FindString(text)
			return strings.Replace(text, signature, signature+signature, 1)
		}
	}},
	{"a signature in another place", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string {
			return strings.Replace(text, "<samlp:Status>", "<samlp:Extensions>"+signaturePattern.FindString(text)+"</samlp:Extensions><samlp:Status>", 1)
		}
	}},
	{"two SignedInfos", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string {
			info := regexp.MustCompile(`(?s)<ds:SignedInfo>.*</ds:SignedInfo>`).FindString(text)
			return strings.Replace(text, info, info+info, 1)
		}
	}},
	{"two SignatureValues", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = inserted("<ds:SignatureValue>AAAA</ds:SignatureValue>", "<ds:SignatureValue>")
	}},
	{"two references", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string {
			reference := regexp.MustCompile(`(?s)<ds:Reference .*</ds:Reference>`).FindString(text)
			return strings.Replace(text, reference, reference+reference, 1)
		}
	}},

	// encryption
	{"encrypted, without a key of ours", fault.CheckEncryption, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		w.config.Decrypt = nil
	}},
	{"encrypted by AES-GCM", "", encrypt},
	{"encrypted with the key beside", "", func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.Beside = true
	}},
	{"encrypted with SHA-256 in OAEP", "", func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.OAEP11 = true
	}},
	{"encrypted by CBC in a signed response", "", func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.CBC, a.SignResponse = true, true
	}},
	{"encrypted, unsigned, in a signed response", "", func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.SignAssertion, a.SignResponse = false, true
	}},
	{"encrypted by CBC in an unsigned response", fault.CheckEncryption, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.CBC = true
	}},
	{"encrypted by RSA PKCS #1 v1.5", fault.CheckEncryption, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.RSA15 = true
	}},
	{"encrypted by RSA PKCS #1 v1.5 in a signed response", fault.CheckEncryption, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.RSA15, a.SignResponse = true, true
	}},
	{"unsigned within encryption", fault.CheckSignature, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.SignAssertion = false
	}},
	{"encrypted to another key", fault.CheckEncryption, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.Certificate = otherProvider().Certificate
	}},
	{"two EncryptedKeys", fault.CheckEncryption, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Edit = func(text string) string {
			key := regexp.MustCompile(`(?s)<xenc:EncryptedKey .*</xenc:EncryptedKey>`).FindString(text)
			return strings.Replace(text, key, key+regexp.MustCompile(` Id="[^"]*"`).ReplaceAllString(key, ""), 1)
		}
	}},
	{"a ciphertext changed in a signed response", fault.CheckSignature, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Encrypting.CBC, a.SignResponse, a.SignAssertion = true, true, false
		a.Edit = func(text string) string {
			i := strings.LastIndex(text, "</xenc:CipherValue>") - 10
			return text[:i] + "AAAA" + text[i+4:]
		}
	}},
	{"a document type within encryption", fault.CheckDoctype, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.SignAssertion, a.SignResponse, a.EditAssertion = false, true, func(text string) string { return "<!DOCTYPE a>" + text }
	}},
	{"an id twice within encryption", fault.CheckStructure, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.SignAssertion, a.SignResponse, a.EditAssertion = false, true, replaced("<saml:Subject>", `<saml:Subject Id="`+a.AssertionID+`">`)
	}},
	{"two assertions within encryption", fault.CheckStructure, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.SignAssertion, a.SignResponse = false, true
		a.EditAssertion = func(text string) string {
			return text + strings.Replace(text, a.AssertionID, "_other", 1)
		}
	}},
	{"a plain assertion beside an encrypted one", fault.CheckStructure, func(w *world, a *samltest.Answer) {
		encrypt(w, a)
		a.Edit = inserted(`<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"/>`, "</samlp:Response>")
	}},
	{"an encrypted NameID", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<saml:EncryptedID></saml:EncryptedID>", "<saml:NameID ")
	}},
	{"an encrypted attribute", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<saml:EncryptedAttribute></saml:EncryptedAttribute>", "<saml:Attribute ")
	}},

	// form
	{"a document type", fault.CheckDoctype, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string { return `<!DOCTYPE r [<!ENTITY x "bob">]>` + text }
	}},
	{"two assertions", fault.CheckStructure, func(_ *world, a *samltest.Answer) { a.Edit = twice(after) }},
	{"two assertions in a signed response", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.SignAssertion, a.SignResponse = false, true
		a.EditResponse = twice(after)
	}},
	{"an id twice", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = replaced("<samlp:Status>", `<samlp:Status ID="`+a.AssertionID+`">`)
	}},
	{"an attribute twice", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = replaced("<samlp:Response ", `<samlp:Response Version="1.1" `)
	}},
	{"text after the response", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string { return text + "bob" }
	}},
	{"a second root", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string { return text + "<bob/>" }
	}},
	{"a comment after the response", "", func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string { return text + "<!-- bob -->\n" }
	}},
	{"a processing instruction", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = replaced(">ann-7<", ">ann-<?bob?>7<")
	}},
	{"an XML declaration", "", func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string { return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + text }
	}},
	{"another encoding", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string { return `<?xml version="1.0" encoding="UTF-7"?>` + text }
	}},
	{"300 KiB", fault.CheckSize, func(_ *world, a *samltest.Answer) {
		a.Edit = func(text string) string { return text + "<!--" + strings.Repeat("a", 300<<10-len(text)) + "-->" }
	}},
	{"50,000 elements", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = inserted("<samlp:Extensions>"+strings.Repeat("<a/>", 50_000)+"</samlp:Extensions>", "<samlp:Status>")
	}},
	{"41 levels", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = inserted(strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40), "<samlp:Status>")
	}},
	{"65 namespaces", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = inserted("<a"+numbered(` xmlns:n%d="urn:n"`, 65)+"/>", "<samlp:Status>")
	}},
	{"201 attributes", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = inserted("<a"+numbered(` n%d=""`, 201)+"/>", "<samlp:Status>")
	}},
	{"another version", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditResponse = func(text string) string { return strings.Replace(text, `Version="2.0"`, `Version="1.1"`, 1) }
	}},
	{"an assertion of another version", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = replaced(`Version="2.0"`, `Version="1.1"`)
	}},
	{"an assertion without an id", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.SignAssertion, a.SignResponse, a.EditAssertion = false, true, replaced(` ID="`+a.AssertionID+`"`, "")
	}},
	{"an assertion without Issuer", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = replaced("<saml:Issuer>"+a.Issuer+"</saml:Issuer>", "")
	}},
	{"two NameIDs", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<saml:NameID>bob-8</saml:NameID>", "<saml:NameID ")
	}},
	{"two NameIDs, one of no namespace", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<NameID>bob-8</NameID>", "<saml:NameID ")
	}},
	{"a NameID in the confirmation", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<saml:NameID>bob-8</saml:NameID>", "<saml:SubjectConfirmationData ")
	}},
	{"two Subjects", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<saml:Subject></saml:Subject>", "<saml:Subject>")
	}},
	{"no Subject", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = func(text string) string {
			return regexp.MustCompile(`<saml:Subject>.*</saml:Subject>`).ReplaceAllString(text, "")
		}
	}},
	{"an unknown condition", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted(`<x:Only xmlns:x="urn:x"></x:Only>`, "<saml:AudienceRestriction>")
	}},
	{"a condition by its type", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted(`<saml:Condition xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="x"></saml:Condition>`, "<saml:AudienceRestriction>")
	}},
	{"conditions that hold anyway", "", func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted(`<saml:OneTimeUse></saml:OneTimeUse><saml:ProxyRestriction Count="0"></saml:ProxyRestriction>`, "</saml:Conditions>")
	}},
	{"no Conditions", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = func(text string) string {
			return regexp.MustCompile(`<saml:Conditions .*</saml:Conditions>`).ReplaceAllString(text, "")
		}
	}},
	{"no AuthnStatement", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = func(text string) string {
			return regexp.MustCompile(`<saml:AuthnStatement .*</saml:AuthnStatement>`).ReplaceAllString(text, "")
		}
	}},

	// whom it is for
	{"another provider's assertion", fault.CheckIss, func(_ *world, a *samltest.Answer) { a.AssertionIssuer = "https://other.example" }},
	{"another provider's response", fault.CheckIss, func(_ *world, a *samltest.Answer) { a.Issuer = "https://other.example" }},
	{"another audience", fault.CheckAudience, func(_ *world, a *samltest.Answer) { a.Audience = "https://sp.example/api/v2/auth/sso/con_2/metadata" }},
	{"no audience", fault.CheckAudience, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = func(text string) string {
			return regexp.MustCompile(`<saml:AudienceRestriction>.*</saml:AudienceRestriction>`).ReplaceAllString(text, "")
		}
	}},
	{"an audience more, in a restriction of its own", fault.CheckAudience, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<saml:AudienceRestriction><saml:Audience>other</saml:Audience></saml:AudienceRestriction>", "<saml:AudienceRestriction>")
	}},
	{"an audience more, in ours", "", func(_ *world, a *samltest.Answer) {
		a.EditAssertion = inserted("<saml:Audience>other</saml:Audience>", "<saml:Audience>")
	}},
	{"another recipient", fault.CheckRecipient, func(_ *world, a *samltest.Answer) { a.Recipient += "/" }},
	{"another method of confirmation", fault.CheckRecipient, func(_ *world, a *samltest.Answer) {
		a.EditAssertion = replaced("cm:bearer", "cm:holder-of-key")
	}},
	{"another destination", fault.CheckDestination, func(_ *world, a *samltest.Answer) { a.Destination = "https://other.example/acs" }},
	{"no destination", "", func(_ *world, a *samltest.Answer) { a.EditResponse = replaced(` Destination="`+a.Destination+`"`, "") }},
	{"no destination in a signed response", fault.CheckDestination, func(_ *world, a *samltest.Answer) {
		a.SignResponse, a.EditResponse = true, replaced(` Destination="`+a.Destination+`"`, "")
	}},

	// of which request
	{"an id without our MAC", fault.CheckInResponseTo, func(_ *world, a *samltest.Answer) { a.InResponseTo = "_0123456789abcdef" }},
	{"an id with a MAC of another connection", fault.CheckInResponseTo, func(w *world, _ *samltest.Answer) { w.config.ConnectionID = "con_2" }},
	{"an id with a MAC by another key", fault.CheckInResponseTo, func(w *world, _ *samltest.Answer) { w.config.MACKey = []byte(strings.Repeat("l", 32)) }},
	{"an id whose MAC was changed", fault.CheckInResponseTo, func(_ *world, a *samltest.Answer) { a.InResponseTo = flipped(a.InResponseTo) }},
	{"a request 10 min old", "", func(w *world, a *samltest.Answer) { w.later(a, 10*time.Minute) }},
	{"a request older than that", fault.CheckInResponseTo, func(w *world, a *samltest.Answer) { w.later(a, 10*time.Minute+time.Second) }},
	{"a request from the future", fault.CheckInResponseTo, func(w *world, a *samltest.Answer) { w.later(a, -3*time.Minute-time.Second) }},
	{"an assertion for another request", fault.CheckInResponseTo, func(_ *world, a *samltest.Answer) { a.AssertionInResponseTo = "_other" }},
	{"an assertion for no request", fault.CheckInResponseTo, func(_ *world, a *samltest.Answer) { a.AssertionInResponseTo = "" }},

	// when
	{"issued 10 min ago", "", func(w *world, a *samltest.Answer) {
		a.Issued, a.AssertionIssued = w.now.Add(-10*time.Minute), w.now.Add(-10*time.Minute)
	}},
	{"issued before that", fault.CheckTime, func(w *world, a *samltest.Answer) { a.AssertionIssued = w.now.Add(-10*time.Minute - time.Second) }},
	{"a response issued before that", fault.CheckTime, func(w *world, a *samltest.Answer) { a.Issued = w.now.Add(-10*time.Minute - time.Second) }},
	{"issued in 3 min", "", func(w *world, a *samltest.Answer) {
		a.Issued, a.AssertionIssued = w.now.Add(3*time.Minute), w.now.Add(3*time.Minute)
	}},
	{"issued later than that", fault.CheckTime, func(w *world, a *samltest.Answer) { a.AssertionIssued = w.now.Add(3*time.Minute + time.Second) }},
	{"a response issued later than that", fault.CheckTime, func(w *world, a *samltest.Answer) { a.Issued = w.now.Add(3*time.Minute + time.Second) }},
	{"issued at no time", fault.CheckTime, func(_ *world, a *samltest.Answer) { a.AssertionIssued = time.Time{} }},
	{"good since 3 min", "", func(w *world, a *samltest.Answer) { a.NotBefore = w.now.Add(3 * time.Minute) }},
	{"not good yet", fault.CheckTime, func(w *world, a *samltest.Answer) { a.NotBefore = w.now.Add(3*time.Minute + time.Second) }},
	{"good for a second", "", func(w *world, a *samltest.Answer) { a.NotOnOrAfter = w.now.Add(-3*time.Minute + time.Second) }},
	{"not good any more", fault.CheckTime, func(w *world, a *samltest.Answer) { a.NotOnOrAfter = w.now.Add(-3 * time.Minute) }},
	{"confirmed for a second", "", func(w *world, a *samltest.Answer) { a.ConfirmedUntil = w.now.Add(-3*time.Minute + time.Second) }},
	{"not confirmed any more", fault.CheckTime, func(w *world, a *samltest.Answer) { a.ConfirmedUntil = w.now.Add(-3 * time.Minute) }},
	{"confirmed without an end", fault.CheckTime, func(_ *world, a *samltest.Answer) { a.ConfirmedUntil = time.Time{} }},
	{"a session that ended now", fault.CheckTime, func(w *world, a *samltest.Answer) { a.SessionNotOnOrAfter = w.now }},
	{"a session of a second", "", func(w *world, a *samltest.Answer) { a.SessionNotOnOrAfter = w.now.Add(time.Second) }},
	{"signed in at no time", fault.CheckTime, func(_ *world, a *samltest.Answer) { a.AuthnInstant = time.Time{} }},
	{"a time that is none", fault.CheckTime, func(w *world, a *samltest.Answer) {
		a.EditAssertion = replaced(`NotBefore="`+a.NotBefore.Format("2006-01-02T15:04:05.000Z")+`"`, `NotBefore="soon"`)
	}},

	// who
	{"a transient NameID", fault.CheckNameID, func(_ *world, a *samltest.Answer) { a.NameIDFormat = samlsp.NameIDTransient }},
	{"a transient NameID beside an attribute", "", func(w *world, a *samltest.Answer) {
		a.NameIDFormat, w.config.SubjectFrom = samlsp.NameIDTransient, "email"
	}},
	{"an empty NameID", fault.CheckNameID, func(_ *world, a *samltest.Answer) { a.NameID = " " }},
	{"a NameID of 255 bytes", "", func(_ *world, a *samltest.Answer) { a.NameID = strings.Repeat("a", 255) }},
	{"a NameID of 300 bytes", fault.CheckNameID, func(_ *world, a *samltest.Answer) { a.NameID = strings.Repeat("a", 300) }},
	{"a NameID on two lines", fault.CheckNameID, func(_ *world, a *samltest.Answer) { a.NameID = "ann\n7" }},
	{"no attribute with the subject", fault.CheckSub, func(w *world, _ *samltest.Answer) { w.config.SubjectFrom = "objectidentifier" }},
	{"two values of the subject", fault.CheckSub, func(w *world, a *samltest.Answer) {
		w.config.SubjectFrom, a.Attributes[0].Values = "email", []string{"a", "b"}
	}},
	{"the attribute of the subject twice", fault.CheckSub, func(w *world, a *samltest.Answer) {
		w.config.SubjectFrom, a.Attributes = "email", append(a.Attributes, a.Attributes[0])
	}},
	{"a subject of 300 bytes", fault.CheckSub, func(w *world, a *samltest.Answer) {
		w.config.SubjectFrom, a.Attributes[0].Values = "email", []string{strings.Repeat("a", 300)}
	}},

	// no sign-in
	{"a refusal", fault.CheckStatus, func(_ *world, a *samltest.Answer) { a.Status = "urn:oasis:names:tc:SAML:2.0:status:Responder" }},
	{"a refusal without an assertion", fault.CheckStatus, func(_ *world, a *samltest.Answer) {
		a.Status, a.SignAssertion = "urn:oasis:names:tc:SAML:2.0:status:Requester", false
		a.EditResponse = func(text string) string {
			return regexp.MustCompile(`<saml:Assertion .*</saml:Assertion>`).ReplaceAllString(text, "")
		}
	}},
	{"no assertion", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.SignAssertion, a.EditResponse = false, func(text string) string {
			return regexp.MustCompile(`<saml:Assertion .*</saml:Assertion>`).ReplaceAllString(text, "")
		}
	}},
	{"two statuses", fault.CheckStructure, func(_ *world, a *samltest.Answer) {
		a.Edit = inserted("<samlp:Status></samlp:Status>", "<samlp:Status>")
	}},
}

var signaturePattern = regexp.MustCompile(`(?s)<ds:Signature .*</ds:Signature>`)

func encrypt(w *world, a *samltest.Answer) {
	w.config.Decrypt = ownKey()
	a.Encrypting = &samltest.Encrypting{Certificate: derOf(ownKey())}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// later lets time pass between request and response.
func (w *world) later(a *samltest.Answer, d time.Duration) {
	w.now = w.now.Add(d)
	fresh := w.provider.Answer(samltest.Request{}, w.now)
	a.Issued, a.AssertionIssued, a.NotBefore = fresh.Issued, fresh.AssertionIssued, fresh.NotBefore
	a.NotOnOrAfter, a.ConfirmedUntil, a.AuthnInstant = fresh.NotOnOrAfter, fresh.ConfirmedUntil, fresh.AuthnInstant
}

// flipped changes a character of the id, which isn't the last one: that has bits that mean nothing.
func flipped(id string) string {
	with := "A"
	if id[40] == 'A' {
		with = "B"
	}
	return id[:40] + with + id[41:]
}

func TestAttacks(t *testing.T) {
	for _, at := range attacks {
		t.Run(at.name, func(t *testing.T) {
			w := newWorld(t)
			got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { at.change(w, a) })
			if check := checkOf(t, err); check != at.check {
				t.Fatalf("refused by %q, not %q: %v", check, at.check, err)
			}
			if err == nil && got.Subject != "ann-7" && w.config.SubjectFrom == "" && !strings.HasPrefix(got.Subject, "aaa") {
				t.Errorf("the subject is %q", got.Subject)
			}
			if err != nil {
				checkFault(t, err)
			}
		})
	}
}

// checkFault checks that a fault says what to do, and holds nothing of the assertion; and that this package refuses, not
// package saml alone.
func checkFault(t *testing.T, err error) {
	t.Helper()
	f, _ := errors.AsType[*fault.Fault](err)
	if f.Advice == "" {
		t.Errorf("no advice about %s", f.Error())
	}
	for _, secret := range []string{"ann-7", "ann@example.com", "<saml", "bob-8"} {
		if strings.Contains(f.Error(), secret) {
			t.Errorf("the fault holds %q: %s", secret, f.Error())
		}
	}
	if strings.Contains(f.Seen, "two readers") {
		t.Errorf("only the second reader refuses: %v", f)
	}
	if f.ReadAgain != (f.Check == fault.CheckCertificate) {
		t.Errorf("check %s: read again is %v", f.Check, f.ReadAgain)
	}
}

// The places of a second assertion, in twice.
const (
	after  = "</samlp:Response>"
	before = "<saml:Assertion "
)

// evil returns the assertion in the text without its signature, for somebody else, with an id of its own.
func evil(text string) string {
	assertion := assertionPattern.FindString(text)
	assertion = signaturePattern.ReplaceAllString(assertion, "")
	assertion = regexp.MustCompile(` ID="[^"]*"`).ReplaceAllString(assertion, ` ID="_evil"`)
	return strings.Replace(assertion, ">ann-7<", ">bob-8<", 1)
}

var assertionPattern = regexp.MustCompile(`(?s)<saml:Assertion .*</saml:Assertion>`)

func twice(where string) func(string) string {
	return func(text string) string { return strings.Replace(text, where, evil(text)+where, 1) }
}

// wrapping are responses in which what is signed isn't what a reader may take: the eight forms of Somorovsky and others
// ("On Breaking SAML", 2012), and more. signed is the text as the provider has signed it.
var wrapping = []struct {
	name       string
	ofResponse bool // the provider signs the response
	wrap       func(signed string) string
}{
	{"1: the signed response in an Object of another's signature", true, func(signed string) string {
		outer := strings.Replace(signaturePattern.ReplaceAllString(signed, signatureOf(signed, "<ds:Object>"+withoutSignature(signed)+"</ds:Object>")), assertionPattern.FindString(signed), evil(signed), 1)
		return regexp.MustCompile(` ID="[^"]*"`).ReplaceAllStringFunc(outer, firstID())
	}},
	{"2: the signed response before the signature of another", true, func(signed string) string {
		outer := strings.Replace(signed, assertionPattern.FindString(signed), evil(signed), 1)
		outer = signaturePattern.ReplaceAllStringFunc(outer, func(signature string) string { return withoutSignature(signed) + signature })
		return strings.Replace(outer, ` ID="`, ` ID="_evil`, 1)
	}},
	{"3: another assertion before", false, twice(before)},
	{"4: another assertion around", false, func(signed string) string {
		wrapped := strings.Replace(evil(signed), "</saml:Assertion>", assertionPattern.FindString(signed)+"</saml:Assertion>", 1)
		return assertionPattern.ReplaceAllLiteralString(signed, wrapped)
	}},
	{"5: the signature in another, the signed one after", false, func(signed string) string {
		original, signature := withoutSignature(assertionPattern.FindString(signed)), signaturePattern.FindString(signed)
		other := strings.Replace(evil(signed), "<saml:Subject>", signature+"<saml:Subject>", 1)
		return assertionPattern.ReplaceAllLiteralString(signed, other+original)
	}},
	{"6: the signed one in the signature of another", false, func(signed string) string {
		original := withoutSignature(assertionPattern.FindString(signed))
		signature := strings.Replace(signaturePattern.FindString(signed), "</ds:Signature>", original+"</ds:Signature>", 1)
		return assertionPattern.ReplaceAllLiteralString(signed, strings.Replace(evil(signed), "<saml:Subject>", signature+"<saml:Subject>", 1))
	}},
	{"7: another in Extensions", false, func(signed string) string {
		return strings.Replace(signed, "<samlp:Status>", "<samlp:Extensions>"+evil(signed)+"</samlp:Extensions><samlp:Status>", 1)
	}},
	{"8: the signed one in an Object of another's signature", false, func(signed string) string {
		original := withoutSignature(assertionPattern.FindString(signed))
		signature := strings.Replace(signaturePattern.FindString(signed), "</ds:Signature>", "<ds:Object>"+original+"</ds:Object></ds:Signature>", 1)
		return assertionPattern.ReplaceAllLiteralString(signed, strings.Replace(evil(signed), "<saml:Subject>", signature+"<saml:Subject>", 1))
	}},
	{"9: another after", false, twice(after)},
	{"another in Advice of the signed one", false, func(signed string) string {
		return strings.Replace(signed, "<saml:AuthnStatement", "<saml:Advice>"+evil(signed)+"</saml:Advice><saml:AuthnStatement", 1)
	}},
	{"the signed one in Extensions, another in its place", false, func(signed string) string {
		original := assertionPattern.FindString(signed)
		return strings.Replace(assertionPattern.ReplaceAllLiteralString(signed, evil(signed)), "<samlp:Status>", "<samlp:Extensions>"+original+"</samlp:Extensions><samlp:Status>", 1)
	}},
	{"the signed one under another name, another in its place", false, func(signed string) string {
		original := strings.ReplaceAll(assertionPattern.FindString(signed), "saml:Assertion", "saml:Assertion2")
		return strings.Replace(assertionPattern.ReplaceAllLiteralString(signed, evil(signed)), "<samlp:Status>", "<samlp:Extensions>"+original+"</samlp:Extensions><samlp:Status>", 1)
	}},
	{"another with the id of the signed one", false, func(signed string) string {
		id := regexp.MustCompile(`<saml:Assertion [^>]* ID="([^"]*)"`).FindStringSubmatch(signed)[1]
		return strings.Replace(signed, after, strings.Replace(evil(signed), "_evil", id, 1)+after, 1)
	}},
	{"a signed response in the Extensions of another", true, func(signed string) string {
		outer := strings.Replace(withoutSignature(signed), assertionPattern.FindString(signed), evil(signed), 1)
		outer = strings.Replace(outer, ` ID="`, ` ID="_evil`, 1)
		return strings.Replace(outer, "<samlp:Status>", "<samlp:Extensions>"+signed+"</samlp:Extensions><samlp:Status>", 1)
	}},
}

func withoutSignature(text string) string { return signaturePattern.ReplaceAllString(text, "") }

// signatureOf returns the signature in the text, with more in it.
func signatureOf(text, more string) string {
	return strings.Replace(signaturePattern.FindString(text), "</ds:Signature>", more+"</ds:Signature>", 1)
}

// firstID replaces the first id that it sees.
func firstID() func(string) string {
	isFirst := true
	return func(id string) string {
		if isFirst {
			isFirst = false
			return ` ID="_evil2"`
		}
		return id
	}
}

func TestWrapping(t *testing.T) {
	for _, form := range wrapping {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) {
				a.SignAssertion, a.SignResponse = !form.ofResponse, form.ofResponse
				a.Edit = func(signed string) string {
					wrapped := form.wrap(signed)
					if !strings.Contains(wrapped, ">bob-8<") {
						t.Fatalf("nobody else is in %s", wrapped)
					}
					return wrapped
				}
			})
			if check := checkOf(t, err); check != fault.CheckStructure && check != fault.CheckSignature {
				t.Fatalf("refused by %q: %v, %+v", check, err, got)
			}
			checkFault(t, err)
		})
	}
}

// TestCommentsInNameID adds comments, which canonical forms leave out, so the signature stays right. The subject is the
// whole text in any case.
func TestCommentsInNameID(t *testing.T) {
	for name, ofResponse := range map[string]bool{"the assertion signed": false, "the response signed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) {
				a.NameID, a.SignAssertion, a.SignResponse = "ann@example.com.evil.example", !ofResponse, ofResponse
				a.Edit = replaced(">ann@example.com.evil.example<", "><!-- a -->ann@example.com<!-- b -->.evil.example<!-- c --><")
			})
			if err != nil || got.Subject != "ann@example.com.evil.example" || !got.SubjectIsAddress {
				t.Errorf("the subject is %q: %v", got.Subject, err)
			}
		})
	}
}

// TestBlanks cuts the blanks of XML off a NameID, and no others: a provider may have both names.
func TestBlanks(t *testing.T) {
	w := newWorld(t)
	for sent, want := range map[string]string{" ann-7\n\t": "ann-7", "ann-7\u00a0": "ann-7\u00a0", "\u2003ann-7": "\u2003ann-7", "ANN-7": "ANN-7"} {
		got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { a.NameID = sent })
		if err != nil || got.Subject != want {
			t.Errorf("NameID %q is read as %q: %v", sent, got.Subject, err)
		}
	}
}

// TestForms are forms that aren't read at all.
func TestForms(t *testing.T) {
	w := newWorld(t)
	form, err := w.provider.Form(w.provider.Answer(w.start(t, samlsp.Ask{}), w.now))
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, values ...string) url.Values {
		changed := url.Values{name: values}
		for key, value := range form {
			if key != name {
				changed[key] = value
			}
		}
		return changed
	}
	for name, c := range map[string]struct {
		form  url.Values
		check string
	}{
		"as it is":             {form, ""},
		"blanks in base64":     {with("SAMLResponse", form.Get("SAMLResponse")[:76]+"\r\n"+form.Get("SAMLResponse")[76:]), ""},
		"SAMLart":              {with("SAMLart", "AAQAAA=="), fault.CheckStructure},
		"an empty SAMLart":     {with("SAMLart", ""), fault.CheckStructure},
		"SigAlg":               {with("SigAlg", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"), fault.CheckStructure},
		"Signature":            {with("Signature", "AAAA"), fault.CheckStructure},
		"a request":            {with("SAMLRequest", "AAAA"), fault.CheckStructure},
		"no response":          {url.Values{}, fault.CheckStructure},
		"two responses":        {with("SAMLResponse", form.Get("SAMLResponse"), form.Get("SAMLResponse")), fault.CheckStructure},
		"no base64":            {with("SAMLResponse", "<samlp:Response/>"), fault.CheckStructure},
		"base64 of nothing":    {with("SAMLResponse", ""), fault.CheckStructure},
		"base64 of no text":    {samltest.FormOf("\xff\xfe<\x00", ""), fault.CheckStructure},
		"another root":         {samltest.FormOf("<a/>", ""), fault.CheckStructure},
		"more than a form has": {with("SAMLResponse", strings.Repeat("A", samlsp.FormMax+1)), fault.CheckSize},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := samlsp.Read(w.config, c.form, w.now)
			if check := checkOf(t, err); check != c.check {
				t.Errorf("refused by %q: %v", check, err)
			}
		})
	}
}

func TestUnsolicited(t *testing.T) {
	w := newWorld(t)
	_, err := w.signIn(t, samlsp.Ask{RelayState: "tab"}, func(a *samltest.Answer) {
		a.EditResponse = replaced(` InResponseTo="`+a.InResponseTo+`" IssueInstant`, " IssueInstant")
	})
	if !errors.Is(err, samlsp.ErrUnsolicited) {
		t.Errorf("a response without a request: %v", err)
	}
	// What wasn't read can't be finished either.
	if _, err := samlsp.Finish(w.config, samlsp.Response{}, w.now); checkOf(t, err) != fault.CheckStructure {
		t.Errorf("a response that wasn't read: %v", err)
	}
}

// TestRelayState is dropped where it can't be ours.
func TestRelayState(t *testing.T) {
	w := newWorld(t)
	request := w.start(t, samlsp.Ask{RelayState: "tab-1"})
	for sent, want := range map[string]string{"tab-1": "tab-1", "": "", strings.Repeat("x", 80): strings.Repeat("x", 80), strings.Repeat("x", 81): ""} {
		answer := w.provider.Answer(request, w.now)
		answer.RelayState = sent
		form, err := w.provider.Form(answer)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := samlsp.Read(w.config, form, w.now); err != nil || r.RelayState != want || r.RequestID != request.ID {
			t.Errorf("RelayState %q is read as %+v: %v", sent, r, err)
		}
	}
}

// TestFresh demands of a step-up that the person has signed in since it began.
func TestFresh(t *testing.T) {
	for name, c := range map[string]struct {
		at    time.Duration
		check string
	}{
		"now": {0, ""}, "3 min before": {-3 * time.Minute, ""}, "earlier": {-3*time.Minute - time.Second, fault.CheckAuthTime},
		"in 3 min": {3 * time.Minute, ""}, "later": {3*time.Minute + time.Second, fault.CheckAuthTime},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, isFresh := range []bool{true, false} {
				got, err := w.signIn(t, samlsp.Ask{Fresh: isFresh}, func(a *samltest.Answer) { a.AuthnInstant = w.now.Add(c.at) })
				want := c.check
				if !isFresh {
					want = ""
				}
				if check := checkOf(t, err); check != want || err == nil && !got.At.Equal(w.now.Add(c.at)) {
					t.Errorf("fresh %v: refused by %q: %v, at %v", isFresh, check, err, got.At)
				}
			}
		})
	}
}

// TestJudgedAgain judges a response by certificates that are read later, as after the provider has changed its own.
func TestJudgedAgain(t *testing.T) {
	w := newWorld(t)
	form, err := w.provider.Form(w.provider.Answer(w.start(t, samlsp.Ask{}), w.now))
	if err != nil {
		t.Fatal(err)
	}
	response, err := samlsp.Read(w.config, form, w.now)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(response), fmt.Sprintf("%+v %#v", response, response)} {
		if strings.Contains(text, "saml:") || strings.Contains(text, "115 97 109 108") || !strings.Contains(text, response.RequestID) {
			t.Errorf("a log shows %s", text)
		}
	}
	before := w.config
	before.Provider.Certificates = nil
	_, err = samlsp.Finish(before, response, w.now)
	if f, is := errors.AsType[*fault.Fault](err); !is || !f.ReadAgain {
		t.Fatalf("without the certificate: %v", err)
	}
	if _, err := samlsp.Finish(w.config, response, w.now); err != nil {
		t.Errorf("with it: %v", err)
	}
}

// TestCertificatesPastTheirEnd are good until they are taken away.
func TestCertificatesPastTheirEnd(t *testing.T) {
	w := newWorld(t)
	ended := *w.provider
	ended.Certificate = samltest.CertificateFor(ended.Key, w.now.AddDate(-1, 0, 0))
	w.provider, w.config.Provider.Certificates[0].DER = &ended, ended.Certificate
	for _, keyInfo := range []string{"", "-"} {
		if _, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { a.Signing.KeyInfo = keyInfo }); err != nil {
			t.Errorf("with KeyInfo %q: %v", keyInfo, err)
		}
	}
}

// TestSeveralCertificates is a provider that is about to change its certificate: either is good, with and without
// KeyInfo.
func TestSeveralCertificates(t *testing.T) {
	w := newWorld(t)
	second := metadata.Certificate{DER: otherProvider().Certificate}
	w.config.Provider.Certificates = append(w.config.Provider.Certificates, second)
	for _, by := range []*samltest.Provider{sharedProvider(), otherProvider()} {
		for _, keyInfo := range []string{"", "-"} {
			w.provider = by
			if _, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { a.Signing.KeyInfo = keyInfo }); err != nil {
				t.Errorf("with KeyInfo %q: %v", keyInfo, err)
			}
		}
	}
}

// TestLargestGroups is a person in as many groups as the gate lets through: libraries have limits of their own.
func TestLargestGroups(t *testing.T) {
	w := newWorld(t)
	w.config.GroupsFrom = "groups"
	for n, check := range map[int]string{gate.ElementsMax - 40: "", gate.ElementsMax: fault.CheckStructure} {
		got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) {
			a.Attributes = append(a.Attributes, samltest.Attribute{Name: "groups", Values: strings.Fields(numbered("g%d ", n))})
		})
		if checkOf(t, err) != check || err == nil && len(got.Groups.Names) != n {
			t.Errorf("%d groups are read as %d: %v", n, len(got.Groups.Names), err)
		}
	}
}
