package signoff_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/store"
)

// TestRevoke: what ends is as the connection says, on every node before the answer, and nothing of others.
func TestRevoke(t *testing.T) {
	onEach(t, func(s *site) {
		ann, bob := s.person("7"), s.person("8")
		byCon, ofBob := s.signIn("7", "s"), s.signIn("8", "t")
		s.wantValid("before", true, ann, byCon, bob, ofBob)
		s.edit(connection.Draft{Ends: new("connection")})
		_, err := s.revoke(1, s.revocation(nil), s.bySubject("7"))
		s.NoError(err)
		s.wantValid("ends: connection", false, byCon)
		s.wantValid("ends: connection", true, ann, bob, ofBob)
		if entry := s.last(); entry.Outcome != doorward.AttemptDone || entry.UserID != ann.User.ID || entry.Subject != "7" || entry.RequestIDs[0] != "req_test" {
			t.Errorf("the protocol has %+v", entry)
		}

		byCon = s.signIn("7", "s")
		s.edit(connection.Draft{Ends: new("tenant")})
		_, err = s.revoke(0, s.revocation(nil), byEmail(ann))
		s.NoError(err)
		s.wantValid("ends: tenant", false, byCon, ann)
		s.wantValid("ends: tenant", true, bob, ofBob, s.owner)
		_, err = s.revoke(0, s.revocation(nil), byEmail(s.owner))
		s.wantCode("a member who never came by the connection", err, "")
		s.wantValid("a member who never came by the connection", false, s.owner)
	})
}

// TestRevokeIsRecorded: by the connection, in the trail of its tenant, about the person.
func TestRevokeIsRecorded(t *testing.T) {
	onSQLite(t, func(s *site) {
		ann := s.person("7")
		s.signIn("7", "")
		_, err := s.revoke(0, s.revocation(nil), s.bySubject("7"))
		s.NoError(err)
		page, err := s.DB.Read().EventPage(s.Context(), s.con.TenantID, store.EventFilter{Action: doorward.SessionEnd}, doorward.Window{Limit: 10})
		s.NoError(err)
		e := page.Items[0]
		if e.ActorType != doorward.ByConnection || e.ActorID != s.con.ID || e.Target.ID != ann.User.ID {
			t.Errorf("the event is %+v", e)
		}
	})
}

// TestRevokeKeys: endsKeys ends the person's API keys, too; a logout doesn't.
func TestRevokeKeys(t *testing.T) {
	onSQLite(t, func(s *site) {
		ann := s.person("7")
		s.Exec(`UPDATE memberships SET role = 'ADMIN' WHERE user_id = $1`, ann.User.ID)
		ann = s.SignIn(ann.User.Email, apptest.FirstPassword)
		made, _, err := s.Node(0).APIKeys.Create(s.Context(), ann.Caller, apikey.Draft{Name: "backup", Permissions: []string{"message.send"}, Role: "USER"})
		s.NoError(err)
		want := func(status string) {
			t.Helper()
			if n := s.Int(`SELECT count(*) FROM api_keys WHERE id = $1 AND status = $2`, made.ID, status); n != 1 {
				t.Errorf("the key is not %s", status)
			}
		}
		_, err = s.revoke(0, s.revocation(nil), s.bySubject("7"))
		s.NoError(err)
		want("active")
		s.edit(connection.Draft{EndsKeys: new(true)})
		s.NoError(s.logout(0, s.logoutToken(m{"sub": "7"})))
		want("active")
		_, err = s.revoke(0, s.revocation(nil), s.bySubject("7"))
		s.NoError(err)
		want("revoked")
	})
}

