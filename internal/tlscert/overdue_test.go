package tlscert

import (
	"testing"
	"time"
)

// A failed renewal is reported only after autocert has begun to renew.
func TestOverdueAt(t *testing.T) {
	const day = 24 * time.Hour
	for lifetime, want := range map[time.Duration]time.Duration{time.Hour: 10 * time.Minute, 90 * day: 15 * day, 365 * day: 15 * day} {
		if got := overdueAt(lifetime); got != want {
			t.Errorf("of a lifetime of %s, %s are left, want %s", lifetime, got, want)
		}
	}
}
