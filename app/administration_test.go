package app_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// againstOwners are what an OWNER can do against an OWNER, oneself included.
var againstOwners = []func(w *world, i int, by, target person) error{
	func(w *world, i int, by, target person) error {
		return w.on(i).Users.SetRole(w.Context(), by.Caller, target.User, doorward.RoleAdmin)
	},
	func(w *world, i int, by, target person) error {
		_, err := w.on(i).Users.Suspend(w.Context(), by.Caller, target.User)
		return err
	},
	func(w *world, i int, by, target person) error {
		_, err := w.on(i).Users.Remove(w.Context(), by.Caller, target.User, nil)
		return err
	},
	func(w *world, i int, by, _ person) error {
		_, err := w.on(i).Users.Leave(w.Context(), by.Caller, by.TenantID)
		return err
	},
}

// TestOneOwnerIsLeft: two OWNERs demote, suspend and remove each other and
// themselves, and leave, at once. One active OWNER is left, whoever was first,
// and nobody is told of a success that didn't happen.
func TestOneOwnerIsLeft(t *testing.T) {
	onEach(t, func(w *world) {
		_, ann := w.tenant()
		bob := w.join(ann, doorward.RoleOwner)
		two := []person{ann, bob}
		ways := len(againstOwners)
		for round := range 200 {
			way := []int{round % ways, round / ways % ways}
			self := round / ways / ways % 4 // who acts on oneself: nobody, the first, the second, both
			errs := together(2, func(i int) error {
				target := two[1-i]
				if self>>i&1 == 1 {
					target = two[i]
				}
				return againstOwners[way[i]](w, i, two[i], target)
			})
			w.only(errs, "", doorward.CodeLastOwner, doorward.CodeForbidden, doorward.CodeNotFound, doorward.CodeUnauthenticated)
			if errs[0] != nil && errs[1] != nil {
				w.Fatalf("round %d: both lost: %v", round, errs)
			}
			w.oneOwnerThenTwo(two)
			for i, p := range two { // who lost the membership lost the session
				two[i] = w.signIn(p.Email, first)
			}
		}
	})
}

// TestRemoveAsSeen: of a removal that was decided on what a member was, and an
// edit of the member at once, one happens: nobody is removed whom an edit that
// the remover hasn't seen has just made somebody else.
func TestRemoveAsSeen(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		for round := range w.rounds(40, 40) {
			bob := w.join(owner, doorward.RoleViewer)
			seen, err := w.on(round).Users.Get(w.Context(), owner.Caller, bob.ID)
			w.ok(err)
			errs := together(2, func(i int) error {
				if i == 0 {
					return w.on(round).Users.SetRole(w.Context(), owner.Caller, bob.User, doorward.RoleUser)
				}
				_, err := w.on(round+i).Users.Remove(w.Context(), owner.Caller, bob.User, []string{seen.Version()})
				return err
			})
			switch {
			case errs[0] == nil && code(errs[1]) == doorward.CodePreconditionFailed:
			case errs[1] == nil && code(errs[0]) == doorward.CodeNotFound:
			default:
				w.Fatalf("round %d: the edit ended with %v, the removal with %v", round, errs[0], errs[1])
			}
		}
	})
}

// TestRevokeOrAccept: of a revocation and an acceptance at once one happens, and
// the other is told.
func TestRevokeOrAccept(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		for round := range w.rounds(60, 60) {
			inv, token := w.invite(owner, fmt.Sprintf("new%d@example.com", round), doorward.RoleUser)
			errs := together(2, func(i int) error {
				if i == 0 {
					return w.on(round).Invitations.Revoke(w.Context(), owner.Caller, inv.ID)
				}
				_, err := w.on(round+i).Invitations.Complete(w.Context(), stranger(i), token, first, first)
				return err
			})
			w.oneOf(errs, inv, doorward.InvitationRevoked, doorward.InvitationAccepted)
		}
	})
}