// TestNobody: a revocation of nobody here is 404, a logout is not; neither ends anything.
func TestNobody(t *testing.T) {
	onSQLite(t, func(s *site) {
		s.person("7")
		in := s.signIn("7", "s")
		s.Exec(`INSERT INTO identities (id, connection_id, tenant_id, issuer, subject, user_id, created_at, last_used_at)
SELECT 'idn_old', connection_id, tenant_id, 'https://other.example', '7', user_id, 0, 0 FROM identities WHERE subject = '7'`)
		_, elsewhere := s.Tenant()
		for what, who := range map[string]signoff.Subject{
			"a subject":                     s.bySubject("8"),
			"a subject of another issuer":   {Format: signoff.FormatIssuer, Issuer: "https://other.example", Subject: "7"},
			"an address":                    {Format: signoff.FormatEmail, Email: "nobody@example.com"},
			"no address":                    {Format: signoff.FormatEmail, Email: "x"},
			"an address of another tenant":  byEmail(elsewhere),
			"a subject in other characters": s.bySubject("7 "),
		} {
			_, err := s.revoke(0, s.revocation(nil), who)
			s.wantCode(what, err, doorward.CodeNotFound)
		}
		for _, changes := range []m{{"sub": "8"}, {"sid": "x"}, {"sid": "x", "sub": "8"}} {
			s.wantCode("a logout of nobody", s.logout(0, s.logoutToken(changes)), "")
			if entry := s.last(); entry.Outcome != doorward.AttemptDone {
				t.Errorf("the protocol has %+v", entry)
			}
		}
		s.wantValid("nobody", true, in, elsewhere)
		for _, w := range []struct {
			who           signoff.Subject
			pointer, code string
		}{
			{signoff.Subject{}, "/sub_id/format", "invalid"},
			{signoff.Subject{Format: "opaque"}, "/sub_id/format", "invalid"},
			{signoff.Subject{Format: "iss_sub", Subject: "7"}, "/sub_id/iss", "required"},
			{signoff.Subject{Format: "iss_sub", Issuer: "x"}, "/sub_id/sub", "required"},
			{signoff.Subject{Format: "email"}, "/sub_id/email", "required"},
		} {
			_, err := s.revoke(0, s.revocation(nil), w.who)
			s.WantField(err, w.pointer, w.code)
		}
	})
}

// TestLogout: sid ends the sessions of one session at the provider, sub all of the person's by this connection.
func TestLogout(t *testing.T) {
	onEach(t, func(s *site) {
		ann := s.person("7")
		other := newSite(s.Fixture)
		other.person("7")
		elsewhere := other.signIn("7", "s")
		a1, a2, b, unnamed := s.signIn("7", "s"), s.signIn("7", "s"), s.signIn("7", "t"), s.signIn("7", "")
		s.NoError(s.logout(1, s.logoutToken(m{"sid": "s"})))
		s.wantValid("sid", false, a1, a2)
		s.wantValid("sid", true, b, unnamed, ann, elsewhere)
		s.NoError(s.logout(0, s.logoutToken(m{"sid": "x", "sub": "7"})))
		s.wantValid("sid and sub", false, unnamed)
		s.wantValid("sid and sub", true, b, ann, elsewhere)
		s.NoError(s.logout(0, s.logoutToken(m{"sub": "7"})))
		s.wantValid("sub", false, b)
		s.wantValid("sub", true, ann, elsewhere)
		again := s.signIn("7", "s")
		s.wantValid("signed in again", true, again)
	})
}

