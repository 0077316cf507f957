package signon

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/answer"
)

// finishTest writes the result of a test: what every check says, and the claims. A fault of the provider fails
// the test, too.
func (a *attempt) finishTest(ctx context.Context, j judged) (Result, error) {
	checks, err := a.s.tests.Checks(ctx, a.connection, j.by, j.asserted, j.fault)
	if err != nil {
		return Result{}, err
	}
	if j.asserted.Claims == nil {
		j.asserted.Claims = map[string]any{}
	}
	claims, err := json.Marshal(j.asserted.Claims)
	if err != nil {
		return Result{}, doorward.Unavailable(err)
	}
	test, err := a.s.tests.End(ctx, a.flow.Test, claims, checks)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		err = stateError()
	}
	if err != nil {
		return Result{}, err
	}
	a.recordTest(ctx, test, j.fault)
	return Result{Test: test.ID, ByLink: a.flow.ByLink}, nil
}

// recordTest writes the entry of the protocol. It names who tests, so that it goes when that account is erased:
// the subject needn't be anybody's identity.
func (a *attempt) recordTest(ctx context.Context, test doorward.ConnectionTest, f *answer.Fault) {
	if a.by.Kind == doorward.ByUser {
		a.userID = a.by.ID
	}
	i := slices.IndexFunc(test.Checks, func(c doorward.TestCheck) bool { return !c.OK })
	switch {
	case f != nil && f.Unavailable:
		a.record(ctx, doorward.AttemptUnavailable, *f)
	case i >= 0:
		failed := test.Checks[i]
		a.record(ctx, doorward.AttemptRefused, answer.Fault{Check: failed.Name, Seen: failed.Seen, Advice: failed.Advice})
	default:
		a.record(ctx, doorward.AttemptDone, answer.Fault{})
	}
}
