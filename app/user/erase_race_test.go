package user_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

func eraseOneself(f *apptest.Fixture, node int, p apptest.Person) error {
	return apptest.ErrorOf(f.Node(node).Users.Erase(f.Context(), p.Caller, p.User.Email))
}

// joinBy makes the person a member of the inviter's tenant, too.
func joinBy(f *apptest.Fixture, inviter, p apptest.Person, role doorward.Role) {
	f.Helper()
	_, token := f.Invite(inviter, p.User.Email, role)
	_, err := f.Node(0).Invitations.Accept(f.Context(), p.Caller, token, "")
	f.NoError(err)
}

// notInvited is a value of the argument invited of wantErased.
const notInvited = false

// wantErased fails if a row about the person is left. If the person is invited, rows may still
// have the address, which an invitation that can be accepted needs.
func wantErased(f *apptest.Fixture, p apptest.Person, invited bool) {
	f.Helper()
	all := f.AllRows()
	for _, row := range apptest.RowsWith(all, p.User.ID) {
		if !slices.Contains(keepIDs, tableOf(row)) {
			f.Errorf("a row of the erased account is left: %s", row)
		}
	}
	if rows := apptest.RowsWith(all, p.User.Email); len(rows) > 0 && !invited {
		f.Errorf("rows with the address are left:\n%s", strings.Join(rows, "\n"))
	}
}

// TestOwnersEraseThemselvesAtOnce: two OWNERs of the same two tenants erase themselves at
// once. Exactly one is refused, and keeps both tenants.
func TestOwnersEraseThemselvesAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		for range apptest.Rounds(3, 30) {
			_, ann := f.Tenant()
			_, bob := f.Tenant()
			joinBy(f, ann, bob, doorward.RoleOwner)
			joinBy(f, bob, ann, doorward.RoleOwner)
			two := []apptest.Person{ann, bob}
			errs := apptest.Concurrently(2, func(i int) error { return eraseOneself(f, i, two[i]) })
			erased := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeLastOwner: 1})
			wantErased(f, two[erased], notInvited)
			remaining := two[1-erased]
			if f.IsValid(two[erased].Token) || !f.IsValid(remaining.Token) {
				f.Error("the session of the wrong OWNER has ended")
			}
			if n := f.Int(`SELECT count(*) FROM memberships WHERE user_id = $1 AND role = 'OWNER' AND status = 'active'`, remaining.User.ID); n != 2 {
				f.Errorf("the remaining OWNER has %d tenants", n)
			}
		}
		wantIntact(f)
		f.WantNoDeadlocks()
	})
}

// TestEraseTwiceAtOnce: several requests of one person erase the account at once. One succeeds,
// and the others are unauthenticated, since their session has ended.
func TestEraseTwiceAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 4
		_, owner := f.Tenant()
		p := f.Join(owner, doorward.RoleUser)
		errs := apptest.Concurrently(callers, func(i int) error { return eraseOneself(f, i%len(f.Nodes), p) })
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeUnauthenticated: callers - 1})
		wantErased(f, p, notInvited)
		wantIntact(f)
	})
}

// TestEraseWhileJoining: somebody erases the account and accepts an invitation at once. In
// either order, no membership is left without its account. An erasure that finds a tenant that
// it has not locked is unavailable; repeated, it succeeds.
func TestEraseWhileJoining(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		for range apptest.Rounds(4, 30) {
			p := f.Join(owner, doorward.RoleUser)
			_, token := f.Invite(other, p.User.Email, doorward.RoleUser)
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					return eraseOneself(f, 0, p)
				}
				return apptest.ErrorOf(f.Node(1).Invitations.Accept(f.Context(), p.Caller, token, ""))
			})
			f.WantOnly(errs[:1], "", doorward.CodeUnavailable)
			f.WantOnly(errs[1:], "", doorward.CodeUnauthenticated)
			if errs[0] != nil {
				f.NoError(eraseOneself(f, 0, p))
			}
			wantErased(f, p, errs[1] != nil)
		}
		wantIntact(f)
		f.WantNoDeadlocks()
	})
}