// TestOnlyOurTokens: a token is of this connection's provider, for this connection, and ends something once; nothing ends
// by another one.
func TestOnlyOurTokens(t *testing.T) {
	onEach(t, func(s *site) {
		s.person("7")
		other := newSite(s.Fixture)
		other.person("7")
		in := s.signIn("7", "s")
		refusal := func(what, token, check string) {
			t.Helper()
			_, err := s.revoke(0, token, s.bySubject("7"))
			s.wantCode(what, err, doorward.CodeUnauthenticated)
			if f, _ := errors.AsType[*oidcrp.Fault](err); f == nil || f.Check != check {
				t.Errorf("%s: refused by %v, want the check %s", what, f, check)
			}
		}
		theirs := s.Node(0).Connections.RevokeURL(s.con.ID)
		refusal("another tenant's provider", other.provider.Revocation(theirs, nil), "signature")
		refusal("a token for another connection", s.provider.Revocation(s.Node(0).Connections.RevokeURL(other.con.ID), nil), "aud")
		refusal("a logout token", s.logoutToken(m{"sub": "7", "aud": theirs}), "provider_error")
		err := s.logout(0, s.provider.Ending(oidctest.TypeRevocation, m{"aud": apptest.ClientID, "sub": "7"}))
		s.wantCode("a revocation as a logout", err, doorward.CodeSignOnRefused)
		if f, _ := errors.AsType[*oidcrp.Fault](err); f == nil || f.Check != "provider_error" {
			t.Errorf("a revocation as a logout: refused by %v", f)
		}
		err = s.logout(0, other.logoutToken(m{"sub": "7", "iss": s.provider.Issuer()}))
		s.wantCode("another provider's logout", err, doorward.CodeSignOnRefused)
		s.wantValid("refused", true, in)

		used := s.revocation(nil)
		_, err = s.revoke(0, used, s.bySubject("7"))
		s.NoError(err)
		in = s.signIn("7", "s")
		again := func(what string, err error) {
			t.Helper()
			s.NoError(err)
			if entry := s.last(); entry.Outcome != doorward.AttemptDone || entry.Check != "state" {
				t.Errorf("%s: the protocol has %+v", what, entry)
			}
		}
		_, err = s.revoke(1, used, s.bySubject("7"))
		again("a revocation again", err)
		_, err = s.revoke(1, used, byEmail(in))
		s.wantCheck("the token of a revocation, for somebody who is named otherwise", err, doorward.CodeUnauthenticated, "state")
		logout := s.logoutToken(m{"sub": "7", "jti": "l1"})
		s.NoError(s.logout(0, logout))
		in = s.signIn("7", "s")
		again("a logout again", s.logout(1, logout))
		s.wantCheck("another logout of the same id", s.logout(1, s.logoutToken(m{"sub": "9", "jti": "l1"})), doorward.CodeSignOnRefused, "state")
		nobody := s.revocation(nil)
		for _, code := range []doorward.Code{doorward.CodeNotFound, doorward.CodeUnauthenticated} { // a token that ended nothing is over, too
			_, err = s.revoke(0, nobody, s.bySubject("none"))
			s.wantCode("a revocation of nobody", err, code)
		}
		s.wantValid("replays", true, in)
	})
}

// TestRaceOneToken: of many requests with one token one ends something, over all nodes, and each is answered when that has
// ended everywhere.
func TestRaceOneToken(t *testing.T) {
	onEach(t, func(s *site) {
		s.person("7")
		in := s.signIn("7", "s")
		token, logout := s.revocation(nil), s.logoutToken(m{"sub": "7"})
		const callers = 16
		errs, logouts := make([]error, callers), make([]error, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				_, errs[i] = s.revoke(i, token, s.bySubject("7"))
				s.wantValid("answered", false, in)
			})
			all.Go(func() {
				logouts[i] = s.logout(i, logout)
				s.wantValid("answered", false, in)
			})
		}
		all.Wait()
		s.WantCodes(errs, apptest.Codes{"": callers})
		s.WantCodes(logouts, apptest.Codes{"": callers})
	})
}

// TestWhoIsAsked: a connection that isn't there is not found; one that signs nobody in ends nothing.
func TestWhoIsAsked(t *testing.T) {
	onSQLite(t, func(s *site) {
		ann := s.person("7")
		off := s.Node(0).SignOff
		_, err := off.Revoke(s.Context(), by(0), "con_none", s.revocation(nil), "/sub_id", s.bySubject("7"))
		s.wantCode("no connection", err, doorward.CodeNotFound)
		_, err = off.Logout(s.Context(), by(0), "con_none", s.logoutToken(m{"sub": "7"}))
		s.wantCode("no connection", err, doorward.CodeNotFound)
		for _, status := range []doorward.ConnectionStatus{doorward.ConnectionDraft, doorward.ConnectionDisabled} {
			s.Exec(`UPDATE connections SET status = $1 WHERE id = $2`, status, s.con.ID)
			_, err = s.revoke(0, s.revocation(nil), s.bySubject("7"))
			s.wantCode(string(status), err, doorward.CodeUnauthenticated)
			s.wantCode(string(status), s.logout(0, s.logoutToken(m{"sub": "7"})), doorward.CodeSignOnRefused)
		}
		s.wantValid("not active", true, ann)
	})
}