// TestResendOrAccept: of a resend and an acceptance by the mail before at once
// one happens, and the other is told.
func TestResendOrAccept(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		for round := range w.rounds(60, 60) {
			inv, token := w.invite(owner, fmt.Sprintf("new%d@example.com", round), doorward.RoleUser)
			errs := together(2, func(i int) error {
				if i == 0 {
					_, err := w.on(round).Invitations.Resend(w.Context(), owner.Caller, inv.ID)
					return err
				}
				_, err := w.on(round+i).Invitations.Complete(w.Context(), stranger(i), token, first, first)
				return err
			})
			w.oneOf(errs, inv, doorward.InvitationPending, doorward.InvitationAccepted)
		}
	})
}

// oneOf wants one of an administrator's act and an acceptance to have happened,
// and the invitation to be as that one leaves it.
func (w *world) oneOf(errs []error, inv doorward.Invitation, administered, accepted doorward.InvitationState) {
	w.Helper()
	now, err := w.db.Read().Invitation(w.Context(), inv.ID)
	w.ok(err)
	switch {
	case errs[0] == nil && code(errs[1]) == doorward.CodeInvitationRevoked && now.State == administered:
	case errs[1] == nil && code(errs[0]) == doorward.CodeInvitationNotPending && now.State == accepted:
	default:
		w.Fatalf("the act ended with %v, the acceptance with %v, and the invitation is %s", errs[0], errs[1], now.State)
	}
}

// TestDemotedWhileWaiting: an ADMIN who is demoted while a request waits for its
// turn has lost, whatever it asked for, and nothing is changed.
func TestDemotedWhileWaiting(t *testing.T) {
	w := newWorld(t, engines[1], noLimits, time.Now)
	acme, owner := w.tenant()
	bob := w.join(owner, doorward.RoleViewer)
	inv, _ := w.invite(owner, "pending@example.com", doorward.RoleUser)
	name, users := "Renamed", w.on(0).Users
	acts := map[string]func(by person) error{
		"role":    func(by person) error { return users.SetRole(w.Context(), by.Caller, bob.User, doorward.RoleUser) },
		"suspend": func(by person) error { _, err := users.Suspend(w.Context(), by.Caller, bob.User); return err },
		"rename": func(by person) error {
			_, _, err := users.Edit(w.Context(), by.Caller, bob.User, user.Edit{Name: &name})
			return err
		},
		"nothing": func(by person) error {
			_, _, err := users.Edit(w.Context(), by.Caller, bob.User, user.Edit{})
			return err
		},
		"remove":   func(by person) error { _, err := users.Remove(w.Context(), by.Caller, bob.User, nil); return err },
		"sign out": func(by person) error { _, err := users.SignOut(w.Context(), by.Caller, bob.User); return err },
		"invite": func(by person) error {
			_, err := w.on(0).Invitations.Send(w.Context(), by.Caller, offer("new@example.com", doorward.RoleUser))
			return err
		},
		"resend": func(by person) error {
			_, err := w.on(0).Invitations.Resend(w.Context(), by.Caller, inv.ID)
			return err
		},
		"revoke": func(by person) error { return w.on(0).Invitations.Revoke(w.Context(), by.Caller, inv.ID) },
		"settings": func(by person) error {
			_, err := w.on(0).Tenants.Edit(w.Context(), by.Caller, tenant.Edit{Name: &name})
			return err
		},
	}
	for what, act := range acts {
		admin := w.join(owner, doorward.RoleAdmin)
		var err error
		done := make(chan struct{})
		w.holding(func(tx *store.Tx) error {
			_, err := tx.SetUserRole(w.Context(), acme.ID, admin.ID, doorward.RoleViewer)
			return errors.Join(err, tx.LockTenant(w.Context(), acme.ID))
		}, func(waiting func(n int, or <-chan struct{})) {
			go func() { defer close(done); err = act(admin) }()
			waiting(1, done)
		})
		<-done
		if code(err) != doorward.CodeForbidden {
			t.Errorf("%s: %v, want forbidden", what, err)
		}
	}
	w.untouched(acme, bob, inv)
}

