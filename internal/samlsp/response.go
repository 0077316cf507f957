package samlsp

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"time"

	"github.com/beevik/etree"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/gate"
)

// ErrUnsolicited is the error of Read for a response that answers no request. It is not verified: let the person
// begin here, by one click.
var ErrUnsolicited = errors.New("samlsp: the response answers no request")

// Response is one that answers a request of the connection. Nothing in it is verified but RequestID.
type Response struct {
	RequestID  string
	Began      time.Time // when the request was made
	Fresh      bool      // the request was for a fresh sign-in
	Trial      bool      // the request was by a Config that is only tried, which Finish has to have, too
	RelayState string    // as it came; empty where it has more than RelayStateMax bytes
	text       []byte
}

// String names the request alone, so that a log doesn't show the assertion.
func (r Response) String() string { return "SAML response to " + r.RequestID }

// GoString is String, for %#v.
func (r Response) GoString() string { return r.String() }

// refusedFields are those of other bindings: of artifacts, and of HTTP-POST-SimpleSign.
var refusedFields = []string{"SAMLart", "SigAlg", "Signature", "SAMLRequest"}

// Read reads the form that a provider has the browser send to acs. Errors: ErrUnsolicited; a *fault.Fault with the check
// size, doctype, structure or in_response_to. Bound the form to FormMax bytes before.
func Read(c Config, form url.Values, now time.Time) (Response, error) {
	text, f := decode(form)
	if f != nil {
		return Response{}, f
	}
	root, err := dom.Parse(text)
	if err != nil || !dom.Is(root, dom.Protocol, "Response") || dom.Attribute(root, "Version") != version {
		return Response{}, &fault.Fault{
			Check: fault.CheckStructure, Passed: []string{fault.CheckSize, fault.CheckDoctype}, Wanted: "a Response of SAML 2.0", Advice: fault.AdviceProvider,
		}
	}
	r := Response{RequestID: dom.Attribute(root, "InResponseTo"), text: text}
	if states := form["RelayState"]; len(states) == 1 && len(states[0]) <= RelayStateMax {
		r.RelayState = states[0]
	}
	if r.RequestID == "" {
		return Response{}, ErrUnsolicited
	}
	began, flags, isOurs := c.readID(r.RequestID)
	r.Began, r.Fresh, r.Trial = began, flags&idFlagFresh != 0, flags&idFlagTrial != 0
	if !isOurs || isTooOld(r.Began, now) {
		return Response{}, &fault.Fault{
			Check: fault.CheckInResponseTo, Passed: []string{fault.CheckSize, fault.CheckDoctype, fault.CheckStructure}, Seen: seenRequest(isOurs),
			Wanted: "a request of this connection, of the last 10 minutes", Advice: fault.AdviceStartAgain,
		}
	}
	return r, nil
}

// version is that of SAML, in messages.
const version = "2.0"

// isTooOld reports whether a request isn't answered any more; nor one that is made later than now.
func isTooOld(began, now time.Time) bool {
	return now.Sub(began) > RequestMax || began.Sub(now) > Skew
}

func seenRequest(isOurs bool) string {
	if isOurs {
		return "a request that is too old"
	}
	return "the id of another request"
}

// byteOrderMark is that of UTF-8, which some providers write before a response (XML 1.0, 4.3.3). No signature covers it, and
// gate and parsers get the text without it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// decode returns the text of the form, which has passed the gate.
func decode(form url.Values) ([]byte, *fault.Fault) {
	for _, name := range refusedFields {
		if _, isThere := form[name]; isThere {
			return nil, fault.Structure("a form with " + name)
		}
	}
	if len(form["SAMLResponse"]) != 1 {
		return nil, fault.Structure("a form without SAMLResponse, or with several")
	}
	encoded := form.Get("SAMLResponse")
	if len(encoded) > FormMax {
		return nil, fault.OfGate(&gate.Error{Kind: gate.Size, What: "a form that is too long"})
	}
	text, err := base64.StdEncoding.DecodeString(dom.WithoutBlanks(encoded))
	if err != nil {
		return nil, fault.Structure("SAMLResponse is no base64")
	}
	text = bytes.TrimPrefix(text, byteOrderMark)
	if err := gate.Check(text); err != nil {
		f := fault.OfGate(err)
		for _, check := range []string{fault.CheckSize, fault.CheckDoctype} {
			if f.Check == check {
				break
			}
			f.Passed = append(f.Passed, check)
		}
		return nil, f
	}
	return text, nil
}

