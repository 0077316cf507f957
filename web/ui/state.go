package ui

import (
	"fmt"

	"github.com/doorward/doorward"
)

// Tags are what the head of a page about one object says below its name, in this order. Its template
// is "tags".
type Tags struct {
	State    string        // key of the message of its state; empty for none
	Role     doorward.Role // empty for none
	Kinds    []string      // keys of messages
	Warnings []string      // keys of messages about what is left to do
	About    string        // what somebody wrote about it, or the address of a person
}

// IsEmpty reports whether there is nothing to say.
func (t Tags) IsEmpty() bool {
	return t.State == "" && t.Role == "" && len(t.Kinds)+len(t.Warnings) == 0 && t.About == ""
}

// Tones of states, as classes of a tag: a good state has none.
const (
	quietTone = "quiet" // over or turned off, nothing to do
	warmTone  = "warm"  // waits, or is tried again
	alarmTone = "alarm" // somebody or something is shut out
)

// tones are the tones of all states that pages show as a tag, by the key of the message that names the
// state. States of one word have one tone. A factor that Doorward has disabled is called blocked: it may be
// a copy or somebody else's, while a disabled key was turned off.
var tones = map[string]string{
	"status.active": "", "status.suspended": alarmTone, "status.disabled": quietTone, "status.expired": quietTone, "status.revoked": quietTone,
	"status.frozen": alarmTone, "status.closing": alarmTone, "status.failing": warmTone, "status.unreliable": warmTone,
	"state.PENDING": warmTone, "state.ACCEPTED": "", "state.REVOKED": quietTone, "state.EXPIRED": quietTone,
	"hooks.delivery.pending": warmTone, "hooks.delivery.delivered": "", "hooks.delivery.failed": alarmTone, "hooks.delivery.dropped": quietTone,
	"sso.state.draft": warmTone, "sso.state.active": "", "sso.state.disabled": quietTone,
	"sso.proof.pending": warmTone, "sso.proof.verified": "", "sso.proof.lapsed": alarmTone,
	"operator.state.alive": "", "operator.state.new": warmTone, "operator.state.silent": alarmTone,
	"operator.state.queued": warmTone, "operator.state.pending": warmTone, "operator.state.failed": alarmTone, "operator.state.dropped": quietTone,
	"factor.disabled":      alarmTone,
	"hooks.kind.delivered": "", "hooks.kind.refused": alarmTone, "hooks.kind.silent": warmTone,
}

// tone returns the class of the state's tag, and an error for a state that the table lacks.
func tone(key string) (string, error) {
	class, isKnown := tones[key]
	if !isKnown {
		return "", fmt.Errorf("ui: no tone for %q: add it to tones", key)
	}
	return class, nil
}
