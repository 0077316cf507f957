package signon_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/signon"
)

// member makes a member of the site with an address of its domain and a password.
func (s *site) member(local string, role doorward.Role) apptest.Person {
	s.w.Helper()
	email := local + "@" + s.domain
	_, code := s.w.Invite(s.owner, email, role)
	_, err := s.w.Node(0).Invitations.Complete(s.w.Context(), apptest.Anonymous(0), code, apptest.FirstPassword, apptest.FirstPassword)
	s.w.NoError(err)
	return s.w.SignIn(email, apptest.FirstPassword)
}

// asked ends the test unless the person is asked for something, and returns what the page shows.
func (b *browser) asked(r signon.Result, err error) signon.Waiting {
	b.s.w.Helper()
	b.s.w.NoError(err)
	if r.Held == "" {
		b.s.w.Fatalf("nothing is asked: %T", r.Outcome)
	}
	w, err := b.signOn().Waiting(b.s.w.Context(), b.by, b.s.conID, b.held)
	b.s.w.NoError(err)
	return w
}

// isJoined reports whether the account has an identity of the connection.
func (s *site) isJoined(userID string) bool {
	s.w.Helper()
	all, err := s.w.DB.Read().IdentitiesOf(s.w.Context(), userID)
	s.w.NoError(err)
	return slices.ContainsFunc(all, func(i doorward.Identity) bool { return i.ConnectionID == s.conID })
}

// TestRankOfOwner: a member with a custom role of the rank of OWNER proves the account, as an OWNER does, though
// it is the tenant's alone.
func TestRankOfOwner(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITOff)
		chief := s.member("chief", doorward.RoleAdmin)
		w.NoError(apptest.ErrorOf(w.Node(0).Roles.Create(w.Context(), s.owner.Caller, role.Draft{Name: "CHIEF", Permissions: []string{"user.read", "sso.manage"}})))
		w.NoError(w.Node(0).Users.SetRole(w.Context(), s.owner.Caller, chief.User, "CHIEF"))
		s.says("subject-chief", "chief@acme.example", nil)
		if b := s.browser(); !b.asked(b.signIn()).Proves {
			t.Error("a role of the rank of OWNER is joined without a proof")
		}
	})
}

// TestProvedOnce: whom the tenant alone doesn't speak for proves the account once. An OWNER, a member of
// another tenant, somebody with a factor, and an address that isn't proved are such.
func TestProvedOnce(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITOff)
		other := w.site("globex.example", doorward.JITOff)
		both := s.member("both", doorward.RoleUser)
		_, code := w.Invite(other.owner, both.User.Email, doorward.RoleUser)
		w.NoError(apptest.ErrorOf(w.Node(0).Invitations.Accept(w.Context(), both.Caller, code, "")))
		withFactor := s.member("factor", doorward.RoleUser)
		app := w.Enrol(&withFactor)
		guest := w.Join(s.owner, doorward.RoleUser)
		for _, p := range []apptest.Person{both, guest, s.owner} {
			s.says("subject-"+p.User.ID, p.User.Email, nil)
			b := s.browser()
			if waits := b.asked(b.signIn()); !waits.Proves || !waits.Password || waits.Email != p.User.Email {
				t.Errorf("%s: the page shows %+v", p.User.Email, waits)
			}
			s.refused("", func() (signon.Result, error) { return b.prove("a wrong password of somebody") })
			held := b.held
			in := s.in(b.prove(apptest.FirstPassword))
			if in.User.ID != p.User.ID || in.User.Role != p.User.Role || in.Session.PasswordAt.IsZero() || !s.isJoined(p.User.ID) {
				t.Errorf("%s: the session is of %s, %s, the password at %v", p.User.Email, in.User.ID, in.User.Role, in.Session.PasswordAt)
			}
			b.held = held
			s.refused("state", func() (signon.Result, error) { return b.prove(apptest.FirstPassword) }) // it is used once
			s.in(s.browser().signIn())
		}
		s.says("subject-factor", withFactor.User.Email, nil)
		b := s.browser()
		b.asked(b.signIn())
		result, err := b.prove(apptest.FirstPassword)
		w.NoError(err)
		if result.Second == nil || s.isJoined(withFactor.User.ID) {
			t.Fatalf("after the password: %+v", result)
		}
		challenge := result.Second.Token.Reveal()
		if _, err := b.signOn().ProveSecond(w.Context(), b.by, s.conID, b.held, challenge, factor.Answer{Code: "000000"}); apptest.Code(err) != doorward.CodeInvalidCode {
			t.Errorf("a wrong code is answered %v", err)
		}
		in := s.in(b.signOn().ProveSecond(w.Context(), b.by, s.conID, b.held, challenge, factor.Answer{Code: app.Code(w.DB.Now())}))
		if in.User.ID != withFactor.User.ID || in.Session.AAL != 2 || in.Session.FactorAt.IsZero() {
			t.Errorf("the session is of %s, level %d", in.User.ID, in.Session.AAL)
		}
		if _, err := w.Node(0).Login.Switch(w.Context(), apptest.PersonOf(s.in(s.browser().signIn())).Caller, other.tenantID()); apptest.Code(err) != doorward.CodeSignInRequired {
			t.Errorf("a switch is answered %v", err)
		}
	})
}

// prove answers the page with a password.
func (b *browser) prove(password string) (signon.Result, error) {
	r, err := b.signOn().Prove(b.s.w.Context(), b.by, b.s.conID, b.held, password)
	if r.Held != "" {
		b.held = r.Held
	}
	return r, err
}

// TestReplacedSession: a browser with a live session of another account, or in another tenant, is asked before
// that is replaced.
func TestReplacedSession(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		ben := s.member("ben", doorward.RoleUser)
		s.says("subject-1", "ann@acme.example", nil)
		b := s.browser().as(ben)
		waits := b.asked(b.signIn())
		if !waits.Replaces || waits.Proves {
			t.Errorf("the page shows %+v", waits)
		}
		s.refused("state", func() (signon.Result, error) { return b.prove(apptest.FirstPassword) })
		in := s.in(b.signOn().Agree(w.Context(), b.by, s.conID, b.held))
		if in.User.ID == ben.User.ID {
			t.Error("the session is of the account that was replaced")
		}
		s.in(s.browser().as(apptest.PersonOf(in)).signIn())
		b = s.browser().as(ben) // and signs out in another tab
		b.asked(b.signIn())
		b.by = s.browser().by
		if waits, err := b.signOn().Waiting(w.Context(), b.by, s.conID, b.held); err != nil || waits.Replaces || waits.Proves {
			t.Errorf("the page shows %+v, %v", waits, err)
		}
		s.in(b.signOn().Agree(w.Context(), b.by, s.conID, b.held))
	})
}

// TestPasswordBeforeFactor: where the tenant demands a factor and the account, which isn't managed, has none, its
// password comes first.
func TestPasswordBeforeFactor(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITOff)
		s.member("ben", doorward.RoleUser)
		s.says("subject-ben", "ben@acme.example", nil)
		w.EditTenant(s.owner, func(settings *doorward.TenantSettings) { settings.SecondFactor.Since = w.DB.Now().Add(-1) })
		b := s.browser()
		if waits := b.asked(b.signIn()); !waits.Password {
			t.Errorf("the page shows %+v", waits)
		}
		r, err := b.prove(apptest.FirstPassword)
		w.NoError(err)
		if _, ok := r.Outcome.(login.EnrolmentNeeded); !ok {
			t.Errorf("after the password: %T", r.Outcome)
		}
	})
}
