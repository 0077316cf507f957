package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/roster"
)

// What stays of an account that is in no tenant any more, and how its person comes
// back.

// signInHere is signIn with a browser that is known from then on.
func (w *world) signInHere(email, password string) person {
	w.Helper()
	r, err := w.on(0).Login.WithPassword(w.Context(), stranger(0), email, password, "")
	w.ok(err)
	by := stranger(0).As(r.User)
	by.SessionID = r.Session.ID
	if r.Device != nil {
		hash := r.Device.Hash()
		by.Devices = [][]byte{hash[:]}
	}
	return person{by, r.User, r.Token}
}

// holds says whether the account has a password, and how many browsers it knows.
func (w *world) holds(p person) string {
	w.Helper()
	devices, err := w.db.Read().CountDevices(w.Context(), p.ID, time.Time{})
	w.ok(err)
	return fmt.Sprintf("password: %v, browsers: %d", w.account(p).PasswordHash != "", devices)
}

const (
	holdsAll     = "password: true, browsers: 2"
	holdsNothing = "password: false, browsers: 0"
)

// change runs a statement as another program would.
func (w *world) change(query string, args ...any) {
	w.Helper()
	_, err := w.observe().ExecContext(w.Context(), query, args...)
	w.ok(err)
}

// TestLastMembership: the password and the known browsers go with it, at once, and
// with no other one; the counters go a day later.
func TestLastMembership(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			clock := &standing{at: time.Now()}
			w := newWorld(t, e, someLimits, clock.now)
			_, owner := w.tenant()
			_, boss := w.tenant()
			for how, end := range map[string]func(person) error{
				"removed": func(p person) error {
					_, err := w.on(0).Users.Remove(w.Context(), owner.Caller, p.User, nil)
					return err
				},
				"left": func(p person) error {
					_, err := w.on(0).Users.Leave(w.Context(), p.Caller, p.TenantID)
					return err
				},
			} {
				p := w.join(owner, doorward.RoleUser)
				p = w.signInHere(p.Email, first)
				both := w.join(owner, doorward.RoleUser)
				both = w.signInHere(both.Email, first)
				_, token := w.invite(boss, both.Email, doorward.RoleUser)
				_, err := w.on(0).Invitations.Accept(w.Context(), both.Caller, token, "")
				w.ok(err)
				if got := w.tries(p.Email, password(1)); got != doorward.CodeInvalidCredentials {
					t.Fatal(got)
				}
				w.ok(w.on(0).Users.Resume(w.Context(), operator, p.User))
				w.ok(end(both))
				if got := w.holds(both); got != holdsAll {
					t.Errorf("%s, and in another tenant: %s", how, got)
				}
				_, err = w.on(0).Users.Suspend(w.Context(), operator, p.User)
				w.ok(err)
				if got := w.holds(p); got != holdsAll {
					t.Errorf("suspended: %s", got)
				}
				w.ok(w.on(0).Users.Resume(w.Context(), operator, p.User))
				p = w.signInHere(p.Email, first) // a third one, of which two are counted below
				w.ok(end(p))
				if got := w.holds(p); got != holdsNothing {
					t.Errorf("%s: %s", how, got)
				}
				if got := w.tries(p.Email, first); got != doorward.CodeInvalidCredentials {
					t.Errorf("%s: a login is %q", how, got)
				}

				bucket := "account:" + p.Email
				clock.move(24*time.Hour - time.Microsecond)
				w.ok(w.on(0).Sweep(w.Context()))
				if w.failures(bucket) == 0 {
					t.Errorf("%s: its counter is gone within a day", how)
				}
				clock.move(time.Microsecond)
				w.ok(w.on(0).Sweep(w.Context()))
				if n := len(holding(w.rows(), bucket, "newcomers:"+p.ID, "devices:"+p.ID)); n != 0 {
					t.Errorf("%s: after a day %d of its counters are left", how, n)
				}
				owner, boss = w.signIn(owner.Email, first), w.signIn(boss.Email, first) // a day is over

				// And comes back, as the same one.
				_, token = w.invite(owner, p.Email, doorward.RoleViewer)
				shown, err := w.on(0).Invitations.Show(w.Context(), token)
				w.ok(err)
				if shown.HasAccount {
					t.Errorf("%s: who has no password is asked for it", how)
				}
				again, err := w.on(0).Invitations.Complete(w.Context(), stranger(0), token, password(2), password(2))
				w.ok(err)
				if again.ID != p.ID {
					t.Errorf("%s: comes back as %s, was %s", how, again.ID, p.ID)
				}
				clock.move(24 * time.Hour)
				w.ok(w.on(0).Sweep(w.Context()))
				owner, boss = w.signIn(owner.Email, first), w.signIn(boss.Email, first)
				w.ok(end(w.signIn(p.Email, password(2))))
			}
		})
	}
}

