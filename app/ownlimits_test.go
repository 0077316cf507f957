package app_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/user"
)

// The limits on what an account does from its sessions, as in INTERFACE.md.
const challengesPerHour, changesPerHour = 120, 120

// ownAct is an act that counts for an account, and the counters in which it does.
type ownAct struct {
	counters []string
	do       func(f *apptest.Fixture, p *actor, i int) error
}

// actor is a member of two tenants with a second factor.
type actor struct {
	apptest.Person
	owner     apptest.Person
	other     string // another tenant of the person, which demands nothing
	demanding string // one that asks for the factor
	app       *apptest.Authenticator
}

func newActor(f *apptest.Fixture) *actor {
	f.Helper()
	_, owner := f.Tenant()
	p := &actor{Person: f.Join(owner, doorward.RoleOwner), owner: owner}
	for _, id := range []*string{&p.other, &p.demanding} {
		_, by := f.Tenant()
		_, token := f.Invite(by, p.User.Email, doorward.RoleUser)
		joined, err := apptest.Accepted(f.Node(0).Invitations.Accept(f.Context(), p.Caller, token, ""))
		f.NoError(err)
		*id = joined.TenantID
	}
	p.app = f.Enrol(&p.Person)
	return p
}

// withoutProof returns the caller with a session that has proved only the password: a switch asks for
// the factor.
func (p *actor) withoutProof(f *apptest.Fixture) doorward.Caller {
	f.Helper()
	f.Exec(`UPDATE sessions SET aal = 1`)
	return p.Caller
}

var ownActs = map[string]ownAct{
	"a step-up": {[]string{"challenges"}, func(f *apptest.Fixture, p *actor, i int) error {
		return apptest.ErrorOf(f.Node(i).Login.BeginStepUp(f.Context(), p.Caller))
	}},
	"a step-up that an answer offers": {[]string{"challenges"}, func(f *apptest.Fixture, p *actor, i int) error {
		return apptest.ErrorOf(f.Node(i).Login.OfferStepUp(f.Context(), p.Caller, nil))
	}},
	"a passkey": {[]string{"challenges", "changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		return apptest.ErrorOf(f.Node(i).Factors.BeginPasskey(f.Context(), p.Caller))
	}},
	"a switch that asks for the factor": {[]string{"challenges", "changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		return apptest.ErrorOf(f.Node(i).Login.Switch(f.Context(), p.withoutProof(f), p.demanding))
	}},
	"an authenticator app": {[]string{"changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		return apptest.ErrorOf(f.Node(i).Factors.Enrol(f.Context(), p.Caller, ""))
	}},
	"the name of a factor": {[]string{"changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		return apptest.ErrorOf(f.Node(i).Factors.Rename(f.Context(), p.Caller, p.app.ID, fmt.Sprintf("Phone %d", i)))
	}},
	"recovery codes": {[]string{"changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		return apptest.ErrorOf(f.Node(i).Factors.NewRecoveryCodes(f.Context(), p.Caller))
	}},
	"another address": {[]string{"changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		return f.Node(i).Accounts.ChangeEmail(f.Context(), p.Caller, f.NewEmail("next"), false)
	}},
	"the own name": {[]string{"changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		return f.Node(i).Users.SetOwnName(f.Context(), p.Caller, fmt.Sprintf("Ann %d", i))
	}},
	"the own name among people": {[]string{"changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		name := fmt.Sprintf("Ann %d", i)
		_, _, err := f.Node(i).Users.Edit(f.Context(), p.Caller, p.User, user.Edit{Name: &name})
		return err
	}},
	"a switch": {[]string{"changes"}, func(f *apptest.Fixture, p *actor, i int) error {
		opened, err := apptest.SignedIn(f.Node(i).Login.Switch(f.Context(), p.Caller, p.other))
		if err == nil {
			p.other, p.User, p.Principal = p.User.TenantID, opened.User, doorward.PrincipalOf(opened.User, opened.Session)
		}
		return err
	}},
}

// fill sets the counters of the person to n.
func (p *actor) fill(f *apptest.Fixture, n int) {
	f.Helper()
	for _, what := range []string{"challenges:", "changes:"} {
		f.Exec(`UPDATE throttles SET hits = $1 WHERE bucket = $2`, n, what+p.User.ID)
	}
}

func (p *actor) hits(f *apptest.Fixture, what string) int {
	f.Helper()
	return f.Int(`SELECT coalesce(sum(hits), 0) FROM throttles WHERE bucket = $1`, what+":"+p.User.ID)
}

