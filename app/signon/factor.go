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
func trustsFactor(c doorward.Connection, amr []string, acr string) bool {
	if !c.TrustFactor {
		return false
	}
	in := func(values []string) bool {
		return slices.ContainsFunc(amr, func(m string) bool { return slices.Contains(values, m) })
	}
	return slices.Contains(amr, doorward.MethodSeveral) || in(firstFactors) && in(secondFactors) ||
		acr != "" && slices.Contains(c.FactorACR, acr)
}
