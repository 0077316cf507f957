package evaluation

import (
	"context"
	"errors"
	"testing"

	"github.com/doorward/doorward"
)

// A search ends between two rows when the request's time is over, and is then unavailable, not
// a short result.
func TestSearchEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read := func(doorward.Window) (doorward.Page[int], error) {
		return doorward.Page[int]{Items: []int{1, 2, 3}}, nil
	}
	judged := 0
	_, err := scan(ctx, doorward.Window{Limit: 10}, read, func(int) (Subject, doorward.Position, bool) {
		if judged++; judged == 2 {
			cancel()
		}
		return Subject{}, doorward.Position{}, true
	})
	var e *doorward.Error
	if !errors.As(err, &e) || e.Code != doorward.CodeUnavailable || judged != 2 {
		t.Errorf("%v after %d rows", err, judged)
	}
}
