package node

import (
	"testing"
	"time"
)

func TestGCPercentIsRaisedForASmallBusyHeap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		live      uint64
		sinceLast time.Duration
		want      int
	}{
		{0, 0, 400},
		{3 << 20, time.Millisecond, 400},
		{4 << 20, gcBusy, 400},
		{4<<20 + 1, 0, 400},
		{5 << 20, 0, 300},
		{8<<20 + 1, 0, 200},
		{10 << 20, 0, 200},
		{11 << 20, 0, 100},
		{17 << 20, 0, 100},
		{1 << 40, 0, 100},
		{3 << 20, gcBusy + 1, 100},
		{3 << 20, 2 * time.Minute, 100},
	} {
		if got := gcPercent(test.live, test.sinceLast); got != test.want {
			t.Errorf("%d bytes live, %v after the last collection: %d %%, want %d", test.live, test.sinceLast, got, test.want)
		}
	}
}
