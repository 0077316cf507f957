package login_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/proof"
)

// TestRaceGuessesAtOnce: of any number of concurrent guesses, on any node, no more are
// checked than the limits allow. (When attempts were counted after the hash, 181
// of 200 passed a limit of 5.)
func TestRaceGuessesAtOnce(t *testing.T) {
	const guesses = 100
	limits := proof.Limits{PerAccount: 5, PerIP: 30}
	stopped := time.Now()
	for _, e := range apptest.Engines {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			f := apptest.New(t, e, limits, func() time.Time { return stopped })
			_, ann := f.Tenant()
			_, invitee := f.Tenant()
			_, token := f.Invite(ann, invitee.User.Email, doorward.RoleUser)
			login := func(client int, email string) func(i int) error {
				return func(i int) error {
					_, err := f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(client), email, apptest.Password(i+1), "")
					return err
				}
			}
			for _, c := range []struct {
				name  string
				guess func(i int) error
				wrong doorward.Code
				most  int
			}{
				{"one address", login(1, ann.User.Email), doorward.CodeInvalidCredentials, limits.PerAccount},
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
					"by invitation", // the address has had no other attempt
					func(i int) error {
						_, err := f.Node(i).Invitations.Accept(f.Context(), apptest.Anonymous(5), token, apptest.Password(i+1))
						return err
					},
					doorward.CodeInvalidCredentials, limits.PerAccount,
				},
				{"by login after that", login(6, invitee.User.Email), doorward.CodeInvalidCredentials, 0},
				{
					"by changing the password after that",
					func(i int) error {
						by := invitee.Caller
						by.IP = apptest.Anonymous(7).IP
						return apptest.ErrorOf(f.Node(i).Passwords.Change(f.Context(), by, apptest.Password(i+1), apptest.Password(300), apptest.Password(300)))
					},
					doorward.CodeValidationFailed, 0,
				},
			} {
				before := hashes(f)
				got := apptest.CountCodes(apptest.Concurrently(guesses, c.guess))
				want := apptest.Codes{doorward.CodeTooManyAttempts: guesses - c.most}
				if c.most > 0 {
					want[c.wrong] = c.most
				}
				if fmt.Sprint(got) != fmt.Sprint(want) || hashes(f)-before != uint64(c.most) {
					t.Errorf("%s: %d of %d guesses were hashed, with the results %v; want %v", c.name, hashes(f)-before, guesses, got, want)
				}
			}
		})
	}
}

// hashes returns how many hashes the nodes have computed.
func hashes(f *apptest.Fixture) (n uint64) {
	for _, node := range f.Nodes {
		n += node.Hashing().Hashes
	}
	return n
}

// TestRaceLoginsAtOnceDontDeadlock: logins of one person update two counters, on two
// nodes, and lock them in the same order.
func TestRaceLoginsAtOnceDontDeadlock(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, proof.Limits{PerAccount: 1000, PerIP: 1000}, time.Now)
	_, ann := f.Tenant()
	for range 5 {
		f.WantCodes(apptest.Concurrently(32, func(i int) error {
			_, err := f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(1), ann.User.Email, apptest.FirstPassword, "")
			return err
		}), apptest.Codes{"": 32})
	}
	f.WantNoDeadlocks()
}