// TestEraseWhileSigningIn: somebody erases the account while a login of theirs finishes its
// second step. The session that it may have opened has ended, too, and nothing of it is left.
func TestEraseWhileSigningIn(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for range apptest.Rounds(4, 30) {
			p := f.Join(owner, doorward.RoleUser)
			const remember = true // the browser
			app := f.Enrol(&p)
			begun := f.Challenge(apptest.Anonymous(1), p)
			var opened secret.Token
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					return eraseOneself(f, 0, p)
				}
				in, err := apptest.SignedIn(f.Node(1).Login.WithSecond(f.Context(), apptest.Anonymous(1), begun.Token.Reveal(), factor.Answer{Code: app.Code(f.DB.Now())}, remember))
				opened = in.Token
				return err
			})
			f.WantCodes(errs[:1], apptest.Codes{"": 1})
			f.WantOnly(errs[1:], "", doorward.CodeChallengeOver, doorward.CodeInvalidCode, doorward.CodeInvalidCredentials)
			if errs[1] == nil && f.IsValid(opened) {
				f.Error("the session of an erased account is still valid")
			}
			f.RecordPending()
			f.NoError(f.Node(1).Users.Sweep(f.Context()))
			wantErased(f, p, notInvited)
		}
		wantIntact(f)
		f.WantNoDeadlocks()
	})
}

// TestEraseBehindALogin: the person signs in while an erasure waits for a lock. What the login
// writes has a later time than the erasure, and is erased, too.
func TestEraseBehindALogin(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	p := f.Join(owner, doorward.RoleUser)
	erasure := make(chan error, 1)
	f.WhileLocked(func(tx *store.Tx) error { return tx.LockTenant(f.Context(), p.User.TenantID) }, func(waitFor func(int, <-chan struct{})) {
		go func() { erasure <- eraseOneself(f, 0, p) }()
		waitFor(1, nil)
		if got := f.TryLogin(p.User.Email, apptest.FirstPassword); got != "" { // a login doesn't lock the tenant
			f.Fatal(got)
		}
	})
	f.NoError(<-erasure)
	wantErased(f, p, notInvited)
	wantIntact(f)
}

// TestEraseWhileProving: somebody erases the account while another session of theirs asks for
// a challenge, or sets up the factor that a tenant demands. These find that the account is gone.
func TestEraseWhileProving(t *testing.T) {
	for name, prove := range map[string]struct {
		with func(*apptest.Fixture, apptest.Person, factor.NewChallenge) error
		code doorward.Code
	}{
		"step-up": {func(f *apptest.Fixture, p apptest.Person, _ factor.NewChallenge) error {
			return apptest.ErrorOf(f.Node(1).Login.BeginStepUp(f.Context(), p.Caller))
		}, doorward.CodeUnauthenticated},
		"enrolment": {func(f *apptest.Fixture, _ apptest.Person, c factor.NewChallenge) error {
			return apptest.ErrorOf(f.Node(1).Factors.EnrolWithChallenge(f.Context(), apptest.Anonymous(1), c.Token.Reveal(), ""))
		}, doorward.CodeChallengeOver},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
			f.UseMasterKey()
			_, owner := f.Tenant()
			p := f.Join(owner, doorward.RoleUser)
			f.EditTenant(owner, func(s *doorward.TenantSettings) { s.SecondFactor.Since = f.DB.Now().Add(-time.Hour) })
			begun := f.Challenge(apptest.Anonymous(1), p)
			erasure, proof := make(chan error, 1), make(chan error, 1)
			f.WhileTrailLocked(p.User.TenantID, func(waitFor func(int, <-chan struct{})) {
				go func() { erasure <- eraseOneself(f, 0, p) }()
				waitFor(1, nil)
				go func() { proof <- prove.with(f, p, begun) }()
				waitFor(2, nil)
			})
			f.WantCodes([]error{<-erasure, <-proof}, apptest.Codes{"": 1, prove.code: 1})
			wantErased(f, p, notInvited)
		})
	}
}
