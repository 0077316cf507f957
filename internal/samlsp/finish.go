package samlsp

import (
	"bytes"
	"crypto/rsa"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/xmlsec"
)

const (
	statusPrefix  = "urn:oasis:names:tc:SAML:2.0:status:"
	statusSuccess = statusPrefix + "Success"
	methodBearer  = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
)

// Finish judges a response that Read has read: with whatever certificates the Config has by now, so it can be called
// again. Errors: a *fault.Fault with one of Checks. With a fault of a check after certificate, Asserted has Names and Values,
// for a test to show.
func Finish(c Config, r Response, now time.Time) (Asserted, error) {
	j := &judge{Config: c, asked: r, now: now, passed: []string{fault.CheckSize, fault.CheckDoctype}}
	a, f := j.run()
	if f != nil {
		f.Passed = j.passed
		return a, f
	}
	a.Passed = j.passed
	return a, nil
}

// judge is where the judgement of a response stands.
type judge struct {
	Config
	asked     Response
	now       time.Time
	passed    []string
	response  *etree.Element // what its signature covers, or as it came
	isCovered bool           // by a signature of the response
	assertion *etree.Element // what a signature covers
	bearers   []*etree.Element
	signers   []string // fingerprints of the certificates that have signed
}

func (j *judge) pass(checks ...string) { j.passed = append(j.passed, checks...) }

// run makes all checks. With a fault after certificate it returns what a test shows.
func (j *judge) run() (Asserted, *fault.Fault) {
	root, err := dom.Parse(j.asked.text)
	if err != nil || root == nil {
		return Asserted{}, fault.Structure("a response that wasn't read")
	}
	if f := shapeOfResponse(root); f != nil {
		return Asserted{}, f
	}
	j.pass(fault.CheckStructure)
	if f := j.status(root); f != nil {
		j.pass(fault.CheckInResponseTo)
		return Asserted{}, f
	}
	if f := j.authenticate(root); f != nil {
		return Asserted{}, f
	}
	said := j.read()
	f := j.checks()
	if f == nil {
		f = j.second(said)
	}
	if f != nil {
		return Asserted{Names: said.Names, Values: said.Values}, f
	}
	j.pass(fault.CheckStatus)
	said.SignedBy = j.signers
	return said, nil
}

// checks judges an assertion that is authentic.
func (j *judge) checks() *fault.Fault {
	for _, check := range []struct {
		name  string
		judge func() *fault.Fault
	}{
		{fault.CheckIss, j.issuer},
		{fault.CheckAudience, j.audience},
		{fault.CheckRecipient, j.recipient},
		{fault.CheckDestination, j.destination},
		{fault.CheckInResponseTo, j.inResponseTo},
		{fault.CheckTime, j.times},
		{fault.CheckAuthTime, j.fresh},
		{fault.CheckNameID, j.nameID},
		{fault.CheckSub, j.subject},
	} {
		if f := check.judge(); f != nil {
			return f
		}
		j.pass(check.name)
	}
	return nil
}

// status refuses a response that says no. It needs no signature, as many such responses have none.
func (j *judge) status(root *etree.Element) *fault.Fault {
	code := dom.Only(dom.Only(root, dom.Protocol, "Status"), dom.Protocol, "StatusCode")
	if dom.Attribute(code, "Value") == statusSuccess {
		return nil
	}
	names := []string{strings.TrimPrefix(dom.Attribute(code, "Value"), statusPrefix)}
	if second := dom.Only(code, dom.Protocol, "StatusCode"); second != nil {
		names = append(names, strings.TrimPrefix(dom.Attribute(second, "Value"), statusPrefix))
	}
	seen := strings.Join(names, ", ")
	if message := dom.Only(dom.Only(root, dom.Protocol, "Status"), dom.Protocol, "StatusMessage"); message != nil {
		seen += ": " + dom.Text(message)
	}
	return &fault.Fault{Check: fault.CheckStatus, Seen: fault.Clip(seen), Wanted: "Success", Advice: adviceAboutStatus(names[len(names)-1])}
}

// adviceAboutStatus returns what to do about a status (saml-core 3.2.2.2).
func adviceAboutStatus(code string) string {
	switch code {
	case "AuthnFailed", "RequestDenied", "UnknownPrincipal":
		return fault.AdviceAssignment
	case "InvalidNameIDPolicy":
		return fault.AdviceNameID
	case "NoPassive", "Responder":
		return fault.AdviceRetry
	}
	return fault.AdviceRequest
}

// authenticate finds the assertion, and verifies that one of the connection's certificates covers it. A signature that
// is there has to be right, though another one would do. In a signed response nothing is decrypted before that.
func (j *judge) authenticate(root *etree.Element) (f *fault.Fault) {
	j.response = root
	if j.isCovered = dom.Only(root, dom.Signature, "Signature") != nil; j.isCovered {
		if j.response, f = j.verify(root); f != nil {
			return f
		}
		if f = shapeOfResponse(j.response); f != nil {
			return f
		}
		j.pass(fault.CheckAlg, fault.CheckSignature, fault.CheckCertificate)
	}
	// A signature of its own is verified where it came: the copy that the response's covers has lost declarations.
	plain, received := dom.Only(j.response, dom.Assertion, "Assertion"), dom.Only(root, dom.Assertion, "Assertion")
	if sealed := dom.Only(j.response, dom.Assertion, "EncryptedAssertion"); sealed != nil {
		if plain, f = j.decrypt(sealed); f != nil {
			return f
		}
		received = plain
		j.pass(fault.CheckEncryption)
	}
	return j.authenticateAssertion(plain, received)
}

