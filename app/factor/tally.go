package factor

import "github.com/doorward/doorward/store"

// Metric is a counter of this node, since its start.
type Metric int

// The counters.
const (
	Passed    Metric = iota // an answer other than a recovery code completed a sign-in or an acceptance
	Recovered               // a recovery code completed one of them
	Asked                   // a challenge was made
	Proved                  // an answer completed a step-up
	Refused                 // an answer was wrong
	metricCount
)

// Tally adds one to a counter. Call it after the commit.
func (f *Factors) Tally(m Metric) { f.tallies[m].Add(1) }

// Tallied returns the value of a counter.
func (f *Factors) Tallied(m Metric) uint64 { return f.tallies[m].Load() }

// Totals returns how many factors the installation had when ReadTotals was called last; zero before.
func (f *Factors) Totals() store.FactorTotals {
	if totals := f.totals.Load(); totals != nil {
		return *totals
	}
	return store.FactorTotals{}
}
