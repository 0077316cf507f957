package signoff

import (
	"sync/atomic"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
)

// Kind is how a provider ends sessions.
type Kind string

// The kinds.
const (
	Revocation Kind = "revocation"
	Logout     Kind = "logout"
)

// refusal returns the error for a token that is refused. The caller is told no more than the check: what was seen is in
// the protocol.
func (k Kind) refusal(f oidcrp.Fault) *doorward.Error {
	if k == Logout {
		return &doorward.Error{Code: doorward.CodeSignOnRefused, Check: f.Check, Err: &f}
	}
	e := doorward.Fail(doorward.CodeUnauthenticated, "The token of the request was refused. The protocol of the connection says why.")
	e.Err = &f
	return e
}

// Metric is how requests of providers have ended.
type Metric struct {
	Kind    Kind
	Outcome doorward.AttemptOutcome // done, refused or unavailable
}

// Metrics are all of them.
var Metrics = func() (all []Metric) {
	for _, kind := range []Kind{Revocation, Logout} {
		for _, outcome := range []doorward.AttemptOutcome{doorward.AttemptDone, doorward.AttemptRefused, doorward.AttemptUnavailable} {
			all = append(all, Metric{kind, outcome})
		}
	}
	return all
}()

// tally counts by Metric; newTally makes one.
type tally map[Metric]*atomic.Uint64

func newTally() tally {
	t := tally{}
	for _, m := range Metrics {
		t[m] = new(atomic.Uint64)
	}
	return t
}

func (t tally) add(kind Kind, outcome doorward.AttemptOutcome) { t[Metric{kind, outcome}].Add(1) }

// Tallied returns how often it was since the process began.
func (s *SignOff) Tallied(m Metric) uint64 { return s.tally[m].Load() }