// untouched wants all three to be as they were.
func (w *world) untouched(acme doorward.Tenant, bob person, inv doorward.Invitation) {
	w.Helper()
	nowBob, err := w.db.Read().User(w.Context(), acme.ID, bob.ID)
	w.ok(err)
	nowInv, err := w.db.Read().Invitation(w.Context(), inv.ID)
	w.ok(err)
	nowAcme, err := w.db.Read().Tenant(w.Context(), acme.ID)
	w.ok(err)
	if nowBob.Version() != bob.User.Version() || nowInv.State != doorward.InvitationPending || !nowInv.ExpiresAt.Equal(inv.ExpiresAt) ||
		nowAcme.Name != acme.Name || !w.passes(bob.token) {
		w.Errorf("something was changed: %+v, %+v, %+v, the session passes: %v", nowBob, nowInv, nowAcme, w.passes(bob.token))
	}
	if _, err := w.db.Read().PendingInvitation(w.Context(), acme.ID, "new@example.com"); !errors.Is(err, store.ErrNone) {
		w.Errorf("somebody was invited: %v", err)
	}
}

// TestDeedsAreJudgedBeforeTheyAreDone: who gives up a role may still do with it
// what was asked for in the same breath, and what is given to somebody doesn't
// put that one out of reach.
func TestDeedsAreJudgedBeforeTheyAreDone(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		role, status, name := doorward.RoleViewer, doorward.UserSuspended, "Gone"
		self := w.join(owner, doorward.RoleOwner)
		after, ended, err := w.on(0).Users.Edit(w.Context(), self.Caller, self.User, user.Edit{Role: &role, Status: &status, Name: &name})
		w.ok(err)
		if after.Role != role || after.Status != status || after.Name != name || ended.Sessions != 1 || w.passes(self.token) {
			w.Errorf("the edit of oneself has led to %+v and ended %+v", after, ended)
		}
		admin, bob := w.join(owner, doorward.RoleAdmin), w.join(owner, doorward.RoleUser)
		role = doorward.RoleAdmin
		after, _, err = w.on(0).Users.Edit(w.Context(), admin.Caller, bob.User, user.Edit{Role: &role, Name: &name})
		w.ok(err)
		if after.Role != role || after.Name != name {
			w.Errorf("the edit has led to %+v", after)
		}
	})
}

// TestClosingOutrunsLogin: once the closing has answered no session of a USER is
// of use, and none comes back to life when the tenant is restored.
func TestClosingOutrunsLogin(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		bob := w.join(owner, doorward.RoleUser)
		account := w.account(bob)
		for range 40 {
			var o opened
			errs := together(5, func(i int) error {
				if i == 4 {
					_, _, err := w.on(0).Tenants.Close(w.Context(), owner.Caller, acme.Name)
					return err
				}
				return o.add(w.on(i).Sessions.Open(w.Context(), stranger(i), account, acme.ID, nothingElse))
			})
			w.ok(errs[4])
			w.only(errs, "", doorward.CodeTenantClosing)
			if n := w.passing(&o); n > 0 {
				w.Fatalf("%d sessions are let pass after the closing", n)
			}
			owner = w.signIn(owner.Email, first)
			_, err := w.on(1).Tenants.Restore(w.Context(), owner.Caller)
			w.ok(err)
			if n := w.passing(&o); n > 0 || !w.passes(owner.token) {
				w.Fatalf("%d sessions have come back to life; the OWNER's own passes: %v", n, w.passes(owner.token))
			}
		}
	})
}

// TestRestoreBringsNoSessionBack: not even one that was written while the tenant
// was being closed.
func TestRestoreBringsNoSessionBack(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		bob := w.join(owner, doorward.RoleUser)
		_, _, err := w.on(0).Tenants.Close(w.Context(), owner.Caller, acme.Name)
		w.ok(err)
		slipped, now := secret.New(), w.db.Now()
		hash := slipped.Hash()
		_, err = w.db.Write(w.Context(), func(tx *store.Tx) error {
			return tx.InsertSession(w.Context(), doorward.Session{
				ID: doorward.NewID(doorward.PrefixSession), UserID: bob.ID, TenantID: acme.ID, CreatedAt: now, LastSeenAt: now,
			}, hash[:])
		})
		w.ok(err)
		if w.passes(slipped) {
			w.Fatal("a USER's session passes in a tenant that is closing")
		}
		_, err = w.on(0).Tenants.Restore(w.Context(), w.signIn(owner.Email, first).Caller)
		w.ok(err)
		if w.passes(slipped) {
			w.Error("it has come back to life")
		}
	})
}

