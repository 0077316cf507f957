package app_test

import (
	"testing"

	"github.com/doorward/doorward"
)

// TestKeyIsRevokedOnce: of many who revoke a key at once, one has done it. Another
// key of the name goes on.
func TestKeyIsRevokedOnce(t *testing.T) {
	onEach(t, func(w *world) {
		by := doorward.OperatorAtTerminal()
		for range 2 {
			_, err := w.on(0).Keys.CreateOperator(w.Context(), by, "signup")
			w.ok(err)
		}
		found, err := w.on(0).Keys.FindOperators(w.Context(), "signup")
		w.ok(err)
		const callers = 16
		errs := together(callers, func(i int) error {
			return w.on(i).Keys.RevokeOperator(w.Context(), by, found[0])
		})
		w.ends(errs, tally{"": 1, doorward.CodeNotFound: callers - 1})
		if left, err := w.on(1).Keys.FindOperators(w.Context(), "signup"); err != nil || len(left) != 1 || left[0].ID != found[1].ID {
			w.Errorf("left are %+v, %v, want the other one", left, err)
		}
	})
}
