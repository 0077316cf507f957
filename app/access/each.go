package access

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

// reserve is the end of a request's time, in which EachAlone begins nothing more.
const reserve = 700 * time.Millisecond

var errNoTimeLeft = errors.New("access: no time is left for this one")

// EachAlone runs do for each id, one after the other: each is decided, written and recorded
// by itself. It returns their errors. When the request's time is nearly over, the rest get
// unavailable. An error that concerns all of them, such as a missing proof, is returned as
// err, as long as none has succeeded.
func EachAlone(ctx context.Context, ids []string, do func(i int, id string) error) (errs []error, err error) {
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
