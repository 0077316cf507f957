package front

import (
	"maps"
	"strings"
	"sync"
	"time"
)

// outage thins out the lines about checks that can't be answered. Gateways ask
// thousands of times a second, of a database that is gone too: a line for each
// would fill the disk of the log and hide what else it says. Its lock is taken
// for such failures alone.
type outage struct {
	mu      sync.Mutex
	told    map[string]time.Time // by cause: when it had a line
	leftOut int                  // since the last line of any cause
}

const (
	// quiet is how long a cause that had a line has no other.
	quiet = time.Second
	// mostCauses bounds the memory, and with it the lines in that time.
	mostCauses = 8
)

// line reports whether a failure with the cause has a line at the time, and how
// many had none since the line before.
func (o *outage) line(cause string, now time.Time) (leftOut int, ok bool) {
	cause = strings.Map(withoutDigits, cause)
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.told, func(_ string, at time.Time) bool { return now.Sub(at) >= quiet })
	if _, just := o.told[cause]; just || len(o.told) >= mostCauses {
		o.leftOut++
		return 0, false
	}
	if o.told == nil {
		o.told = map[string]time.Time{}
	}
	o.told[cause] = now
	leftOut, o.leftOut = o.leftOut, 0
	return leftOut, true
}

// withoutDigits makes one cause of errors that differ in the port of a connection.
func withoutDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}
