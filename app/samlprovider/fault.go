package samlprovider

import (
	"net/url"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp/cause"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// textFaults say what to do about the codes of faults of metadata, as a text or at an address. {seen} is what was seen.
var textFaults = map[string]string{
	fault.CodeRequired:       "The metadata describe several providers. Choose yours by its entityID.",
	fault.CodeUnknownEntity:  "The metadata don't describe this provider. Choose one that they describe, or copy the entityID exactly.",
	fault.CodeInvalid:        "These are no metadata of a SAML 2.0 identity provider that takes requests by HTTP-Redirect at an https address. Copy the whole XML of the provider's metadata.",
	fault.CodeDoctype:        "The metadata have a document type, which is refused. Export them from the provider again, without <!DOCTYPE …>.",
	fault.CodeTooLarge:       "The metadata are larger than 256 KiB, or have too many parts. Export those of your provider alone.",
	fault.CodeNoCertificate:  "The metadata have no certificate that signs, by RSA with 2,048 bits or more. Add one at the provider, and export them again.",
	fault.CodeExpired:        "The metadata were good until {seen}. Export them from the provider again.",
	fault.CodeAddressRefused: "Metadata are read by https, on public addresses only. Those inside your own network can be read once the operator allows its addresses (--sso-allow); or give them as a text.",
}

// unreachable say what was seen at the address, and what to do about it, for the causes of CodeUnreachable.
var unreachable = map[string]string{
	string(cause.Status):    "The address answers {seen}, not with metadata. Look for a mistyped address.",
	string(cause.Redirect):  "The address answers {seen}, which leads elsewhere. Enter the address that it leads to, if that is your provider's.",
	string(cause.TooLong):   "The address answers more than metadata have. Look for a mistyped address.",
	string(cause.OtherName): "The certificate there is for another name. Look for a mistyped address, or have the certificate replaced.",
	string(cause.Untrusted): "The certificate there isn't trusted here, or has expired. The provider needs one of a public authority, with its whole chain; or give the metadata as a text.",
	string(cause.NoTLS):     "What answers there doesn't speak TLS. Metadata are read by https.",
	string(cause.NoHost):    "There is no host of this name. Look for a mistyped address.",
	string(cause.NoNames):   "The name servers of this host don't answer. Try again; if it goes on, ask who runs them.",
	string(cause.TimedOut):  "The provider doesn't answer in time. Look at its status, and whether a firewall drops requests from the Internet.",
	string(cause.Refused):   "The connection is refused there. Look at the address and its port, and whether the provider runs.",
	string(cause.Silent):    "The connection ended without an answer. Try again; if it goes on, ask who runs the provider.",
}

// invalidAddress is for an address that can't be one.
const invalidAddress = "Copy the address from the provider: https, without user and fragment, at most 1,024 bytes."

// FieldFault returns the fault of the field /metadataUrl, /metadata for a text, or /entityId: what was seen, and what to do.
func FieldFault(f *fault.Fault, atAddress bool) doorward.FieldError {
	found := doorward.FieldError{Pointer: "/metadata", Code: f.Code, Message: textFaults[f.Code], Seen: f.Seen, Cause: f.Cause, Entities: f.Entities}
	if atAddress {
		found.Pointer = "/metadataUrl"
	}
	switch f.Code {
	case fault.CodeRequired, fault.CodeUnknownEntity:
		found.Pointer = "/entityId"
	case fault.CodeUnreachable:
		found.Message = unreachable[f.Cause]
	}
	found.Message = strings.ReplaceAll(found.Message, "{seen}", found.Seen)
	return found
}

// UnknownEntity returns the fault of an entityID that is none of those that are known.
func UnknownEntity(known ...string) doorward.FieldError {
	return FieldFault(&fault.Fault{Code: fault.CodeUnknownEntity, Entities: known}, false)
}

// allRemoved is for metadata whose certificates were all taken away by hand.
const allRemoved = "All certificates of the metadata were taken away by hand, and only an OWNER can bring them back, by changing the metadata. Ask the person who sent you the link, or have the provider sign by another certificate."

// AllRemoved returns the fault of metadata whose certificates were all taken away by hand.
func AllRemoved(atAddress bool) doorward.FieldError {
	found := FieldFault(&fault.Fault{Code: fault.CodeNoCertificate, Cause: removed}, atAddress)
	found.Message = allRemoved
	return found
}

// removed is the cause of CodeNoCertificate where the metadata have some.
const removed = "removed"

// CheckAddress returns the fault of the field /metadataUrl where the text can't be an address of metadata.
func CheckAddress(address string) []doorward.FieldError {
	u, err := url.Parse(address)
	isAddress := err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && !strings.Contains(address, "#") && len(address) <= addressMax
	if isAddress {
		return nil
	}
	return []doorward.FieldError{{Pointer: "/metadataUrl", Code: fault.CodeInvalid, Message: invalidAddress, Cause: notAddress}}
}

// addressMax is how many bytes an address may have, as in package metadata.
const addressMax = 1024

// notAddress is the cause of a fault of the address, not of what is there.
const notAddress = "address"
