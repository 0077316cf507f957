package audit

import (
	"testing"
	"time"
)

func TestNextBatch(t *testing.T) {
	const slow, good, quick = trimTime + 1, trimTime / 2, time.Millisecond
	for _, c := range []struct {
		limit int
		took  time.Duration
		want  int
	}{
		{trimMost, slow, trimMost / 2},
		{trimLeast, slow, trimLeast},
		{200, good, 200},
		{trimLeast, quick, 2 * trimLeast},
		{trimMost, quick, trimMost},
	} {
		if got := nextBatch(c.limit, c.took); got != c.want {
			t.Errorf("after %d in %v: %d, want %d", c.limit, c.took, got, c.want)
		}
	}
}