// TestFaultIsNoRefusal: while the provider's keys can't be read nothing ends, and the token is good afterwards.
func TestFaultIsNoRefusal(t *testing.T) {
	onSQLite(t, func(s *site) {
		ann := s.person("7")
		s.provider.Rotate()
		s.provider.Change(func(p *oidctest.Settings) {
			p.Lies.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
		})
		token := s.revocation(nil)
		_, err := s.revoke(0, token, s.bySubject("7"))
		s.wantCode("no keys", err, doorward.CodeProviderUnavailable)
		s.wantCode("no keys", s.logout(0, s.logoutToken(m{"sub": "7"})), doorward.CodeProviderUnavailable)
		if entry := s.last(); entry.Outcome != doorward.AttemptUnavailable {
			t.Errorf("the protocol has %+v", entry)
		}
		s.wantValid("no keys", true, ann)
		s.provider.Change(func(p *oidctest.Settings) { p.Lies = oidctest.Lies{} })
		_, err = s.revoke(0, token, s.bySubject("7"))
		s.wantCode("the same token later", err, "")
		s.wantValid("the same token later", false, ann)
	})
}

// TestUnconfirmed: an end that can't be confirmed leaves the token good, so that the provider can send it again.
func TestUnconfirmed(t *testing.T) {
	onSQLite(t, func(s *site) {
		ann := s.person("7")
		token := s.revocation(nil)
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		_, err := s.Node(0).SignOff.Revoke(ctx, by(0), s.con.ID, token, "/sub_id", s.bySubject("7"))
		if err == nil || errors.Is(err, doorward.Fail(doorward.CodeUnauthenticated, "")) {
			t.Errorf("given up: %v", err)
		}
		_, err = s.revoke(0, token, s.bySubject("7"))
		s.wantCode("again", err, "")
		s.wantValid("again", false, ann)
	})
}

// TestSignInsUnderWay: a sign-in that began before the end opens no session, wherever it waits; one that begins
// afterwards does.
func TestSignInsUnderWay(t *testing.T) {
	revoked := func(s *site) error {
		_, err := s.revoke(1, s.revocation(nil), s.bySubject("7"))
		return err
	}
	nobodyYet := func(s *site) error {
		if err := revoked(s); !doorward.HasCode(err, doorward.CodeNotFound) {
			return errors.New("somebody was found")
		}
		return nil
	}
	logout := func(changes m) func(*site) error {
		return func(s *site) error { return s.logout(1, s.logoutToken(changes)) }
	}
	for name, w := range map[string]struct {
		isMember bool
		end      func(*site) error
	}{
		"revoked": {true, revoked}, "by sub": {true, logout(m{"sub": "7"})}, "by sid": {true, logout(m{"sid": "s"})},
		"nobody yet": {false, nobodyYet}, "nobody yet, by sub": {false, logout(m{"sub": "7"})}, "nobody yet, by sid": {false, logout(m{"sid": "s"})},
	} {
		t.Run(name, func(t *testing.T) {
			onSQLite(t, func(s *site) {
				if s.letIn("acme.example"); w.isMember {
					s.person("7")
				}
				before := s.begin("7", "s")
				if w.isMember {
					s.wantValid("before", true, s.signIn("7", "s"))
				}
				s.NoError(w.end(s))
				_, err := before.back()
				var e *doorward.Error
				if !errors.As(err, &e) || e.Code != doorward.CodeSignOnRefused || e.Check != "state" {
					t.Errorf("a sign-in that began before ends with %v", err)
				}
				if w.isMember {
					s.wantValid("afterwards", true, s.signIn("7", "s"))
				}
			})
		})
	}
}

