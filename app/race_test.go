package app_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// nothingElse is done with the opening of a session.
func nothingElse(*access.Tx) error { return nil }

func offer(email string, role doorward.Role) invite.Offer {
	return invite.Offer{Email: email, Role: string(role)}
}

// TestOneRegistration: many complete one registration at once. One of them has
// made the account, and no password but that one's opens it.
func TestOneRegistration(t *testing.T) {
	onEach(t, func(w *world) {
		const callers = 32
		_, owner := w.tenant()
		for round := range 3 {
			email := fmt.Sprintf("new%d@example.com", round)
			_, token := w.invite(owner, email, doorward.RoleUser)
			errs := together(callers, func(i int) error {
				_, err := w.on(i).Invitations.Complete(w.Context(), stranger(i), token, password(i), password(i))
				return err
			})
			winner := w.ends(errs, tally{"": 1, doorward.CodeInvitationUsed: callers - 1})
			w.opensOnlyWith(email, winner, callers)
		}
	})
}

// opensOnlyWith tries all passwords: that of the winner logs in, and no other.
func (w *world) opensOnlyWith(email string, winner, callers int) {
	w.Helper()
	for i := range callers {
		want := doorward.CodeInvalidCredentials
		if i == winner {
			want = ""
		}
		if got := w.tries(email, password(i)); got != want {
			w.Errorf("%s with the password of caller %d: %q, and the winner was %d", email, i, got, winner)
		}
	}
}

// TestTwoRegistrations: somebody new is invited to two tenants and completes
// both at once. One makes the account; the other must be accepted with it, and
// still can be.
func TestTwoRegistrations(t *testing.T) {
	onEach(t, func(w *world) {
		_, a := w.tenant()
		_, b := w.tenant()
		for round := range 5 {
			email := fmt.Sprintf("new%d@example.com", round)
			_, tokenA := w.invite(a, email, doorward.RoleUser)
			_, tokenB := w.invite(b, email, doorward.RoleUser)
			tokens := []string{tokenA, tokenB}
			errs := together(2, func(i int) error {
				_, err := w.on(i).Invitations.Complete(w.Context(), stranger(i), tokens[i], password(i), password(i))
				return err
			})
			winner := w.ends(errs, tally{"": 1, doorward.CodeAccountExists: 1})
			w.opensOnlyWith(email, winner, 2)
			_, err := w.on(0).Invitations.Accept(w.Context(), stranger(0), tokens[1-winner], password(winner))
			w.ok(err)
		}
	})
}

// TestOneAcceptance: many accept one invitation at once, half of them by
// password and half by session.
func TestOneAcceptance(t *testing.T) {
	onEach(t, func(w *world) {
		const callers = 32
		acme, owner := w.tenant()
		_, guest := w.tenant()
		_, token := w.invite(owner, guest.Email, doorward.RoleViewer)
		errs := together(callers, func(i int) error {
			by, password := stranger(i), first
			if i%2 == 0 {
				by, password = guest.Caller, ""
			}
			_, err := w.on(i).Invitations.Accept(w.Context(), by, token, password)
			return err
		})
		w.ends(errs, tally{"": 1, doorward.CodeInvitationUsed: callers - 1})
		all, err := w.db.Read().Users(w.Context(), acme.ID)
		w.ok(err)
		if len(all) != 2 {
			w.Errorf("the tenant has %d members, want the owner and the guest", len(all))
		}
	})
}

// TestOneInvitation: two administrators invite one address many times at once.
// Whoever is refused learns of the invitation that stands in the way.
func TestOneInvitation(t *testing.T) {
	onEach(t, func(w *world) {
		const callers = 16
		_, owner := w.tenant()
		by := []person{owner, w.join(owner, doorward.RoleAdmin)}
		for round := range 5 {
			email := fmt.Sprintf("new%d@example.com", round)
			sent := make([]doorward.Invitation, callers)
			errs := together(callers, func(i int) (err error) {
				sent[i], err = w.on(i).Invitations.Send(w.Context(), by[i%2].Caller, offer(email, doorward.RoleUser))
				return err
			})
			winner := w.ends(errs, tally{"": 1, doorward.CodeInvitationPending: callers - 1})
			for i, err := range errs {
				var e *doorward.Error
				if errors.As(err, &e) && e.InvitationID != sent[winner].ID {
					w.Errorf("caller %d is told of the invitation %q, and it is %q", i, e.InvitationID, sent[winner].ID)
				}
			}
		}
	})
}