// TestAdministrationIsOnRecord: each act is recorded once, under its own name and
// with what it changed; what changes nothing is not, and a refusal is.
func TestAdministrationIsOnRecord(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		bob := w.join(owner, doorward.RoleUser)
		inv, _ := w.invite(owner, "new@example.com", doorward.RoleUser)
		users, invitations, tenants, ctx := w.on(0).Users, w.on(0).Invitations, w.on(0).Tenants, w.Context()
		role, status, name, days, domains := doorward.RoleAdmin, doorward.UserSuspended, "Bob", int64(9), []string{"x.example"}
		whole := user.Edit{Role: &role, Status: &status, Name: &name}
		refused := func(err error) error {
			if code(err) != doorward.CodeForbidden {
				return fmt.Errorf("%v, want forbidden", err)
			}
			return nil
		}
		for _, act := range []struct {
			do   func() error
			want []string
		}{
			{func() error { _, _, err := users.Edit(ctx, owner.Caller, bob.User, whole); return err }, []string{
				"done user.rename user name  Bob", "done user.role user role USER ADMIN", "done user.suspend user status active suspended sessionsEnded  1",
			}},
			{func() error { _, _, err := users.Edit(ctx, owner.Caller, bob.User, whole); return err }, nil},
			{func() error { return users.Resume(ctx, owner.Caller, bob.User) }, []string{"done user.resume user status suspended active"}},
			{func() error { _, err := users.SignOut(ctx, owner.Caller, bob.User); return err }, []string{"done user.signout user"}},
			{func() error { bob = w.signIn(bob.Email, first); return nil }, []string{"done session.open session"}},
			{func() error { return refused(users.SetRole(ctx, bob.Caller, owner.User, doorward.RoleUser)) }, []string{"refused user.manage user reason  forbidden role OWNER USER"}},
			{func() error { _, err := users.Remove(ctx, bob.Caller, owner.User, nil); return refused(err) }, []string{"refused user.remove user reason  forbidden"}},
			{func() error { _, err := invitations.Resend(ctx, owner.Caller, inv.ID); return err }, []string{"done invitation.resend invitation expiresAt"}},
			{func() error { return invitations.Revoke(ctx, owner.Caller, inv.ID) }, []string{"done invitation.revoke invitation status PENDING REVOKED"}},
			{func() error {
				_, err := tenants.Edit(ctx, bob.Caller, tenant.Edit{InvitationDays: &days, AllowedEmailDomains: &domains})
				return err
			}, []string{"done tenant.update tenant invitationDays 30 9 allowedEmailDomains  x.example"}},
			{func() error { _, err := users.Remove(ctx, owner.Caller, bob.User, nil); return err }, []string{"done user.remove user role ADMIN  sessionsEnded  1"}},
			{func() error { _, _, err := tenants.Close(ctx, owner.Caller, acme.Name); return err }, []string{"done tenant.close tenant status active closing sessionsEnded  1"}},
		} {
			before, err := w.db.Read().Events(ctx, acme.ID)
			w.ok(err)
			w.ok(act.do())
			w.settle()
			after, err := w.db.Read().Events(ctx, acme.ID)
			w.ok(err)
			if diff := cmp.Diff(act.want, lines(after[len(before):])); diff != "" {
				w.Errorf("on record (-want +got):\n%s", diff)
			}
		}
	})
}

// lines writes events down, sorted: outcome, action, type of the object, changes.
// Those of one transaction are of one instant.
func lines(events []doorward.Event) (all []string) {
	for _, e := range events {
		line := fmt.Sprint(e.Outcome, " ", e.Action, " ", e.Target.Type)
		for _, c := range e.Changes {
			line += " " + c.Field
			if c.Field != "expiresAt" { // an instant that the test doesn't know
				line += " " + c.From + " " + c.To
			}
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}
