package outbox

import "time"

const (
	restMin = time.Second
	restMax = 30 * time.Second
)

// breaker rests while the one server through which all work goes can't be reached (a circuit breaker: M. Nygard,
// Release It!, 2007). After a rest one try is made; if that fails, too, the next rest is twice as long, up to
// restMax. The zero breaker lets all tries begin.
type breaker struct {
	rest  time.Duration // the last one; 0: the server can be reached
	until time.Time
}

// lets reports whether a try may begin beside those that are running.
func (b *breaker) lets(now time.Time, running int) bool {
	return b.rest == 0 || running == 0 && !now.Before(b.until)
}

// observe takes the result of a try that was sent.
func (b *breaker) observe(now time.Time, isUnreachable bool) {
	switch {
	case !isUnreachable:
		b.rest = 0
	case b.rest == 0 || !now.Before(b.until): // the others that were under way say nothing new
		b.rest = min(max(2*b.rest, restMin), restMax)
		b.until = now.Add(b.rest)
	}
}
