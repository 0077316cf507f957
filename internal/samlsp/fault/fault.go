// Package fault names what is wrong with a response or with metadata: by the check that failed, in words that may be
// shown to administrators, and with what to do.
package fault

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/internal/samlsp/gate"
)

// The checks, by which a Fault names what failed.
const (
	CheckOfMetadata   = "metadata" // of package metadata alone
	CheckSize         = "size"
	CheckDoctype      = "doctype"
	CheckStructure    = "structure"
	CheckAlg          = "alg"         // algorithms of signatures
	CheckSignature    = "signature"   // there is none, or what it covers was changed
	CheckCertificate  = "certificate" // it is by none of the connection's certificates
	CheckEncryption   = "encryption"
	CheckIss          = "iss"
	CheckAudience     = "audience"
	CheckRecipient    = "recipient"
	CheckDestination  = "destination"
	CheckInResponseTo = "in_response_to"
	CheckTime         = "time"
	CheckAuthTime     = "auth_time" // of a response to a request for a fresh sign-in
	CheckReplay       = "replay"    // the caller's: each Asserted.AssertionID once
	CheckNameID       = "nameid"
	CheckSub          = "sub"
	CheckStatus       = "status" // no sign-in: what the provider answers instead
)

// Checks are those of Read and Finish. Not every response needs each of them, so Fault.Passed and
// Asserted.Passed say which were made.
var Checks = []string{
	CheckSize, CheckDoctype, CheckStructure, CheckAlg, CheckSignature, CheckCertificate, CheckEncryption, CheckIss,
	CheckAudience, CheckRecipient, CheckDestination, CheckInResponseTo, CheckTime, CheckAuthTime, CheckReplay,
	CheckNameID, CheckSub, CheckStatus,
}

// The codes of faults of package metadata.
const (
	CodeRequired       = "required"        // the text has several providers; Fault.Entities has them
	CodeUnknownEntity  = "unknown_entity"  // it has others; Fault.Entities has them
	CodeInvalid        = "invalid"         // no metadata of a provider, or none that can be used; an address without https
	CodeDoctype        = "doctype"         // a document type
	CodeTooLarge       = "too_large"       // more than one of the limits of package gate
	CodeNoCertificate  = "no_certificate"  // no certificate that signs, or none that can be used
	CodeExpired        = "expired"         // by validUntil
	CodeUnreachable    = "unreachable"     // nothing there; Fault.Cause says why
	CodeAddressRefused = "address_refused" // by the guard of the http.Client
)

// The advice of faults: keys of the sentences that say what to do.
const (
	AdviceACS         = "acs_address"       // copy our acsUrl to the provider
	AdviceAnother     = "another_provider"  // the response is of another provider than the one that was asked
	AdviceAssignment  = "assignment"        // assign the person to the application at the provider
	AdviceAttribute   = "subject_attribute" // send the attribute that subjectFrom names, with one value
	AdviceAudience    = "audience"          // copy our spEntityId to the provider
	AdviceCertificate = "certificate"       // read the provider's metadata again
	AdviceClock       = "clock"             // compare the clocks
	AdviceEncryption  = "encryption"        // encrypt by AES-GCM and RSA-OAEP, to the key in our metadata
	AdviceFresh       = "fresh"             // sign the person in again for ForceAuthn
	AdviceEntity      = "metadata_entity"   // the metadata of the connection's address are of another provider
	AdviceNameID      = "name_id"           // send a persistent NameID
	AdviceNetwork     = "network"           // the provider is at an address that this installation doesn't call
	AdviceProvider    = "provider"          // the provider doesn't follow SAML 2.0
	AdviceRedirect    = "redirect"          // the address leads elsewhere; copy the final one
	AdviceRequest     = "request_signed"    // the provider wants signed requests, or another form of them
	AdviceRetry       = "retry"             // try again; look at the provider's status
	AdviceSHA256      = "signing_sha256"    // sign by SHA-256
	AdviceSign        = "sign_assertion"    // sign the assertion, or the response
	AdviceSignToo     = "sign_response"     // sign the response, too, or encrypt by AES-GCM
	AdviceStartAgain  = "start_again"       // the sign-in took too long, or was begun elsewhere
	AdviceTakenAway   = "taken_away"        // make a new certificate at the provider: those that it has were taken away by hand
	AdviceTLS         = "tls"               // the certificate of the provider's server
)

// Advices are all of them.
var Advices = []string{
	AdviceACS, AdviceAnother, AdviceAssignment, AdviceAttribute, AdviceAudience, AdviceCertificate, AdviceClock, AdviceEncryption,
	AdviceEntity, AdviceFresh, AdviceNameID, AdviceNetwork, AdviceProvider, AdviceRedirect, AdviceRequest, AdviceRetry, AdviceSHA256, AdviceSign,
	AdviceSignToo, AdviceStartAgain, AdviceTakenAway, AdviceTLS,
}

// Fault says which check failed. Seen and Wanted are for administrators of the tenant: at most textMax
// characters, without control characters, and never an assertion. Err is for the operator's log, may be nil, and
// holds none either.
type Fault struct {
	Check        string   // one of Checks, or CheckOfMetadata
	Passed       []string // the checks that were made before, in their order
	Code         string   // of CheckOfMetadata
	Seen, Wanted string
	Advice       string   // one of Advices, or empty
	Cause        string   // of CodeUnreachable: what WithCause said, or "status", "redirect", "too_long"
	Entities     []string // of CodeRequired and CodeUnknownEntity: the providers in the text, at most entitiesMax
	Unavailable  bool     // nothing was refused: the metadata can't be reached
	// ReadAgain says that the response is signed by none of the certificates: the provider may have a new one. Read
	// its metadata again, and let Finish judge the same response again. Signer is the fingerprint of the certificate that
	// the response names, as of package metadata; empty: it names none.
	ReadAgain bool
	Signer    string
	Err       error
}

// Error says what failed.
func (f *Fault) Error() string {
	text := "check " + f.Check + " of SAML failed"
	for _, part := range []struct{ before, what, after string }{
		{" (", f.Code, ")"}, {": seen ", f.Seen, ""}, {": wanted ", f.Wanted, ""},
	} {
		if part.what != "" {
			text += part.before + part.what + part.after
		}
	}
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Structure returns the fault of a response whose form is wrong.
func Structure(seen string) *Fault {
	return &Fault{Check: CheckStructure, Seen: Clip(seen), Advice: AdviceProvider}
}

// OfGate returns the fault of a response that package gate refuses.
func OfGate(err error) *Fault {
	f := Structure(err.Error())
	if refused, is := errors.AsType[*gate.Error](err); is {
		f.Seen = Clip(refused.What)
		switch refused.Kind {
		case gate.Size:
			f.Check = CheckSize
		case gate.Doctype:
			f.Check = CheckDoctype
		}
	}
	return f
}

// textMax bounds Seen and Wanted, and values that are shown, in characters.
const textMax = 200

// Clip returns the text on one line, without control characters and characters that turn the
// direction of reading, and of at most textMax characters.
func Clip(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), 4*textMax+utf8.UTFMax)], "�")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) <= textMax {
		return text
	}
	return string([]rune(text)[:textMax-1]) + "…"
}
