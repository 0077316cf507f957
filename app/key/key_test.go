package key_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestKeyIsRevokedOnce: of many concurrent revocations of a key one succeeds.
// Another key with the same name stays valid.
func TestKeyIsRevokedOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		by := doorward.OperatorAtTerminal()
		for range 2 {
			_, err := f.Node(0).Keys.CreateOperator(f.Context(), by, "signup")
			f.NoError(err)
		}
		found, err := f.Node(0).Keys.FindOperators(f.Context(), "signup")
		f.NoError(err)
		const callers = 16
		errs := apptest.Concurrently(callers, func(i int) error {
			return f.Node(i).Keys.RevokeOperator(f.Context(), by, found[0])
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeNotFound: callers - 1})
		if left, err := f.Node(1).Keys.FindOperators(f.Context(), "signup"); err != nil || len(left) != 1 || left[0].ID != found[1].ID {
			f.Errorf("the keys left are %+v, %v; want the other one", left, err)
		}
	})
}
