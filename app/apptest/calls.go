package apptest

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
)

// Concurrently calls fn n times at once and returns the errors.
func Concurrently(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			errs[i] = fn(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return errs
}

// Code returns the code of an error, empty for nil, or the text of an error
// without a code.
func Code(err error) doorward.Code {
	var e *doorward.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return doorward.Code(err.Error())
}

// Codes counts outcomes; success is the empty code.
type Codes map[doorward.Code]int

// CountCodes counts how calls ended.
func CountCodes(errs []error) Codes {
	n := Codes{}
	for _, err := range errs {
		n[Code(err)]++
	}
	return n
}

// WantCodes fails unless the calls ended with these codes, and returns the first
// that succeeded, -1 for none.
func (f *Fixture) WantCodes(errs []error, want Codes) (winner int) {
	f.Helper()
	got := CountCodes(errs)
	if !maps.Equal(got, want) {
		f.Fatalf("unexpected codes (-want +got):\n%s%v", cmp.Diff(want, got), unexpected(errs, want))
	}
	for i, err := range errs {
		if err == nil {
			return i
		}
	}
	return -1
}

// WantOnly fails for any code other than these; success is the empty code.
func (f *Fixture) WantOnly(errs []error, codes ...doorward.Code) {
	f.Helper()
	want := Codes{}
	for _, c := range codes {
		want[c] = 1
	}
	if err := unexpected(errs, want); err != nil {
		f.Fatalf("unexpected outcome: %v", err)
	}
}

// unexpected returns the first error whose code isn't in want.
func unexpected(errs []error, want Codes) error {
	for _, err := range errs {
		if want[Code(err)] == 0 {
			return err
		}
	}
	return nil
}

// WantPassword fails unless the account accepts the winner's password and none of
// the others.
func (f *Fixture) WantPassword(email string, winner, passwords int) {
	f.Helper()
	for i := range passwords {
		want := doorward.CodeInvalidCredentials
		if i == winner {
			want = ""
		}
		if got := f.TryLogin(email, Password(i)); got != want {
			f.Errorf("%s with password %d: %q; the winner was %d", email, i, got, winner)
		}
	}
}

var full = flag.Bool("full", false, "races at full length")

// Rounds returns how often to run a race: often with -full (make chaos), else short.
func Rounds(short, often int) int {
	if *full {
		return often
	}
	return short
}

// NoExtraWrites is an empty callback for session.Open.
func NoExtraWrites(*access.Tx) error { return nil }

// Opened collects the sessions that logins have opened.
type Opened struct {
	mu     sync.Mutex
	tokens []secret.Token
}

// Add adds the result of a login and returns its error.
func (o *Opened) Add(s session.Opened, err error) error {
	if err == nil {
		o.mu.Lock()
		o.tokens = append(o.tokens, s.Token)
		o.mu.Unlock()
	}
	return err
}

// CountValid returns how many of the sessions a node accepts.
func (f *Fixture) CountValid(o *Opened) (n int) {
	f.Helper()
	for _, token := range o.tokens {
		if f.IsValid(token) {
			n++
		}
	}
	return n
}

// SignedIn returns the session of a sign-in that needs no more than the password.
func SignedIn(o login.Outcome, err error) (login.SignedIn, error) {
	done, ok := o.(login.SignedIn)
	if err == nil && !ok {
		err = fmt.Errorf("the outcome is %T, want login.SignedIn", o)
	}
	return done, err
}
