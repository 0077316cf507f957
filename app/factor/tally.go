package factor

import "github.com/doorward/doorward/store"

// Happening is something that is counted for metrics.
type Happening int

// What is counted, by this node and since its start.
const (
	Passed    Happening = iota // the answer to a challenge completed a sign-in
	Recovered                  // the answer, a recovery code, completed a sign-in
	Asked                      // a challenge was made
	Proved                     // an answer proved a session again
	Refused                    // an answer was wrong
	happenings
)

// Tally counts something that has happened and is committed.
func (f *Factors) Tally(h Happening) { f.tallies[h].Add(1) }

// Tallied returns how often it has happened.
func (f *Factors) Tallied(h Happening) uint64 { return f.tallies[h].Load() }

// Totals are the factors of the installation at the last sweep, since to count them reads all
// of them; nothing before the first one.
func (f *Factors) Totals() store.FactorTotals {
	if totals := f.totals.Load(); totals != nil {
		return *totals
	}
	return store.FactorTotals{}
}
