package access

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

// reserve is the end of the time for a request, in which RunSeparately begins no further call.
const reserve = 700 * time.Millisecond

var errNoTimeLeft = errors.New("access: no time is left for this id")

// RunSeparately calls do for one id after the other, so that each has its own decision,
// transaction and event. It returns the errors of the calls. When the time for the request is
// nearly over, the remaining ids get unavailable. If an error concerns all ids, such as a missing
// proof, and no call has succeeded, RunSeparately stops and returns it as err.
func RunSeparately(ctx context.Context, ids []string, do func(i int, id string) error) (errs []error, err error) {
	errs = make([]error, len(ids))
	hasSuccess := false
	for i, id := range ids {
		if deadline, has := ctx.Deadline(); has && time.Until(deadline) < reserve {
			errs[i] = doorward.Unavailable(errNoTimeLeft)
			continue
		}
		if errs[i] = do(i, id); errs[i] == nil {
			hasSuccess = true
		} else if !hasSuccess && stopsAll(errs[i]) {
			return nil, errs[i]
		}
	}
	return errs, nil
}

// stopsAll reports whether the error concerns all ids.
func stopsAll(err error) bool {
	var e *doorward.Error
	if !errors.As(err, &e) {
		return true
	}
	return e.Kind() == doorward.KindUnavailable || e.Code == doorward.CodeStepUpRequired || e.Code == doorward.CodeUnauthenticated
}
