package outbox

import "time"

// Backoff has the pauses after each failed try. After the last one the work is
// dead.
type Backoff []time.Duration

// DefaultBackoff takes a little over two days: 53 pauses, so 54 tries.
var DefaultBackoff = func() Backoff {
	b := Backoff{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}
	for range 48 {
		b = append(b, time.Hour)
	}
	return b
}()

// State is the state of work after a try.
type State int

// The states.
const (
	Sent  State = iota
	Retry       // due again after a pause
	Dead        // not tried any more
)

// After returns the state of work after a try that ended in err, nil for success,
// and the pause before a Retry. earlierTries doesn't count this one. permanent
// means that the host refuses it permanently.
func (b Backoff) After(earlierTries int, err error, permanent bool) (State, time.Duration) {
	switch {
	case err == nil:
		return Sent, 0
	case permanent || earlierTries >= len(b):
		return Dead, 0
	}
	return Retry, b[earlierTries]
}
