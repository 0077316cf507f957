package signon

import (
	"slices"

	"github.com/doorward/doorward"
)

// Values of amr that stand for a first and a second factor (RFC 8176, section 2).
var (
	firstFactors  = []string{"pwd", "pin"}
	secondFactors = []string{"otp", "sms", "swk", "hwk", "face", "fpt"}
)

// trustsFactor reports whether the provider has asked for a second factor, in words that the connection
// trusts.
func trustsFactor(c doorward.Connection, h held) bool {
	return c.TrustFactor && (h.Several || h.ACR != "" && slices.Contains(c.FactorACR, h.ACR))
}

// saysSeveral reports whether the methods are those of several factors. It reads all that oidcrp has taken, of which
// held keeps a few.
func saysSeveral(amr []string) bool {
	in := func(values []string) bool {
		return slices.ContainsFunc(amr, func(m string) bool { return slices.Contains(values, m) })
	}
	return slices.Contains(amr, doorward.MethodSeveral) || in(firstFactors) && in(secondFactors)
}
