package login_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
)

func stepUp(f *apptest.Fixture, n int, by doorward.Caller, token string, evidence login.Evidence) (session.Opened, error) {
	return f.Node(n).Login.StepUp(f.Context(), by, token, evidence)
}

func beginStepUp(f *apptest.Fixture, by doorward.Caller) string {
	f.Helper()
	b, err := f.Node(0).Login.BeginStepUp(f.Context(), by)
	f.NoError(err)
	return b.Token.Reveal()
}

func byPassword(text string) login.Evidence { return login.Evidence{Password: text} }

func byCode(text string) login.Evidence { return login.Evidence{Answer: factor.Answer{Code: text}} }

func wantCode(f *apptest.Fixture, err error, code doorward.Code) {
	f.Helper()
	if got := apptest.Code(err); got != code {
		f.Errorf("the call ends in %q (%v), want %q", got, err, code)
	}
}

// openSession opens another session of the person.
func openSession(f *apptest.Fixture, p apptest.Person) (doorward.Caller, secret.Token) {
	f.Helper()
	r, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), p.User.Email, apptest.FirstPassword, ""))
	f.NoError(err)
	by := apptest.Anonymous(0).As(r.User)
	by.Principal = doorward.PrincipalOf(r.User, r.Session)
	return by, r.Token
}

// TestStepUpByPassword: a proof renews one session, under a new token. No node accepts the
// old token once the call has returned.
func TestStepUpByPassword(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, ann := f.Tenant()
		by, old := openSession(f, ann)
		_, other := openSession(f, ann)
		before, err := f.Node(0).Sessions.Check(f.Context(), old)
		f.NoError(err)
		clock.Move(30 * time.Minute)
		opened, err := stepUp(f, 0, by, beginStepUp(f, by), byPassword(apptest.FirstPassword))
		f.NoError(err)
		if opened.Session.ID != by.SessionID || !opened.Session.CreatedAt.Equal(before.AuthAt) {
			f.Errorf("the session is %+v", opened.Session)
		}
		for i := range f.Nodes {
			for range 2 { // from the database, then from memory
				_, err := f.Node(i).Sessions.Check(f.Context(), old)
				wantCode(f, err, doorward.CodeUnauthenticated)
				p, err := f.Node(i).Sessions.Check(f.Context(), opened.Token)
				f.NoError(err)
				if p.SessionID != by.SessionID || p.AAL != 1 || p.AuthAt.Sub(before.AuthAt) < 30*time.Minute {
					f.Errorf("node %d: the principal is %+v", i, p)
				}
				p, err = f.Node(i).Sessions.Check(f.Context(), other)
				f.NoError(err)
				if !p.AuthAt.Before(before.AuthAt.Add(time.Minute)) {
					f.Errorf("the other session was renewed, too: %v", p.AuthAt)
				}
			}
		}
	})
}

// TestStepUpIsRefused: a wrong answer is a fault of the form, never a 401. A challenge works
// once, and only for its session.
func TestStepUpIsRefused(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		bob := f.Join(ann, doorward.RoleUser)
		by, _ := openSession(f, ann)
		other, _ := openSession(f, ann)
		token := beginStepUp(f, by)
		for _, c := range []struct {
			by    doorward.Caller
			token string
			with  login.Evidence
			code  doorward.Code
		}{
			{by, token, byPassword("wrong password"), doorward.CodeValidationFailed},
			{by, token, byCode("123456"), doorward.CodeValidationFailed},
			{by, "nonsense", byPassword(apptest.FirstPassword), doorward.CodeChallengeOver},
			{by, secret.New().Reveal(), byPassword(apptest.FirstPassword), doorward.CodeChallengeOver},
			{other, token, byPassword(apptest.FirstPassword), doorward.CodeChallengeOver},
			{bob.Caller, token, byPassword(apptest.FirstPassword), doorward.CodeChallengeOver},
			{by, token, byPassword(apptest.FirstPassword), ""},
			{by, token, byPassword(apptest.FirstPassword), doorward.CodeChallengeOver},
		} {
			_, err := stepUp(f, 0, c.by, c.token, c.with)
			wantCode(f, err, c.code)
		}
		token = beginStepUp(f, by)
		for range doorward.ChallengeTries {
			_, err := stepUp(f, 0, by, token, byPassword("wrong password"))
			wantCode(f, err, doorward.CodeValidationFailed)
		}
		_, err := stepUp(f, 0, by, token, byPassword(apptest.FirstPassword))
		wantCode(f, err, doorward.CodeChallengeOver)
	})
}

// TestRaceStepUpByCode: a person with a second factor must prove it; the password is not enough.
// Of 32 concurrent answers with one code, one passes.
func TestRaceStepUpByCode(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		app := f.Enrol(&ann)
		token := beginStepUp(f, ann.Caller)
		_, err := stepUp(f, 0, ann.Caller, token, byPassword(apptest.FirstPassword))
		wantCode(f, err, doorward.CodeValidationFailed)
		code := app.Code(f.DB.Now())
		tokens := make([]string, 32)
		for i := range tokens {
			tokens[i] = token
			if i%2 == 1 {
				tokens[i] = beginStepUp(f, ann.Caller)
			}
		}
		got := apptest.CountCodes(apptest.Concurrently(32, func(i int) error {
			_, err := stepUp(f, i, ann.Caller, tokens[i], byCode(code))
			return err
		}))
		if got[""] != 1 || got[""]+got[doorward.CodeValidationFailed]+got[doorward.CodeChallengeOver] != 32 {
			f.Errorf("32 at once with one code end in %v", got)
		}
		current, err := f.DB.Read().Session(f.Context(), ann.Caller.SessionID)
		f.NoError(err)
		if current.Session.AAL != 2 || current.Session.FactorAt.IsZero() {
			f.Errorf("the session is %+v", current.Session.Assurance)
		}
	})
}
