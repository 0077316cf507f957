package signon

import (
	"slices"
	"sync/atomic"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// Metric is how sign-ins and step-ups by connections of this process have ended. It names no connection: an
// installation may have as many as it likes, and each has its protocol.
type Metric struct {
	Outcome doorward.AttemptOutcome
	Check   string // of AttemptRefused: which refused; empty for reasons that are no check, such as a frozen tenant
}

// Metrics are all of them.
var Metrics = func() []Metric {
	all := []Metric{{Outcome: doorward.AttemptSignedIn}, {Outcome: doorward.AttemptAsked}, {Outcome: doorward.AttemptDone}, {Outcome: doorward.AttemptUnavailable}, {Outcome: doorward.AttemptRefused}}
	names := slices.Concat(oidcrp.Checks, fault.Checks, joining.Checks, []string{CheckFactor})
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		all = append(all, Metric{doorward.AttemptRefused, name})
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

// add counts n attempts. Tests of connections are none.
func (t tally) add(kind doorward.AttemptKind, outcome doorward.AttemptOutcome, check string, n int) {
	if kind == doorward.AttemptTest {
		return
	}
	m := Metric{Outcome: outcome}
	if outcome == doorward.AttemptRefused && t[Metric{outcome, check}] != nil {
		m.Check = check
	}
	t[m].Add(uint64(n))
}

// Tallied returns how often it was since the process began.
func (s *SignOn) Tallied(m Metric) uint64 { return s.tally[m].Load() }