// TestSecondStepUnderWay: a sign-in that waits for the account's second factor opens no session either.
func TestSecondStepUnderWay(t *testing.T) {
	for name, end := range map[string]func(*site) error{
		"revoked": func(s *site) error {
			_, err := s.revoke(1, s.revocation(nil), s.bySubject("7"))
			return err
		},
		"by sid": func(s *site) error { return s.logout(1, s.logoutToken(m{"sid": "s"})) },
		"by sub": func(s *site) error { return s.logout(1, s.logoutToken(m{"sub": "7"})) },
	} {
		t.Run(name, func(t *testing.T) {
			onSQLite(t, func(s *site) {
				ann := s.person("7")
				app := s.Enrol(&ann)
				s.EditTenant(s.owner, func(settings *doorward.TenantSettings) { settings.SecondFactor.Since = s.DB.Now().Add(-time.Hour) })
				result, err := s.begin("7", "s").back()
				s.NoError(err)
				asked, ok := result.Outcome.(login.SecondNeeded)
				if !ok {
					t.Fatalf("the sign-in ends with %+v", result)
				}
				s.NoError(end(s))
				_, err = s.Node(0).Login.WithSecond(s.Context(), apptest.Anonymous(0), asked.Token.Reveal(), factor.Answer{Code: app.Code(s.DB.Now())}, false)
				s.wantCode("the second step", err, doorward.CodeChallengeOver)
				if n := s.Int(`SELECT count(*) FROM sessions WHERE issuer <> ''`); n != 0 {
					t.Errorf("%d sessions of the connection are there", n)
				}
			})
		})
	}
}

// TestRaceSignInAndRevoke: whatever comes first, once the end is answered no session of a sign-in that began before is
// accepted.
func TestRaceSignInAndRevoke(t *testing.T) {
	onEach(t, func(s *site) {
		s.person("7")
		for round := range 8 {
			var all sync.WaitGroup
			opened := make([]apptest.Person, 4)
			for i := range opened {
				b := s.begin("7", "s")
				all.Go(func() {
					if result, err := b.back(); err == nil {
						if in, ok := result.Outcome.(login.SignedIn); ok {
							opened[i] = apptest.PersonOf(in)
						}
					}
				})
			}
			all.Go(func() {
				if round%2 == 0 {
					s.wantCode("beside sign-ins", s.logout(1, s.logoutToken(m{"sid": "s"})), "")
					return
				}
				_, err := s.revoke(1, s.revocation(nil), s.bySubject("7"))
				s.wantCode("beside sign-ins", err, "")
			})
			all.Wait()
			for _, p := range opened {
				if p.User.ID != "" {
					s.wantValid("after the revocation", false, p)
				}
			}
		}
	})
}

// TestFlood: refused tokens are limited by address and connection, have one entry a minute in the protocol, and keep out
// no good one.
func TestFlood(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		s := newSite(f)
		ann := s.person("7")
		for i := range 60 {
			_, err := s.revoke(i, strings.Repeat("x", i), s.bySubject("7"))
			s.wantCode("a bad token", err, doorward.CodeUnauthenticated)
		}
		_, err := s.revoke(0, "x", s.bySubject("7"))
		s.wantCode("the 61st", err, doorward.CodeTooManyAttempts)
		s.wantCode("the 62nd", s.logout(1, s.provider.Revocation("elsewhere", nil)), doorward.CodeTooManyAttempts)
		page, err := s.DB.Read().AttemptPage(s.Context(), s.con.ID, doorward.Window{Limit: 100})
		s.NoError(err)
		n := 0
		for _, entry := range page.Items {
			if entry.Kind == doorward.AttemptRevoke {
				n++
			}
		}
		if n > len(s.Nodes) {
			t.Errorf("60 bad tokens have %d entries in the protocol", n)
		}
		_, err = s.revoke(0, s.revocation(nil), s.bySubject("7"))
		s.wantCode("a good token meanwhile", err, "")
		s.wantValid("a good token meanwhile", false, ann)
		other := newSite(f)
		_, err = other.revoke(0, "x", other.bySubject("7"))
		s.wantCode("another connection", err, doorward.CodeUnauthenticated)
		clock.Move(time.Minute)
		_, err = s.revoke(0, "x", s.bySubject("7"))
		s.wantCode("a minute later", err, doorward.CodeUnauthenticated)
	})
}