// TestOneReset: many use one reset at once.
func TestOneReset(t *testing.T) {
	onEach(t, func(w *world) {
		const callers = 16
		_, owner := w.tenant()
		email := owner.Email
		w.ok(w.on(0).Passwords.Forgot(w.Context(), stranger(0), email, ""))
		token := w.letter(email)
		errs := together(callers, func(i int) error {
			return failure(w.on(i).Passwords.Reset(w.Context(), stranger(i), token, password(i+1), password(i+1)))
		})
		winner := w.ends(errs, tally{"": 1, doorward.CodeResetUsed: callers - 1})
		w.opensOnlyWith(email, winner+1, callers+1)
		if w.passes(owner.token) {
			w.Error("a session from before the reset is let pass")
		}
	})
}

// rounds is how often a race is run: on SQLite, where one writer works at a time,
// it takes more of them to meet.
func (w *world) rounds(sqlite, postgres int) int {
	if w.db.Engine() == "sqlite" {
		return sqlite
	}
	return postgres
}

// TestLastOwnerStays: two owners demote each other, as long as it takes.
func TestLastOwnerStays(t *testing.T) {
	onEach(t, func(w *world) {
		_, ann := w.tenant()
		bob := w.join(ann, doorward.RoleOwner)
		two := []person{ann, bob}
		for range w.rounds(200, 60) {
			errs := together(2, func(i int) error {
				return w.on(i).Users.SetRole(w.Context(), two[i].Caller, two[1-i].User, doorward.RoleAdmin)
			})
			w.ends(errs, tally{"": 1, doorward.CodeForbidden: 1}) // who was demoted first may not any more
			w.oneOwnerThenTwo(two)
		}
	})
}

// TestLastOwnerStaysWhoeverActs: by operators, whom no role restrains, and by
// suspension and leaving, too.
func TestLastOwnerStaysWhoeverActs(t *testing.T) {
	onEach(t, func(w *world) {
		_, ann := w.tenant()
		bob := w.join(ann, doorward.RoleOwner)
		two := []person{ann, bob}
		ways := []func(i int, p person) error{
			func(i int, p person) error {
				return w.on(i).Users.SetRole(w.Context(), operator, p.User, doorward.RoleAdmin)
			},
			func(i int, p person) error {
				_, err := w.on(i).Users.Suspend(w.Context(), operator, p.User)
				return err
			},
			func(i int, p person) error {
				_, err := w.on(i).Users.Leave(w.Context(), p.Caller, p.TenantID)
				return err
			},
		}
		for round := range 10 * len(ways) * len(ways) {
			errs := together(2, func(i int) error {
				way := []int{round % len(ways), round / len(ways) % len(ways)}[i]
				return ways[way](i, two[i])
			})
			w.ends(errs, tally{"": 1, doorward.CodeLastOwner: 1})
			w.oneOwnerThenTwo(two)
		}
	})
}

// oneOwnerThenTwo wants one active owner to be left, and makes both owners again.
func (w *world) oneOwnerThenTwo(two []person) {
	w.Helper()
	all, err := w.db.Read().Users(w.Context(), two[0].User.TenantID)
	w.ok(err)
	owners := 0
	for _, u := range all {
		if u.Role == doorward.RoleOwner && u.Status == doorward.UserActive {
			owners++
		}
	}
	if owners != 1 {
		w.Fatalf("%d active owners are left", owners)
	}
	hash := w.account(two[0]).PasswordHash + w.account(two[1]).PasswordHash
	hash = hash[strings.LastIndex(hash, "$argon2id$"):] // who lost the membership lost the password
	_, err = w.db.Write(w.Context(), func(tx *store.Tx) error {
		for _, p := range two {
			_, err1 := tx.DeleteMembership(w.Context(), p.TenantID, p.ID)
			_, err2 := tx.InsertMembership(w.Context(), p.User)
			_, err3 := tx.SetPassword(w.Context(), p.ID, "", hash)
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
		}
		return nil
	})
	w.ok(err)
}