// verify returns what the element's signature covers, and notes who has signed.
func (j *judge) verify(el *etree.Element) (*etree.Element, *fault.Fault) {
	signed, by, f := xmlsec.Verify(el, j.certificates())
	for _, certificate := range j.Provider.Certificates {
		if by != nil && bytes.Equal(certificate.DER, by) {
			j.signers = append(j.signers, certificate.Fingerprint)
		}
	}
	return signed, f
}

func (j *judge) certificates() (all [][]byte) {
	for _, certificate := range j.Provider.Certificates {
		all = append(all, certificate.DER)
	}
	return all
}

func (j *judge) decrypt(sealed *etree.Element) (*etree.Element, *fault.Fault) {
	var key *rsa.PrivateKey
	if j.Decrypt != nil {
		key = j.Decrypt.private
	}
	plain, f := xmlsec.Decrypt(sealed, key, j.isCovered)
	if f != nil {
		return nil, f
	}
	return opened(plain)
}

func (j *judge) authenticateAssertion(plain, received *etree.Element) (f *fault.Fault) {
	j.assertion = plain
	switch isSigned := dom.Only(received, dom.Signature, "Signature") != nil; {
	case isSigned:
		if j.assertion, f = j.verify(received); f != nil {
			return f
		}
		if f = shapeOfAssertion(j.assertion); f != nil {
			return f
		}
	case !j.isCovered:
		return &fault.Fault{Check: fault.CheckSignature, Seen: "none", Wanted: "a signature of the assertion, or of the response", Advice: fault.AdviceSign}
	}
	if !slices.Contains(j.passed, fault.CheckCertificate) {
		j.pass(fault.CheckAlg, fault.CheckSignature, fault.CheckCertificate)
	}
	return nil
}

func (j *judge) issuer() *fault.Fault {
	for _, el := range []*etree.Element{dom.Only(j.response, dom.Assertion, "Issuer"), dom.Only(j.assertion, dom.Assertion, "Issuer")} {
		if el != nil && dom.Text(el) != j.Provider.EntityID {
			return &fault.Fault{Check: fault.CheckIss, Seen: fault.Clip(dom.Text(el)), Wanted: fault.Clip(j.Provider.EntityID), Advice: fault.AdviceAnother}
		}
	}
	return nil
}

// audience demands that each AudienceRestriction has us (saml-core 2.5.1.4), and that there is one.
func (j *judge) audience() *fault.Fault {
	f := &fault.Fault{Check: fault.CheckAudience, Wanted: fault.Clip(j.EntityID), Advice: fault.AdviceAudience}
	restrictions := dom.Children(dom.Only(j.assertion, dom.Assertion, "Conditions"), dom.Assertion, "AudienceRestriction")
	if len(restrictions) == 0 {
		f.Seen = "none"
		return f
	}
	for _, restriction := range restrictions {
		isUs, seen := false, []string{}
		for _, audience := range dom.Children(restriction, dom.Assertion, "Audience") {
			isUs = isUs || dom.Text(audience) == j.EntityID
			seen = append(seen, dom.Text(audience))
		}
		if !isUs {
			f.Seen = fault.Clip(strings.Join(seen, " "))
			return f
		}
	}
	return nil
}

// recipient keeps the bearer confirmations that are for our acs (saml-profiles 4.1.4.2). One that stands all checks is
// enough.
func (j *judge) recipient() *fault.Fault {
	seen := "none"
	for _, confirmation := range dom.Children(dom.Only(j.assertion, dom.Assertion, "Subject"), dom.Assertion, "SubjectConfirmation") {
		data := dom.Only(confirmation, dom.Assertion, "SubjectConfirmationData")
		if dom.Attribute(confirmation, "Method") != methodBearer || data == nil {
			continue
		}
		if seen = dom.Attribute(data, "Recipient"); seen == j.ACSURL {
			j.bearers = append(j.bearers, data)
		}
	}
	if len(j.bearers) == 0 {
		return &fault.Fault{Check: fault.CheckRecipient, Seen: fault.Clip(seen), Wanted: fault.Clip(j.ACSURL), Advice: fault.AdviceACS}
	}
	return nil
}

// destination is demanded of a response that is signed (saml-bindings 3.5.5.2).
func (j *judge) destination() *fault.Fault {
	seen := dom.Attribute(j.response, "Destination")
	if seen == j.ACSURL || seen == "" && !j.isCovered {
		return nil
	}
	return &fault.Fault{Check: fault.CheckDestination, Seen: fault.Clip(seen), Wanted: fault.Clip(j.ACSURL), Advice: fault.AdviceACS}
}

