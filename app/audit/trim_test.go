package audit

import (
	"testing"
	"time"
)

func TestNextBatch(t *testing.T) {
	const slow, good, quick = trimBatchTime + 1, trimBatchTime / 2, time.Millisecond
	for _, c := range []struct {
		limit int
		took  time.Duration
		want  int
	}{
		{maxTrimBatch, slow, maxTrimBatch / 2},
		{minTrimBatch, slow, minTrimBatch},
		{200, good, 200},
		{minTrimBatch, quick, 2 * minTrimBatch},
		{maxTrimBatch, quick, maxTrimBatch},
	} {
		if got := nextBatch(c.limit, c.took); got != c.want {
			t.Errorf("after %d in %v: %d, want %d", c.limit, c.took, got, c.want)
		}
	}
}
