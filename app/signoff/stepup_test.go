package signoff_test

import (
	"testing"

	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// TestStepUpUnderWay: a session is not proved again by a sign-in that the provider has ended meanwhile: it would go on
// under a session at the provider that is over.
func TestStepUpUnderWay(t *testing.T) {
	for name, w := range map[string]struct {
		end     m
		refused bool
	}{
		"that session": {m{"sid": "second"}, true}, "another session": {m{"sid": "third"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(s *site) {
				s.person("7")
				in := s.signIn("7", "first")
				s.provider.Change(func(p *oidctest.Settings) { p.Person.Claims["sid"] = "second" })
				on := s.Node(0).SignOn
				start, err := on.Start(s.Context(), in.Caller, s.con.ID, signon.Ask{StepUp: true})
				s.NoError(err)
				back, err := s.provider.SignIn(start.URL)
				s.NoError(err)
				s.NoError(s.logout(1, s.logoutToken(w.end)))
				_, err = on.Finish(s.Context(), in.Caller, s.con.ID, back.Query(), []flow.Tab{start.Tab})
				if !w.refused {
					s.NoError(err)
					return
				}
				s.wantCode("the step-up", err, "sign_on_refused")
				s.wantValid("as it was", true, in)
			})
		})
	}
}

// TestStepUpByAnotherSession: a session that the provider has proved again by another session of its own ends with a logout of
// either one.
func TestStepUpByAnotherSession(t *testing.T) {
	for _, sid := range []string{"first", "second", "third"} {
		t.Run(sid, func(t *testing.T) {
			onSQLite(t, func(s *site) {
				s.person("7")
				in := s.signIn("7", "first")
				for _, next := range []string{"second", "third"} {
					s.provider.Change(func(p *oidctest.Settings) { p.Person.Claims["sid"] = next })
					on := s.Node(0).SignOn
					start, err := on.Start(s.Context(), in.Caller, s.con.ID, signon.Ask{StepUp: true})
					s.NoError(err)
					back, err := s.provider.SignIn(start.URL)
					s.NoError(err)
					result, err := on.Finish(s.Context(), in.Caller, s.con.ID, back.Query(), []flow.Tab{start.Tab})
					s.NoError(err)
					in.Token = result.Raised.Token
				}
				s.wantValid("proved again", true, in)
				s.NoError(s.logout(1, s.logoutToken(m{"sid": sid})))
				s.wantValid("logged out of "+sid, false, in)
			})
		})
	}
}