// TestSuspensionOutrunsLogin: whatever a login has answered, once the suspension
// has answered no session of the person is of use, and none comes back to life
// with the membership.
func TestSuspensionOutrunsLogin(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		bob := w.join(owner, doorward.RoleUser)
		account := w.account(bob)
		for range 100 {
			var o opened
			suspended := 4
			errs := together(5, func(i int) error {
				switch i {
				case suspended:
					_, err := w.on(0).Users.Suspend(w.Context(), owner.Caller, bob.User)
					return err
				case 0:
					r, err := w.on(i).Login.WithPassword(w.Context(), stranger(i), bob.Email, first, "")
					return o.add(r.Opened, err)
				}
				return o.add(w.on(i).Sessions.Open(w.Context(), stranger(i), account, bob.TenantID, nothingElse))
			})
			w.ok(errs[suspended])
			w.only(errs, "", doorward.CodeMembershipSuspended)
			if n := w.passing(&o); n > 0 {
				w.Fatalf("%d sessions are let pass after the suspension", n)
			}
			w.ok(w.on(1).Users.Resume(w.Context(), owner.Caller, bob.User))
			if n := w.passing(&o); n > 0 {
				w.Fatalf("%d sessions have come back to life", n)
			}
		}
	})
}

// only wants no other outcomes.
func (w *world) only(errs []error, codes ...doorward.Code) {
	w.Helper()
	want := tally{}
	for _, c := range codes {
		want[c] = 1
	}
	if err := unexpected(errs, want); err != nil {
		w.Fatalf("an outcome that nobody expects: %v", err)
	}
}

// TestNewPasswordOutrunsLogin: once a new password is set, no session that was
// opened with the old one is of use.
func TestNewPasswordOutrunsLogin(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		ann := w.join(owner, doorward.RoleUser)
		for round := range 40 {
			var o opened
			account := w.account(ann)
			old, next := password(round), password(round+1)
			change := w.changeOrReset(round, ann, old, next)
			errs := together(6, func(i int) error {
				switch i {
				case 5:
					return change()
				case 0:
					r, err := w.on(i).Login.WithPassword(w.Context(), stranger(i), ann.Email, old, "")
					return o.add(r.Opened, err)
				}
				return o.add(w.on(i).Sessions.Open(w.Context(), stranger(i), account, ann.TenantID, nothingElse))
			})
			w.ok(errs[5])
			w.only(errs, "", doorward.CodeInvalidCredentials)
			if n := w.passing(&o); n > 0 {
				w.Fatalf("%d sessions opened with the old password are let pass", n)
			}
			if got := w.tries(ann.Email, old); got != doorward.CodeInvalidCredentials {
				w.Fatalf("the old password: %q", got)
			}
			ann = w.signIn(ann.Email, next)
		}
	})
}

// changeOrReset prepares a change of the password, or a reset, to be run later.
func (w *world) changeOrReset(round int, p person, old, next string) func() error {
	w.Helper()
	if round%2 == 0 {
		return func() error { return failure(w.on(0).Passwords.Change(w.Context(), p.Caller, old, next, next)) }
	}
	token := w.reset(p)
	return func() error { return failure(w.on(1).Passwords.Reset(w.Context(), stranger(9), token, next, next)) }
}

// reset makes a reset without the mail, of which there are three an hour.
func (w *world) reset(p person) string {
	w.Helper()
	token := secret.New()
	hash, now := token.Hash(), w.db.Now()
	r := store.Reset{ID: doorward.NewID(doorward.PrefixReset), UserID: p.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	_, err := w.db.Write(w.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.InsertReset(w.Context(), r), tx.InsertLinkToken(w.Context(), hash[:], r.ID))
	})
	w.ok(err)
	return token.Reveal()
}

// TestOnePasswordChange: the same session changes the password many times at
// once. One of the new passwords is the password.
func TestOnePasswordChange(t *testing.T) {
	onEach(t, func(w *world) {
		const callers = 16
		_, ann := w.tenant()
		errs := together(callers, func(i int) error {
			return failure(w.on(i).Passwords.Change(w.Context(), ann.Caller, first, password(i+1), password(i+1)))
		})
		winner := w.ends(errs, tally{"": 1, doorward.CodeValidationFailed: callers - 1})
		w.opensOnlyWith(ann.Email, winner+1, callers+1)
		if !w.passes(ann.token) {
			w.Error("the session that changed the password has ended")
		}
	})
}

