package app_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/key"
)

// TestOneKeyOfAName: many make an operator key of one name at once. One is made,
// and the name is free again once that one is revoked.
func TestOneKeyOfAName(t *testing.T) {
	onEach(t, func(w *world) {
		const callers = 16
		by := doorward.OperatorAtTerminal()
		for range 3 {
			errs := together(callers, func(i int) error {
				_, err := w.on(i).Keys.CreateOperator(w.Context(), by, "signup")
				return err
			})
			made := 0
			for _, err := range errs {
				if err == nil {
					made++
				} else if !errors.Is(err, key.ErrTaken) {
					w.Error(err)
				}
			}
			found, err := w.on(0).Keys.FindOperators(w.Context(), "signup")
			w.ok(err)
			if made != 1 || len(found) != 1 {
				w.Fatalf("%d callers have made a key, and %d are there; want one", made, len(found))
			}
			w.revokedOnce(found[0].ID, callers)
		}
	})
}

// revokedOnce has many revoke the key at once: one has done it.
func (w *world) revokedOnce(id string, callers int) {
	w.Helper()
	found, err := w.on(0).Keys.FindOperators(w.Context(), id)
	w.ok(err)
	errs := together(callers, func(i int) error {
		return w.on(i).Keys.RevokeOperator(w.Context(), doorward.OperatorAtTerminal(), found[0])
	})
	w.ends(errs, tally{"": 1, doorward.CodeNotFound: callers - 1})
}
