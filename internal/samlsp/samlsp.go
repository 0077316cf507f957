// Package samlsp is the service provider of SAML 2.0, for the browser profile alone: HTTP-Redirect out, HTTP-POST
// in, for providers that customers have chosen and that may lie.
//
//	provider, err := client.Fetch(ctx, address, "")    // of package metadata; keep it, read it daily
//	address, id, err := samlsp.Start(config, samlsp.Ask{RelayState: state}, now)
//	response, err := samlsp.Read(config, form, now)    // at acs: whether it answers a request of ours
//	asserted, err := samlsp.Finish(config, response, now)
//
// Each error is a *fault.Fault, which names the check that failed, or ErrUnsolicited. What is read passes package gate
// before a parser sees it, and what was decrypted passes it again. Then this package checks everything itself, on
// the bytes that a signature covers, and github.com/crewjam/saml judges the same response: both have to accept it
// and to read the same subject.
//
// It guarantees:
//
//   - The assertion is the only one in the response, and is covered by a signature (its own, or the response's) by
//     one of the connection's certificates, with RSA and SHA-2. One in a response only says which of them is
//     meant. Their dates are not looked at: a certificate is good until it is taken away.
//   - It answers a request of this connection: the request's id is sealed by Config.MACKey over connection and time.
//     That it is this browser's request is the caller's to judge, by Response.RequestID.
//   - It is for us: Audience, Recipient, Destination; and it is new: IssueInstant within IssuedMax.
//   - Nothing is called but the address of the metadata. Faults hold no assertion, and are bounded.
//
// Replays are the caller's: Asserted has the assertion's id, and until when it could be accepted again; use each id
// of a connection once. There is no single logout and no artifact.
package samlsp

import (
	"time"

	"github.com/doorward/doorward/internal/samlsp/metadata"
)

const (
	// FormMax is how many bytes a form at acs may have: that of the largest response, in base64.
	FormMax = 400 << 10
	// Skew is how far the clocks of provider and Doorward may be apart.
	Skew = 3 * time.Minute
	// IssuedMax is how old a response and its assertion may be.
	IssuedMax = 10 * time.Minute
	// RequestMax is how long after a request its response is taken.
	RequestMax = 10 * time.Minute
	// RelayStateMax is how many bytes of RelayState there may be (saml-bindings 3.4.3).
	RelayStateMax = 80
)

// Config is what a connection signs people in by.
type Config struct {
	ConnectionID string // what the ids of requests are sealed for
	EntityID     string // ours, which is the address of our metadata
	ACSURL       string // where providers send responses
	Provider     metadata.Provider
	MACKey       []byte // 32 bytes, the same on every node
	Sign         *Key   // signs requests; nil: they aren't signed
	Decrypt      *Key   // decrypts assertions; nil: encrypted ones are refused

	NameIDFormat string // that requests ask for; one of NameIDFormats, empty: the provider chooses
	SubjectFrom  string // the attribute with the subject; empty: the NameID
	AddressFrom  string // the attribute with the address; empty: "email"; "NameID": the NameID
	GroupsFrom   string // the attribute with the groups; empty: none
}

// The formats of NameIDs (saml-core 8.3).
const (
	NameIDUnspecified = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
	NameIDEmail       = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	NameIDPersistent  = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	NameIDTransient   = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
)

// NameIDFormats are those that a request can ask for. A transient NameID is another one at each sign-in, so it needs
// Config.SubjectFrom.
var NameIDFormats = []string{NameIDUnspecified, NameIDEmail, NameIDPersistent, NameIDTransient}
