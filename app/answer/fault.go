package answer

import (
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// Fault is what a check has found wrong. Seen and Wanted are for administrators of the tenant: bounded, without control
// characters, tokens and secrets.
type Fault struct {
	Check        string
	Seen, Wanted string `json:",omitempty"`
	Advice       string `json:",omitempty"` // what to do: the key of a sentence
	Unavailable  bool   `json:",omitempty"` // nothing was refused: the provider can't be reached, or has a fault
	Err          error  `json:"-"`          // for the operator's log, without secrets; may be nil. With Unavailable the protocol's own fault
}

// Error says what failed.
func (f *Fault) Error() string {
	text := "the check " + f.Check + " failed"
	if f.Seen != "" {
		text += ": seen " + f.Seen
	}
	if f.Wanted != "" {
		text += ": wanted " + f.Wanted
	}
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// FaultOfOIDC returns the fault of internal/oidcrp.
func FaultOfOIDC(f *oidcrp.Fault) *Fault {
	of := &Fault{Check: f.Check, Seen: f.Seen, Wanted: f.Wanted, Advice: f.Advice, Unavailable: f.Unavailable, Err: f.Err}
	if f.Unavailable {
		of.Err = f
	}
	return of
}

// FaultOfSAML returns the fault of internal/samlsp.
func FaultOfSAML(f *fault.Fault) *Fault {
	of := &Fault{Check: f.Check, Seen: f.Seen, Wanted: f.Wanted, Advice: f.Advice, Unavailable: f.Unavailable, Err: f.Err}
	if f.Unavailable {
		of.Err = f
	}
	return of
}
