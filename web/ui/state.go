package ui

import "fmt"

// Tones of states, as classes of a tag: a good state has none.
const (
	quietTone = "quiet" // over, nothing to do
	warmTone  = "warm"  // waits for somebody, or was turned off
	alarmTone = "alarm" // somebody or something is shut out
)

// tones are the tones of all states that pages show as a tag, by the key of the message that names the
// state. States of one word have one tone.
var tones = map[string]string{
	"status.active": "", "status.suspended": alarmTone, "status.disabled": warmTone, "status.expired": quietTone, "status.revoked": quietTone,
	"status.frozen": alarmTone, "status.closing": alarmTone,
	"state.PENDING": warmTone, "state.ACCEPTED": "", "state.REVOKED": quietTone, "state.EXPIRED": quietTone,
	"hooks.state.enabled": "", "hooks.state.failing": warmTone, "hooks.state.disabled": warmTone,
	"hooks.delivery.pending": warmTone, "hooks.delivery.delivered": "", "hooks.delivery.failed": alarmTone, "hooks.delivery.dropped": quietTone,
	"factor.disabled": warmTone,
}

// tone returns the class of the state's tag, and an error for a state that the table lacks.
func tone(key string) (string, error) {
	class, isKnown := tones[key]
	if !isKnown {
		return "", fmt.Errorf("ui: no tone for %q: add it to tones", key)
	}
	return class, nil
}
