package access

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

// reserve is how much of a request's time is left when nothing new is begun.
const reserve = 700 * time.Millisecond

var errNoTimeLeft = errors.New("access: no time is left for this one")

// EachAlone runs do for each id, one after the other: each is decided, written and recorded
// by itself. It returns their errors. When the request's time is nearly over, the rest is
// unavailable. An error that concerns all of them, such as a missing proof, is returned as
// err, as long as nothing has been done.
func EachAlone(ctx context.Context, ids []string, do func(i int, id string) error) (errs []error, err error) {
	errs = make([]error, len(ids))
	isDone := false
	for i, id := range ids {
		if deadline, has := ctx.Deadline(); has && time.Until(deadline) < reserve {
			errs[i] = doorward.Unavailable(errNoTimeLeft)
			continue
		}
		if errs[i] = do(i, id); errs[i] == nil {
			isDone = true
		} else if !isDone && stopsAll(errs[i]) {
			return nil, errs[i]
		}
	}
	return errs, nil
}

// stopsAll reports whether the error says nothing about one id.
func stopsAll(err error) bool {
	var e *doorward.Error
	if !errors.As(err, &e) {
		return true
	}
	return e.Kind() == doorward.KindUnavailable || e.Code == doorward.CodeStepUpRequired || e.Code == doorward.CodeUnauthenticated
}
