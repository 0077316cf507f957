package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/credential"
)

// TestGuessesAtOnce: however many guesses come at once, to whichever node, no
// more of them are looked at than the limits say. (Checked first and counted
// after the hash, 181 of 200 were seen to get through a limit of 5.)
func TestGuessesAtOnce(t *testing.T) {
	const guesses = 200
	limits := credential.Limits{PerAccount: 5, PerIP: 30}
	noon := time.Now()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e, limits, func() time.Time { return noon })
			_, ann := w.tenant()
			_, guest := w.tenant()
			_, token := w.invite(ann, guest.Email, doorward.RoleUser)
			login := func(client int, email string) func(i int) error {
				return func(i int) error {
					_, err := w.on(i).Login.WithPassword(w.Context(), stranger(client), email, password(i+1), "")
					return err
				}
			}
			for _, c := range []struct {
				name  string
				guess func(i int) error
				wrong doorward.Code
				most  int
			}{
				{"one address", login(1, ann.Email), doorward.CodeInvalidCredentials, limits.PerAccount},
				{"an unknown address", login(2, "nobody@example.com"), doorward.CodeInvalidCredentials, limits.PerAccount},
				{"no address", login(3, "nobody"), doorward.CodeInvalidCredentials, limits.PerAccount},
				{
					"one address from everywhere",
					func(i int) error { return login(1000+i, "elsewhere@example.com")(i) },
					doorward.CodeInvalidCredentials, limits.PerAccount,
				},
				{
					"many addresses from one client",
					func(i int) error { return login(4, fmt.Sprintf("guess%d@example.com", i))(i) },
					doorward.CodeInvalidCredentials, limits.PerIP,
				},
				{
					"by invitation", // the address has been tried nowhere else
					func(i int) error {
						_, err := w.on(i).Invitations.Accept(w.Context(), stranger(5), token, password(i+1))
						return err
					},
					doorward.CodeInvalidCredentials, limits.PerAccount,
				},
				{"by login after that", login(6, guest.Email), doorward.CodeInvalidCredentials, 0},
				{
					"by changing the password after that",
					func(i int) error {
						by := guest.Caller
						by.IP = stranger(7).IP
						return failure(w.on(i).Passwords.Change(w.Context(), by, password(i+1), password(300), password(300)))
					},
					doorward.CodeValidationFailed, 0,
				},
			} {
				before := w.hashes()
				got := count(together(guesses, c.guess))
				want := tally{doorward.CodeTooManyAttempts: guesses - c.most}
				if c.most > 0 {
					want[c.wrong] = c.most
				}
				if fmt.Sprint(got) != fmt.Sprint(want) || w.hashes()-before != uint64(c.most) {
					t.Errorf("%s: %d of %d guesses were hashed, and they ended in %v: want %v", c.name, w.hashes()-before, guesses, got, want)
				}
			}
		})
	}
}

// hashes counts what the nodes have hashed.
func (w *world) hashes() (n uint64) {
	for _, node := range w.nodes {
		n += node.Hashing().Hashes
	}
	return n
}

// TestHonestLoginsDontWaitForEachOther: logins of one person count up and down
// in two counters, on two nodes. Did they lock the two in different orders,
// PostgreSQL would need a second to notice.
func TestHonestLoginsDontWaitForEachOther(t *testing.T) {
	w := newWorld(t, engines[1], credential.Limits{PerAccount: 1000, PerIP: 1000}, time.Now)
	_, ann := w.tenant()
	for range 5 {
		w.ends(together(32, func(i int) error {
			_, err := w.on(i).Login.WithPassword(w.Context(), stranger(1), ann.Email, first, "")
			return err
		}), tally{"": 32})
	}
	if n := w.deadlocks(); n > 0 {
		t.Errorf("PostgreSQL has resolved %d deadlocks", n)
	}
}