// TestSessionLimit: of many logins at once as many stay as the limit allows, in
// whichever tenants they are.
func TestSessionLimit(t *testing.T) {
	onEach(t, func(w *world) {
		acme, ann := w.tenant()
		tenants := []string{acme.ID}
		for range 4 {
			other, owner := w.tenant()
			_, token := w.invite(owner, ann.Email, doorward.RoleUser)
			_, err := w.on(0).Invitations.Accept(w.Context(), ann.Caller, token, "")
			w.ok(err)
			tenants = append(tenants, other.ID)
		}
		account := w.account(ann)
		for round := range 6 {
			var o opened
			errs := together(20, func(i int) error {
				to := tenants[i%len(tenants)]
				if round > 0 { // without the hash they come closer together
					return o.add(w.on(i).Sessions.Open(w.Context(), stranger(i), account, to, nothingElse))
				}
				r, err := w.on(i).Login.WithPassword(w.Context(), stranger(i), ann.Email, first, to)
				return o.add(r.Opened, err)
			})
			w.ends(errs, tally{"": 20})
			rows, err := w.db.Read().UserSessions(w.Context(), ann.ID)
			w.ok(err)
			if n := w.passing(&o); n != 10 || len(rows) != 10 {
				w.Fatalf("of 20 new sessions %d are let pass and %d are stored, want 10", n, len(rows))
			}
		}
	})
}

// TestOneSwitch: a session is exchanged once, however often that is asked for.
func TestOneSwitch(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		zeta, guest := w.tenant()
		_, token := w.invite(owner, guest.Email, doorward.RoleViewer)
		joined, err := w.on(0).Invitations.Accept(w.Context(), guest.Caller, token, "")
		w.ok(err)
		var o opened
		errs := together(8, func(i int) error {
			to := []string{joined.TenantID, zeta.ID}[i%2]
			return o.add(w.on(i).Sessions.Switch(w.Context(), guest.Caller, to))
		})
		w.ends(errs, tally{"": 1, doorward.CodeUnauthenticated: 7})
		if w.passes(guest.token) || w.passing(&o) != 1 {
			w.Errorf("the old session passes: %v; %d new ones do", w.passes(guest.token), w.passing(&o))
		}
		w.switchesCross(owner, guest, joined.TenantID, zeta.ID)
	})
}

// switchesCross: people who go from one tenant to another write into the trails
// of both, and those who come the other way meanwhile never wait for each other.
func (w *world) switchesCross(owner, guest person, acme, zeta string) {
	w.Helper()
	guest = w.signIn(guest.Email, first)
	_, token := w.invite(w.moved(guest, zeta), owner.Email, doorward.RoleViewer)
	_, err := w.on(0).Invitations.Accept(w.Context(), owner.Caller, token, "")
	w.ok(err)
	both := []person{w.moved(owner, acme), w.moved(w.signIn(guest.Email, first), zeta)}
	w.ends(together(2, func(i int) error {
		by, there := both[i].Caller, []string{zeta, acme, zeta}[i:]
		for n := range 40 {
			opened, err := w.on(i).Sessions.Switch(w.Context(), by, there[n%2])
			if err != nil {
				return err
			}
			by.SessionID = opened.Session.ID
		}
		return nil
	}), tally{"": 2})
	if len(w.nodes) < 2 {
		return
	}
	if n := w.deadlocks(); n > 0 {
		w.Errorf("PostgreSQL has resolved %d deadlocks", n)
	}
}

// moved is the person in the tenant.
func (w *world) moved(p person, tenantID string) person {
	w.Helper()
	s, err := w.on(0).Sessions.Switch(w.Context(), p.Caller, tenantID)
	w.ok(err)
	by := p.Caller.As(s.User)
	by.SessionID = s.Session.ID
	return person{by, s.User, s.Token}
}

// TestSuspendedInviterInvitesNobody: an invitation is revoked with its sender's
// membership, or accepted before, and never both.
func TestSuspendedInviterInvitesNobody(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		admin := w.join(owner, doorward.RoleAdmin)
		_, guest := w.tenant()
		for range 20 {
			admin = w.signIn(admin.Email, first)
			inv, token := w.invite(admin, guest.Email, doorward.RoleUser)
			var ended doorward.Ended
			errs := together(2, func(i int) (err error) {
				if i == 0 {
					_, err = w.on(i).Invitations.Accept(w.Context(), guest.Caller, token, "")
					return err
				}
				ended, err = w.on(i).Users.Suspend(w.Context(), owner.Caller, admin.User)
				return err
			})
			w.ok(errs[1])
			w.only(errs, "", doorward.CodeInvitationRevoked)
			if accepted := errs[0] == nil; accepted == (ended.Invitations == 1) {
				w.Fatalf("accepted: %v; %d invitations were revoked", accepted, ended.Invitations)
			}
			w.ok(w.on(0).Users.Resume(w.Context(), owner.Caller, admin.User))
			_, err := w.db.Write(w.Context(), func(tx *store.Tx) error {
				if _, err := tx.DeleteMembership(w.Context(), inv.TenantID, guest.ID); err != nil {
					return err
				}
				return tx.ClearThrottle(w.Context(), "resend:"+inv.TenantID+":"+inv.Email) // it is no day's work
			})
			w.ok(err)
		}
	})
}

