package provider

import (
	"errors"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/cause"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// issuerFaults say what to do about the codes of faults.
var issuerFaults = map[string]string{
	oidcrp.CodeInvalid:        "Copy the issuer from the provider: an https address without user, query and fragment. The endpoints that it names are https, too.",
	oidcrp.CodeMultiTenant:    "This address signs in people of any organisation. Use your directory's own address, with its id.",
	oidcrp.CodeIssuerMismatch: "The provider calls itself {seen}. Copy the issuer exactly, with or without the slash at its end.",
	oidcrp.CodeAddressRefused: "Providers are reached by https, on public addresses only. One inside your own network is reached once the operator allows its addresses (--sso-allow).",
}

// unreachable say what was seen, and what to do about it, for the causes of CodeUnreachable. {seen} is the
// status of an answer.
var unreachable = map[cause.Cause]string{
	cause.Status:    "The address answers {seen}, not with a provider's document. Look for a mistyped address: the document has to be below the issuer.",
	cause.Redirect:  "The address answers {seen}, which leads elsewhere. Enter the address that it leads to, if that is your provider's.",
	cause.NotJSON:   "The address answers something else than a provider's document. Look for a mistyped address.",
	cause.TooLong:   "The address answers more than a provider's document has. Look for a mistyped address.",
	cause.OtherName: "The certificate there is for another name. Look for a mistyped address, or have the certificate replaced.",
	cause.Untrusted: "The certificate there isn't trusted here, or has expired. The provider needs one of a public authority, with its whole chain.",
	cause.NoTLS:     "What answers there doesn't speak TLS. Providers are reached by https.",
	cause.NoHost:    "There is no host of this name. Look for a mistyped address.",
	cause.NoNames:   "The name servers of this host don't answer. Try again; if it goes on, ask who runs them.",
	cause.TimedOut:  "The provider doesn't answer in time. Look at its status, and whether a firewall drops requests from the Internet.",
	cause.Refused:   "The connection is refused there. Look at the address and its port, and whether the provider runs.",
	cause.Silent:    "The connection ended without an answer. Try again; if it goes on, ask who runs the provider.",
}

// IssuerFault returns the fault of the field /issuer: what was seen there, and what to do.
func IssuerFault(f *oidcrp.Fault) doorward.FieldError {
	found := doorward.FieldError{Pointer: "/issuer", Code: f.Code, Message: issuerFaults[f.Code]}
	switch {
	case f.Code == oidcrp.CodeUnreachable:
		found.Cause, found.Seen, found.Message = string(f.Cause), f.Seen, unreachable[f.Cause]
	case f.Code == oidcrp.CodeIssuerMismatch && f.Seen == "":
		found.Cause, found.Message = unnamed, "The document there names no issuer, so it isn't one of OpenID Connect. Look for a mistyped address."
	case f.Code == oidcrp.CodeIssuerMismatch:
		found.Seen = f.Seen
	}
	found.Message = strings.ReplaceAll(found.Message, "{seen}", found.Seen)
	return found
}

// unnamed is the cause of a document that names no issuer.
const unnamed = "unnamed"

// isFault reports whether err says what is wrong with a provider, by whatever protocol.
func isFault(err error) bool {
	_, ofOIDC := errors.AsType[*oidcrp.Fault](err)
	_, ofSAML := errors.AsType[*fault.Fault](err)
	return ofOIDC || ofSAML
}

// isUnavailable reports whether a fault says that the provider is out of reach.
func isUnavailable(err error) bool {
	if f, ofSAML := errors.AsType[*fault.Fault](err); ofSAML {
		return f.Unavailable
	}
	f, ofOIDC := errors.AsType[*oidcrp.Fault](err)
	return ofOIDC && f.Unavailable
}

// fieldFault returns the fault of the field that names where the provider says something of itself: /issuer, or
// /metadataUrl. err is a fault.
func fieldFault(err error) doorward.FieldError {
	if f, ofSAML := errors.AsType[*fault.Fault](err); ofSAML {
		return samlprovider.FieldFault(f, true)
	}
	f, _ := errors.AsType[*oidcrp.Fault](err)
	return IssuerFault(f)
}

// faultSeen returns what the protocol shows of a fault.
func faultSeen(err error) (seen, advice string) {
	code := ""
	if f, ofSAML := errors.AsType[*fault.Fault](err); ofSAML {
		code, seen, advice = f.Code, f.Seen, f.Advice
	}
	if f, ofOIDC := errors.AsType[*oidcrp.Fault](err); ofOIDC {
		code, seen, advice = f.Code, f.Seen, f.Advice
	}
	if seen == "" {
		return code, advice
	}
	return code + ": " + seen, advice
}
