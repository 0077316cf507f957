package apptest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/fulltest"
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

// Code returns the code of an error. It is empty for nil, and the text of an error without a code.
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

// WantField fails unless the error is one of the field.
func (f *Fixture) WantField(err error, pointer, code string) {
	f.Helper()
	var e *doorward.Error
	if !errors.As(err, &e) || !slices.ContainsFunc(e.Fields, func(x doorward.FieldError) bool { return x.Pointer == pointer && x.Code == code }) {
		f.Errorf("the error is %v %+v, want %s of %s", err, e, code, pointer)
	}
}

// Codes counts outcomes; success is the empty code.
type Codes map[doorward.Code]int

// CountCodes counts the errors of calls by code.
func CountCodes(errs []error) Codes {
	n := Codes{}
	for _, err := range errs {
		n[Code(err)]++
	}
	return n
}

// WantCodes fails unless the calls returned these codes. It returns the index of the first call that
// succeeded, -1 for none.
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

// WantPassword fails unless the account accepts Password(winner), and no other of the passwords with
// numbers below passwords.
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

// Rounds returns how many rounds of a race to run: many in make test-all, else few.
func Rounds(few, many int) int { return fulltest.Of(few, many) }

// OpenedSessions collects the sessions that logins have opened.
type OpenedSessions struct {
	mu     sync.Mutex
	tokens []secret.Token
}

// Add adds the result of a login and returns its error.
func (o *OpenedSessions) Add(s session.Opened, err error) error {
	if err == nil {
		o.mu.Lock()
		o.tokens = append(o.tokens, s.Token)
		o.mu.Unlock()
	}
	return err
}

// CountValid returns how many of the sessions are accepted by at least one node.
func (f *Fixture) CountValid(o *OpenedSessions) (n int) {
	f.Helper()
	for _, token := range o.tokens {
		if f.IsValid(token) {
			n++
		}
	}
	return n
}

// SignedIn returns the session that a login with the password has opened. It is an error if the login
// needs a second factor.
func SignedIn(o login.Outcome, err error) (login.SignedIn, error) {
	done, ok := o.(login.SignedIn)
	if err == nil && !ok {
		err = fmt.Errorf("the outcome is %T, want login.SignedIn", o)
	}
	return done, err
}

// Enter signs in as the account to the tenant on node i, like a right password whose hash took no time.
func (f *Fixture) Enter(i int, account doorward.Account, tenantID string) (session.Opened, error) {
	proved := proof.Proof{Account: account, Methods: []string{doorward.MethodPassword}}
	done, err := SignedIn(f.Node(i).Login.Enter(f.Context(), Anonymous(i), proved, tenantID))
	return done.Opened, err
}

// Switch switches the caller's session to the tenant on node i.
func (f *Fixture) Switch(i int, by doorward.Caller, tenantID string) (session.Opened, error) {
	done, err := SignedIn(f.Node(i).Login.Switch(f.Context(), by, tenantID))
	return done.Opened, err
}

// Accepted returns the membership of somebody who has accepted an invitation. It is an error if the
// account's second factor is asked for.
func Accepted(a invite.Acceptance, err error) (invite.Joined, error) {
	joined, ok := a.(invite.Joined)
	if err == nil && !ok {
		err = fmt.Errorf("the outcome is %T, want invite.Joined", a)
	}
	return joined, err
}