// TestFloodOfEntries: who has no token for us writes no more than an entry a minute and kind, and names nobody there.
func TestFloodOfEntries(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		s := newSite(f)
		entries := func(what string, outcome doorward.AttemptOutcome, want int) {
			t.Helper()
			page, err := s.DB.Read().AttemptPage(s.Context(), s.con.ID, doorward.Window{Limit: 100})
			s.NoError(err)
			n := 0
			for _, entry := range page.Items {
				if entry.Kind != doorward.AttemptRevoke || entry.Outcome != outcome {
					continue
				}
				if n++; entry.Subject != "" {
					t.Errorf("%s: the protocol names %q", what, entry.Subject)
				}
			}
			if n != want {
				t.Errorf("%s: %d entries, want %d", what, n, want)
			}
		}
		s.provider.Change(func(p *oidctest.Settings) {
			p.Lies.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
		})
		for i := range 9 {
			_, err := s.revoke(0, s.revocation(nil), s.bySubject(strings.Repeat("x", i+1)))
			s.wantCode("no keys", err, doorward.CodeProviderUnavailable)
		}
		entries("no keys", doorward.AttemptUnavailable, 1)
		s.provider.Change(func(p *oidctest.Settings) { p.Lies = oidctest.Lies{} })
		for i := range 9 {
			_, err := s.revoke(0, s.provider.Revocation("https://elsewhere.example", nil), s.bySubject(strings.Repeat("x", i+1)))
			s.wantCode("for others", err, doorward.CodeUnauthenticated)
		}
		entries("for others", doorward.AttemptRefused, 1)
		clock.Move(2 * time.Minute)
		s.NoError(s.Node(0).SignOff.WriteStrays(s.Context()))
		entries("for others, later", doorward.AttemptRefused, 2)
		entries("no keys, later", doorward.AttemptUnavailable, 2)
	})
}

// TestKeyOfTheMinute: bad tokens, for which the provider's keys are read, don't make one by a new key a refused one: until
// the keys are read again, whether it is good is not known.
func TestKeyOfTheMinute(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		s := newSite(f)
		ann := s.person("7")
		_, err := s.revoke(0, s.revocation(nil), s.bySubject("8"))
		s.wantCode("nobody", err, doorward.CodeNotFound)
		clock.Move(2 * time.Minute)
		s.provider.Change(func(p *oidctest.Settings) { p.Lies.Header = func(h map[string]any) { h["kid"] = "junk" } })
		_, err = s.revoke(0, s.revocation(nil), s.bySubject("7"))
		s.wantCheck("an unknown key", err, doorward.CodeUnauthenticated, "kid")
		s.provider.Change(func(p *oidctest.Settings) { p.Lies = oidctest.Lies{} })
		s.provider.Rotate()
		token := s.revocation(nil)
		_, err = s.revoke(0, token, s.bySubject("7"))
		s.wantCode("a new key", err, doorward.CodeProviderUnavailable)
		s.wantCode("a logout by a new key", s.logout(0, s.logoutToken(m{"sub": "7"})), doorward.CodeProviderUnavailable)
		if entry := s.last(); entry.Outcome != doorward.AttemptUnavailable || entry.Check != "kid" {
			t.Errorf("the protocol has %+v", entry)
		}
		for what, changes := range map[string]m{"aud": {"aud": "elsewhere"}, "iss": {"iss": "https://other.example"}, "exp": {"exp": 1}} {
			_, err = s.revoke(0, s.revocation(changes), s.bySubject("7"))
			s.wantCode("a new key, another "+what, err, doorward.CodeUnauthenticated)
		}
		s.wantValid("a new key", true, ann)
		clock.Move(time.Minute)
		_, err = s.revoke(0, token, s.bySubject("7"))
		s.wantCode("the same token later", err, "")
	})
}

// TestSweep: what is known of ended sign-ins and used tokens goes.
func TestSweep(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		s := newSite(f)
		s.person("7")
		s.NoError(s.logout(0, s.logoutToken(m{"sub": "7", "sid": "s"})))
		if s.CountRows("ended_sign_ins") != 1 || s.CountRows("used_states") == 0 {
			t.Error("nothing is known of the end")
		}
		clock.Move(3 * time.Hour)
		s.NoError(s.Node(0).SignOff.Sweep(s.Context()))
		s.NoError(s.Node(0).Connections.Sweep(s.Context()))
		if s.CountRows("ended_sign_ins") != 0 || s.CountRows("used_states") != 0 {
			t.Error("what was known of the end is still there")
		}
	})
}