// TestOwnActsAreLimited: an account begins 120 challenges and makes 120 changes of its own in an hour.
// The next one is refused with the time to wait, and writes nothing. After the hour all are possible.
func TestOwnActsAreLimited(t *testing.T) {
	for name, act := range ownActs {
		t.Run(name, func(t *testing.T) {
			apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
				p := newActor(f)
				f.Exec(`DELETE FROM throttles`)
				f.NoError(act.do(f, p, 1))
				for _, what := range []string{"challenges", "changes"} {
					want := 0
					for _, counted := range act.counters {
						if counted == what {
							want++
						}
					}
					if got := p.hits(f, what); got != want {
						f.Errorf("counted %d %s, want %d", got, what, want)
					}
				}
				p.fill(f, changesPerHour-1)
				f.NoError(act.do(f, p, 2))
				events, challenges, mails := f.CountRows("events"), f.CountRows("challenges"), f.CountRows("mails")
				err := act.do(f, p, 3)
				var e *doorward.Error
				if !errors.As(err, &e) || e.Code != doorward.CodeTooManyAttempts || e.RetryAfter <= 59*time.Minute || e.RetryAfter > time.Hour || e.Detail == "" {
					f.Fatalf("the 121st: %v", err)
				}
				f.RecordDue()
				if f.CountRows("events") != events || f.CountRows("challenges") != challenges || f.CountRows("mails") != mails {
					f.Error("the refused act has left rows")
				}
				clock.Move(time.Hour + time.Second)
				f.Exec(`UPDATE sessions SET created_at = $1, last_seen_at = $1, proved_at = $1, factor_at = $1`, f.DB.Now().UnixMicro())
				p.AuthAt, p.FactorAt = f.DB.Now(), f.DB.Now()
				f.NoError(act.do(f, p, 4))
			})
		})
	}
}

// TestOwnLimitsEndNothing: at the limits, a person still signs in, ends what gives access, and answers the
// challenges that are open.
func TestOwnLimitsEndNothing(t *testing.T) {
	for name, do := range map[string]func(f *apptest.Fixture, p *actor) error{
		"a factor removed": func(f *apptest.Fixture, p *actor) error {
			return apptest.ErrorOf(f.Node(1).Factors.Remove(f.Context(), p.Caller, p.app.ID))
		},
		"another password": func(f *apptest.Fixture, p *actor) error {
			return apptest.ErrorOf(f.Node(1).Passwords.Change(f.Context(), p.Caller, apptest.FirstPassword, apptest.Password(5), apptest.Password(5)))
		},
		"other sessions ended": func(f *apptest.Fixture, p *actor) error {
			return apptest.ErrorOf(f.Node(1).Sessions.EndOthers(f.Context(), p.Caller))
		},
		"the own session ended": func(f *apptest.Fixture, p *actor) error {
			return apptest.ErrorOf(f.Node(1).Sessions.EndOwn(f.Context(), p.Caller, p.SessionID))
		},
		"a tenant left": func(f *apptest.Fixture, p *actor) error {
			return apptest.ErrorOf(f.Node(1).Users.Leave(f.Context(), p.Caller, p.other))
		},
		"the account erased": func(f *apptest.Fixture, p *actor) error {
			return apptest.ErrorOf(f.Node(1).Users.Erase(f.Context(), p.Caller, p.User.Email))
		},
		"an invitation accepted": func(f *apptest.Fixture, p *actor) error {
			_, by := f.Tenant()
			_, token := f.Invite(by, p.User.Email, doorward.RoleUser)
			return apptest.ErrorOf(f.Node(1).Invitations.Accept(f.Context(), p.Caller, token, ""))
		},
		"a login": func(f *apptest.Fixture, p *actor) error {
			begun := f.Challenge(apptest.Anonymous(1), p.Person)
			f.Exec(`UPDATE factors SET last_step = 0`)
			return apptest.ErrorOf(f.Node(1).Login.WithSecond(f.Context(), apptest.Anonymous(1), begun.Token.Reveal(), factor.Answer{Code: p.app.Code(f.DB.Now())}, false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			apptest.OnSQLite(t, func(f *apptest.Fixture) {
				p := newActor(f)
				f.NoError(apptest.ErrorOf(f.Node(0).Factors.BeginPasskey(f.Context(), p.Caller)))
				p.fill(f, changesPerHour)
				f.WantCodes([]error{apptest.ErrorOf(f.Node(0).Factors.BeginPasskey(f.Context(), p.Caller))}, apptest.Codes{doorward.CodeTooManyAttempts: 1})
				f.NoError(do(f, p))
			})
		})
	}
}

// TestRaceOwnLimits: of many acts at once, on all nodes, as many succeed as the limit leaves.
func TestRaceOwnLimits(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers, left = 24, 7
		p := newActor(f)
		for name, limit := range map[string]int{"a step-up": challengesPerHour, "the own name": changesPerHour} {
			act := ownActs[name]
			f.NoError(act.do(f, p, callers))
			p.fill(f, limit-left)
			errs := apptest.Concurrently(callers, func(i int) error { return act.do(f, p, i) })
			f.WantCodes(errs, apptest.Codes{"": left, doorward.CodeTooManyAttempts: callers - left})
			if got := p.hits(f, act.counters[0]); got != limit {
				f.Errorf("%s: counted %d", name, got)
			}
		}
	})
}
