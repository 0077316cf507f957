package app_test

import (
	"fmt"

	"github.com/doorward/doorward/app/login"
)

// signedIn returns a sign-in that is complete, for the answer of a login.
func signedIn(o login.Outcome, err error) (login.SignedIn, error) {
	done, complete := o.(login.SignedIn)
	if err == nil && !complete {
		err = fmt.Errorf("the sign-in ended in %T", o)
	}
	return done, err
}