// shapeOfResponse checks the form of a response: in one of success, exactly one assertion, plain or encrypted, which
// is its child; signatures only where they are looked for.
func shapeOfResponse(root *etree.Element) *fault.Fault {
	status := dom.Only(dom.Only(root, dom.Protocol, "Status"), dom.Protocol, "StatusCode")
	if status == nil {
		return fault.Structure("a Response without one Status")
	}
	if len(dom.Children(root, dom.Assertion, "Issuer")) > 1 {
		return fault.Structure("two Issuers")
	}
	if dom.Attribute(status, "Value") != statusSuccess {
		return nil // it says no, whatever else it has
	}
	plain, encrypted := dom.Children(root, dom.Assertion, "Assertion"), dom.Children(root, dom.Assertion, "EncryptedAssertion")
	if len(plain)+len(encrypted) != 1 || dom.Count(root, "Assertion", "EncryptedAssertion") != 1 {
		return &fault.Fault{Check: fault.CheckStructure, Seen: "no assertion, or several", Wanted: "one", Advice: fault.AdviceProvider}
	}
	signatures := dom.Children(root, dom.Signature, "Signature")
	inner := 0
	if len(plain) == 1 {
		inner = len(dom.Children(plain[0], dom.Signature, "Signature"))
		if f := shapeOfAssertion(plain[0]); f != nil {
			return f
		}
	}
	if len(signatures) > 1 || dom.Count(root, "Signature") != len(signatures)+inner {
		return fault.Structure("a Signature in another place")
	}
	return nil
}

// onceInAssertion are elements of which an assertion has exactly one, and noneInAssertion some of which it has none:
// a subject in another form, what would have to be decrypted, and what a signature could hide.
var (
	onceInAssertion = []string{"Subject", "NameID", "Conditions"}
	noneInAssertion = []string{"BaseID", "EncryptedID", "EncryptedAttribute", "EncryptedAssertion", "EncryptedData", "Object"}
)

// shapeOfAssertion checks the form of an assertion.
func shapeOfAssertion(a *etree.Element) *fault.Fault {
	if !dom.Is(a, dom.Assertion, "Assertion") || dom.Attribute(a, "Version") != version || dom.Attribute(a, "ID") == "" || dom.Count(a, "Assertion") != 1 {
		return fault.Structure("no Assertion of SAML 2.0 with an ID")
	}
	if dom.Only(a, dom.Assertion, "Issuer") == nil {
		return fault.Structure("an Assertion without one Issuer")
	}
	for _, tag := range onceInAssertion {
		if dom.Count(a, tag) != 1 {
			return fault.Structure("an Assertion without one " + tag)
		}
	}
	if n := dom.Count(a, noneInAssertion...); n > 0 {
		return fault.Structure("an Assertion with BaseID, Object or something encrypted")
	}
	if n := len(dom.Children(a, dom.Signature, "Signature")); n > 1 || dom.Count(a, "Signature") != n {
		return fault.Structure("a Signature in another place")
	}
	return shapeOfStatements(a)
}

// knownConditions are those that this package judges, or that hold here anyway: each assertion is used once, and none
// is passed on (saml-core 2.5.1).
var knownConditions = []string{"AudienceRestriction", "OneTimeUse", "ProxyRestriction"}

func shapeOfStatements(a *etree.Element) *fault.Fault {
	conditions, subject := dom.Only(a, dom.Assertion, "Conditions"), dom.Only(a, dom.Assertion, "Subject")
	if conditions == nil || dom.Only(subject, dom.Assertion, "NameID") == nil {
		return fault.Structure("an Assertion without Conditions, or a Subject without NameID")
	}
	for _, condition := range conditions.ChildElements() {
		isKnown := false
		for _, tag := range knownConditions {
			isKnown = isKnown || dom.Is(condition, dom.Assertion, tag)
		}
		if !isKnown {
			return fault.Structure("an unknown condition, " + condition.Tag)
		}
	}
	if len(dom.Children(a, dom.Assertion, "AuthnStatement")) == 0 {
		return fault.Structure("an Assertion without AuthnStatement")
	}
	return nil
}

// opened reads what was decrypted.
func opened(plain []byte) (*etree.Element, *fault.Fault) {
	if err := gate.Check(plain); err != nil {
		return nil, fault.OfGate(err)
	}
	root, err := dom.Parse(plain)
	if err != nil {
		return nil, fault.Structure("no XML in the encrypted assertion")
	}
	return root, shapeOfAssertion(root)
}
