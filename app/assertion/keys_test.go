package assertion

import (
	"testing"
	"time"

	"github.com/doorward/doorward/store"
)

// TestStartOnAllNodes: a key that signs at once also does so on a node whose clock is behind, and
// starts after the keys before it.
func TestStartOnAllNodes(t *testing.T) {
	now := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, before := range map[string][]store.SigningKey{
		"no key before it":            nil,
		"one that began long ago":     {{StartsAt: now.Add(-time.Hour)}},
		"one that began a moment ago": {{StartsAt: now.Add(-time.Hour)}, {StartsAt: now.Add(-time.Second)}},
	} {
		got := startOnAllNodes(before, now)
		if !got.Before(now) || len(before) > 0 && !got.After(before[len(before)-1].StartsAt) {
			t.Errorf("%s: it begins at %v", name, got)
		}
		if len(before) < 2 && got.After(now.Add(-30*time.Second)) {
			t.Errorf("%s: for a node whose clock is behind it begins only at %v", name, got)
		}
	}
}
