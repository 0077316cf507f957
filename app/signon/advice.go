package signon

import (
	"slices"

	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/testrun"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// The checks of this package, beside those of internal/oidcrp and app/joining.
const (
	CheckState  = oidcrp.CheckState
	CheckFactor = "factor"
)

// The advice of this package's checks: keys of texts, as those of oidcrp.
const (
	adviceFactor  = "factor"  // the account can't set up the second factor that the tenant demands
	adviceContext = "context" // the provider has signed the person in by none of the contexts of factorAcr
)

// Advices are all keys of advice in protocols and tests. The console has a sentence for each, and for some of
// them one in the words of a product.
var Advices = func() []string {
	all := slices.Concat(oidcrp.Advices, fault.Advices, joining.Advices, testrun.Advices, []string{adviceFactor, adviceContext})
	slices.Sort(all)
	return slices.Compact(all)
}()

// adviceOf has what to do about checks of others than joining that refuse people whom the provider has signed in.
var adviceOf = map[string]string{
	CheckFactor: adviceFactor, CheckState: oidcrp.AdviceStartAgain, oidcrp.CheckSub: oidcrp.AdviceStartAgain,
	fault.CheckTime: fault.AdviceClock, fault.CheckCertificate: fault.AdviceCertificate,
}

// AdviceOf returns what to do about a check that refuses people; one of Advices.
func AdviceOf(check string) string {
	if advice := joining.AdviceOf(check); advice != "" {
		return advice
	}
	return adviceOf[check]
}

func faultOf(check string) answer.Fault { return answer.Fault{Check: check, Advice: AdviceOf(check)} }