func (j *judge) inResponseTo() *fault.Fault {
	isAnswer := func(el *etree.Element) bool { return dom.Attribute(el, "InResponseTo") == j.asked.RequestID }
	j.bearers = slices.DeleteFunc(j.bearers, func(el *etree.Element) bool { return !isAnswer(el) })
	_, _, isOurs := j.readID(j.asked.RequestID)
	if len(j.bearers) > 0 && isAnswer(j.response) && isOurs {
		return nil
	}
	return &fault.Fault{Check: fault.CheckInResponseTo, Seen: "an assertion for another request", Wanted: "this request", Advice: fault.AdviceStartAgain}
}

func (j *judge) times() *fault.Fault {
	conditions := dom.Only(j.assertion, dom.Assertion, "Conditions")
	if f := cmpFault(j.issued(j.response), j.issued(j.assertion), j.within(conditions)); f != nil {
		return f
	}
	var f *fault.Fault
	for _, data := range j.bearers {
		if f = j.within(data); f == nil && dom.Attribute(data, "NotOnOrAfter") == "" {
			f = j.wrongTime("a SubjectConfirmationData without NotOnOrAfter")
		}
		if f == nil {
			break
		}
	}
	for _, statement := range dom.Children(j.assertion, dom.Assertion, "AuthnStatement") {
		at, ok := dom.Time(statement, "AuthnInstant")
		until, okUntil := dom.Time(statement, "SessionNotOnOrAfter")
		if !ok || !okUntil || at.IsZero() {
			return j.wrongTime("an AuthnStatement without times")
		}
		if !until.IsZero() && !j.now.Before(until) {
			return j.wrongTime("SessionNotOnOrAfter " + stamp(until))
		}
	}
	return f
}

func cmpFault(all ...*fault.Fault) *fault.Fault {
	for _, f := range all {
		if f != nil {
			return f
		}
	}
	return nil
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (j *judge) wrongTime(seen string) *fault.Fault {
	return &fault.Fault{Check: fault.CheckTime, Seen: fault.Clip(seen), Wanted: "now: " + stamp(j.now), Advice: fault.AdviceClock}
}

// issued judges an IssueInstant.
func (j *judge) issued(el *etree.Element) *fault.Fault {
	at, ok := dom.Time(el, "IssueInstant")
	if !ok || at.IsZero() || at.Sub(j.now) > Skew || j.now.Sub(at) > IssuedMax {
		return j.wrongTime("IssueInstant " + dom.Attribute(el, "IssueInstant"))
	}
	return nil
}

// within judges NotBefore and NotOnOrAfter, either of which may be absent.
func (j *judge) within(el *etree.Element) *fault.Fault {
	from, okFrom := dom.Time(el, "NotBefore")
	until, okUntil := dom.Time(el, "NotOnOrAfter")
	if !okFrom || !from.IsZero() && from.Sub(j.now) > Skew {
		return j.wrongTime("NotBefore " + dom.Attribute(el, "NotBefore"))
	}
	if !okUntil || !until.IsZero() && !j.now.Before(until.Add(Skew)) {
		return j.wrongTime("NotOnOrAfter " + dom.Attribute(el, "NotOnOrAfter"))
	}
	return nil
}

// fresh demands of a request with ForceAuthn that the person has signed in since, and not later than now.
func (j *judge) fresh() *fault.Fault {
	if !j.asked.Fresh {
		return nil
	}
	at := j.signedInAt()
	if at.Before(j.asked.Began.Add(-Skew)) || at.Sub(j.now) > Skew {
		return &fault.Fault{Check: fault.CheckAuthTime, Seen: "AuthnInstant " + stamp(at), Wanted: "since " + stamp(j.asked.Began), Advice: fault.AdviceFresh}
	}
	return nil
}

// subjectMax is how many bytes a subject may have, as that of OpenID Connect.
const subjectMax = 255

func isSubject(text string) bool {
	return text != "" && len(text) <= subjectMax && !strings.ContainsFunc(text, isControl)
}

func (j *judge) nameID() *fault.Fault {
	el := dom.Only(dom.Only(j.assertion, dom.Assertion, "Subject"), dom.Assertion, "NameID")
	f := &fault.Fault{Check: fault.CheckNameID, Wanted: "a persistent one, of 1 to 255 bytes", Advice: fault.AdviceNameID}
	switch format := dom.Attribute(el, "Format"); {
	case !isSubject(dom.Text(el)):
		f.Seen = "none, one that is too long, or with control characters"
	case format == NameIDTransient && j.SubjectFrom == "":
		f.Seen = format
	default:
		return nil
	}
	return f
}

// subject demands one value of the attribute with the subject.
func (j *judge) subject() *fault.Fault {
	if j.SubjectFrom == "" {
		return nil
	}
	if values := j.attributes().values(j.SubjectFrom); len(values) != 1 || !isSubject(values[0]) {
		return &fault.Fault{
			Check: fault.CheckSub, Seen: "the attribute is absent, has several values, or one that is too long",
			Wanted: fault.Clip(j.SubjectFrom) + " with one value", Advice: fault.AdviceAttribute,
		}
	}
	return nil
}
