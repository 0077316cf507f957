package signon

import (
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
)

// Values of amr that stand for a first and a second factor (RFC 8176, section 2).
var (
	firstFactors  = []string{"pwd", "pin"}
	secondFactors = []string{"otp", "sms", "swk", "hwk", "face", "fpt"}
)

// trustsFactor reports whether the provider has asked for a second factor, in words that the connection
// trusts.
func trustsFactor(c doorward.Connection, a oidcrp.Asserted) bool {
	if !c.TrustFactor {
		return false
	}
	in := func(values []string) bool {
		return slices.ContainsFunc(a.AMR, func(m string) bool { return slices.Contains(values, m) })
	}
	return slices.Contains(a.AMR, doorward.MethodSeveral) || in(firstFactors) && in(secondFactors) ||
		a.ACR != "" && slices.Contains(c.FactorACR, a.ACR)
}
