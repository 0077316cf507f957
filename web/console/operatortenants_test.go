package console

import (
	"math"
	"testing"
)

// A quota is nearly used from nine tenths on, also the greatest there is.
func TestNearTheQuota(t *testing.T) {
	for _, c := range []struct {
		used, most int64
		want       bool
	}{{0, 0, true}, {0, 1, false}, {1, 1, true}, {8, 10, false}, {9, 10, true}, {13, 15, false}, {14, 15, true}, {0, 2_000_000_000_000_000_000, false}, {0, math.MaxInt64, false}, {math.MaxInt64 - 1, math.MaxInt64, true}} {
		if got := isNear(c.used, c.most); got != c.want {
			t.Errorf("%d of %d is near: %v", c.used, c.most, got)
		}
	}
}
