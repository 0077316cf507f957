package signon

import (
	"slices"

	"github.com/doorward/doorward"
)

// Values of amr that stand for several factors, or for a first and a second one (RFC 8176, section 2). In SAML, Entra ID
// and AD FS have a name of their own for it (learn.microsoft.com, "SAML token claims reference"), and universities that of
// REFEDS (refeds.org/profile/mfa).
var (
	severalFactors = []string{doorward.MethodSeveral, "http://schemas.microsoft.com/claims/multipleauthn", "https://refeds.org/profile/mfa"}
	firstFactors   = []string{"pwd", "pin"}
	secondFactors  = []string{"otp", "sms", "swk", "hwk", "face", "fpt"}
)

// trustsFactor reports whether the provider has asked for a second factor, in words that the connection
// trusts.
func trustsFactor(c doorward.Connection, h held) bool {
	return c.TrustFactor && (h.Several || h.ACR != "" && slices.Contains(c.FactorACR, h.ACR))
}

// saysSeveral reports whether the methods are those of several factors. It reads all of them, of which held keeps a
// few.
func saysSeveral(amr []string) bool {
	in := func(values []string) bool {
		return slices.ContainsFunc(amr, func(m string) bool { return slices.Contains(values, m) })
	}
	return in(severalFactors) || in(firstFactors) && in(secondFactors)
}
