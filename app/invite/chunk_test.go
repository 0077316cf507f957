package invite

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A request sends as many chunks as it has time for, by the longest one; without a deadline all; after an error none.
func TestChunks(t *testing.T) {
	offers := make([]Offer, 5*planChunk+1)
	count := func(took time.Duration, ctx context.Context, fail int) (results, calls int, err error) {
		all, err := inChunks(ctx, offers, func(n int, chunk []Offer) ([]int, error) {
			if calls++; n == fail {
				return nil, errors.New("refused")
			}
			time.Sleep(took) // fake time of synctest
			return make([]int, len(chunk)), nil
		})
		return len(all), calls, err
	}
	for _, c := range []struct {
		took           time.Duration
		within         time.Duration // 0: no deadline
		fail           int
		results, calls int
	}{
		{time.Hour, 0, -1, len(offers), 6},
		{time.Second, 2700 * time.Millisecond, -1, planChunk, 1},
		{500 * time.Millisecond, 2700 * time.Millisecond, -1, 4 * planChunk, 4},
		{time.Millisecond, 2700 * time.Millisecond, -1, len(offers), 6},
		{time.Millisecond, 0, 2, 2 * planChunk, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.within > 0 {
				bounded, cancel := context.WithTimeout(ctx, c.within)
				defer cancel()
				ctx = bounded
			}
			results, calls, err := count(c.took, ctx, c.fail)
			if results != c.results || calls != c.calls || (err != nil) != (c.fail >= 0) {
				t.Errorf("%+v: %d results of %d calls, %v", c, results, calls, err)
			}
		})
	}
}