// TestImportOfWhoWasRemoved: a list that brings somebody back brings the password.
func TestImportOfWhoWasRemoved(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		p, bare := w.join(owner, doorward.RoleUser), w.join(owner, doorward.RoleUser)
		hash := w.account(p).PasswordHash
		for _, gone := range []person{p, bare} {
			_, err := w.on(0).Users.Remove(w.Context(), owner.Caller, gone.User, nil)
			w.ok(err)
		}
		list := roster.List{People: []roster.Person{
			{Line: 1, Email: p.Email, Role: doorward.RoleUser, Status: doorward.UserActive, PasswordHash: hash},
			{Line: 2, Email: bare.Email, Role: doorward.RoleUser, Status: doorward.UserActive},
		}}
		done, err := w.on(0).Users.Import(w.Context(), operator, acme.ID, list, false)
		w.ok(err)
		if done.Members != 2 || done.Accounts != 0 || done.Unset != 1 || len(done.Kept) != 0 {
			w.Errorf("the import has done %+v", done)
		}
		w.signIn(p.Email, first)
	})
}

// TestRemovalAndReturnAtOnce: somebody is removed from the only tenant, and becomes
// a member of another one at the same time. Who is a member then has the password,
// who is none has nothing, and nobody waits for a deadlock.
func TestRemovalAndReturnAtOnce(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		globex, boss := w.tenant()
		returns := map[string]func(i int, p person, token string) error{
			"by password": func(i int, _ person, token string) error {
				_, err := w.on(i).Invitations.Accept(w.Context(), stranger(1), token, first)
				return err
			},
			"by session": func(i int, p person, token string) error {
				_, err := w.on(i).Invitations.Accept(w.Context(), p.Caller, token, "")
				return err
			},
			"by registration": func(i int, _ person, token string) error {
				_, err := w.on(i).Invitations.Complete(w.Context(), stranger(1), token, first, first)
				return err
			},
			"by a list": func(i int, p person, _ string) error {
				list := roster.List{People: []roster.Person{{
					Line: 1, Email: p.Email, Role: doorward.RoleUser, Status: doorward.UserActive, PasswordHash: w.account(boss).PasswordHash,
				}}}
				_, err := w.on(i).Users.Import(w.Context(), operator, globex.ID, list, false)
				return err
			},
			"by signing in": func(i int, p person, _ string) error {
				_, err := w.on(i).Login.WithPassword(w.Context(), stranger(1), p.Email, first, "")
				return err
			},
			"by another password": func(i int, p person, _ string) error {
				return failure(w.on(i).Passwords.Change(w.Context(), p.Caller, first, password(1), password(1)))
			},
		}
		for how, comes := range returns {
			for round := range 6 {
				p := w.join(owner, doorward.RoleUser)
				p = w.signInHere(p.Email, first)
				_, token := w.invite(boss, p.Email, doorward.RoleUser)
				errs := together(2, func(i int) error {
					if i == round%2 {
						_, err := w.on(i).Users.Remove(w.Context(), owner.Caller, p.User, nil)
						return err
					}
					return comes(i, p, token)
				})
				w.ok(errs[round%2])
				memberships, err := w.db.Read().CountMemberships(w.Context(), p.ID)
				w.ok(err)
				if member, password := memberships > 0, w.account(p).PasswordHash != ""; member != password {
					w.Errorf("%s: a member: %v, a password: %v; %v", how, member, password, errs)
				}
				if memberships == 0 && w.holds(p) != holdsNothing {
					w.Errorf("%s: who is in no tenant has %s", how, w.holds(p))
				}
			}
		}
		if w.on(0) != w.on(1) {
			if n := w.deadlocks(); n > 0 {
				w.Errorf("PostgreSQL has resolved %d deadlocks", n)
			}
		}
	})
}

// TestLeftBeforeTheUpgrade: of accounts that were left when the password stayed, it
// goes with the first sweep, unless they are members again.
func TestLeftBeforeTheUpgrade(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		left, member := w.join(owner, doorward.RoleUser), w.join(owner, doorward.RoleUser)
		left = w.signInHere(left.Email, first)
		w.change(`DELETE FROM memberships WHERE user_id = $1`, left.ID) // as it was done
		w.change(`DELETE FROM sessions WHERE user_id = $1`, left.ID)
		w.change(`UPDATE users SET left_at = 0 WHERE id IN ($1, $2)`, left.ID, member.ID)
		w.ok(w.on(0).Sweep(w.Context()))
		if got := w.holds(left); got != holdsNothing {
			w.Errorf("the one who left has %s", got)
		}
		w.signIn(member.Email, first)
		if n := w.counted(`SELECT count(*) FROM users WHERE left_at = 0`); n != 0 {
			w.Errorf("%d are marked still", n)
		}
	})
}