// TestDemotedInviterInvitesNobody: whoever accepts has the inviter's authority
// judged and the membership written as one; a demotion waits, or is seen.
func TestDemotedInviterInvitesNobody(t *testing.T) {
	w := newWorld(t, engines[1], noLimits, time.Now)
	_, owner := w.tenant()
	admin := w.join(owner, doorward.RoleAdmin)
	_, guest := w.tenant()
	_, token := w.invite(admin, guest.Email, doorward.RoleUser)

	// The account is held, so that the acceptance stops after its judgement.
	var accepted, demoted error
	acceptance, demotion := make(chan struct{}), make(chan struct{})
	w.holding(func(tx *store.Tx) error {
		_, err := tx.LockAccount(w.Context(), guest.ID, w.account(guest).PasswordHash)
		return err
	}, func(waiting func(n int, or <-chan struct{})) {
		go func() {
			defer close(acceptance)
			_, accepted = w.on(0).Invitations.Accept(w.Context(), guest.Caller, token, "")
		}()
		waiting(1, acceptance)
		go func() {
			defer close(demotion)
			demoted = w.on(1).Users.SetRole(w.Context(), owner.Caller, admin.User, doorward.RoleViewer)
		}()
		waiting(2, demotion)
		select {
		case <-demotion:
			t.Error("the inviter was demoted between the judgement of the acceptance and its commit")
		default:
		}
	})
	<-acceptance
	<-demotion
	w.ok(errors.Join(accepted, demoted))
}

// TestInviterIsJudgedAgain: whoever is demoted while an acceptance waits for its
// turn has lost the authority by then, and the invitation stays what it was.
func TestInviterIsJudgedAgain(t *testing.T) {
	w := newWorld(t, engines[1], noLimits, time.Now)
	acme, owner := w.tenant()
	admin := w.join(owner, doorward.RoleAdmin)
	_, guest := w.tenant()
	inv, token := w.invite(admin, guest.Email, doorward.RoleUser)
	var accepted error
	acceptance := make(chan struct{})
	w.holding(func(tx *store.Tx) error {
		_, err := tx.SetUserRole(w.Context(), acme.ID, admin.ID, doorward.RoleViewer)
		return errors.Join(err, tx.LockTenant(w.Context(), acme.ID))
	}, func(waiting func(n int, or <-chan struct{})) {
		go func() {
			defer close(acceptance)
			_, accepted = w.on(0).Invitations.Accept(w.Context(), guest.Caller, token, "")
		}()
		waiting(1, acceptance)
	})
	<-acceptance
	w.ends([]error{accepted}, tally{doorward.CodeInvitationRevoked: 1})
	now, err := w.db.Read().Invitation(w.Context(), inv.ID)
	w.ok(err)
	if now.State != doorward.InvitationPending {
		t.Errorf("the invitation is %s", now.State)
	}
}

// holding takes a lock and does something before it gives it back. The function
// handed on returns when so many callers wait for locks, or the channel closes.
func (w *world) holding(lock func(*store.Tx) error, do func(waiting func(n int, or <-chan struct{}))) {
	w.Helper()
	observer, err := sql.Open("pgx", w.dsn)
	w.ok(err)
	defer observer.Close()
	waiting := func(n int, or <-chan struct{}) {
		for waits := -1; waits < n; {
			select {
			case <-or:
				return
			default:
			}
			w.ok(observer.QueryRowContext(w.Context(), `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits))
		}
	}
	_, err = w.db.Write(w.Context(), func(tx *store.Tx) error {
		err := lock(tx)
		if err == nil {
			do(waiting)
		}
		return err
	})
	w.ok(err)
}
