package endtoken_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/endtoken"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

const (
	audience = "https://doorward.example.com/api/v2/auth/sso/con_1/revoke"
	clientID = "doorward"
)

var now = time.Now().Truncate(time.Second)

type m = map[string]any

type site struct {
	*testing.T
	provider  *oidctest.Provider
	client    *oidcrp.Client
	discovery oidcrp.Discovery
	later     time.Duration // how far the client's clock, by which keys are read, is ahead of now
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, provider: oidctest.New("")}
	t.Cleanup(s.provider.Close)
	s.provider.Change(func(o *oidctest.Settings) { o.Now = func() time.Time { return now } })
	s.client = oidcrp.New(s.provider.Client(), func() time.Time { return now.Add(s.later) })
	var err error
	if s.discovery, err = s.client.Discover(t.Context(), s.provider.Issuer()); err != nil {
		t.Fatal(err)
	}
	return s
}

// kinds check a token of each kind, and make a good one with changes.
var kinds = map[string]struct {
	typ   string
	check func(*site, string) (endtoken.Token, error)
	make  func(*oidctest.Provider, m) string
	other func(*oidctest.Provider, m) string // of the other kind, for the same audience
}{
	"revocation": {
		oidctest.TypeRevocation,
		func(s *site, text string) (endtoken.Token, error) {
			return endtoken.Revocation(s.Context(), s.client, s.discovery, audience, text, now)
		},
		func(p *oidctest.Provider, changes m) string { return p.Revocation(audience, changes) },
		func(p *oidctest.Provider, changes m) string { return p.Logout(audience, changes) },
	},
	"logout": {
		oidctest.TypeLogout,
		func(s *site, text string) (endtoken.Token, error) {
			return endtoken.Logout(s.Context(), s.client, s.discovery, clientID, text, now)
		},
		func(p *oidctest.Provider, changes m) string { return p.Logout(clientID, withSub(changes)) },
		func(p *oidctest.Provider, changes m) string { return p.Revocation(clientID, withSub(changes)) },
	},
}

func withSub(changes m) m {
	all := m{"sub": "7"}
	for name, value := range changes {
		all[name] = value
	}
	return all
}

func (s *site) refused(what string, err error, check string) {
	s.Helper()
	var f *oidcrp.Fault
	if !errors.As(err, &f) || f.Check != check || f.Unavailable {
		s.Errorf("%s: %v, want the check %s", what, err, check)
	}
}

func at(d time.Duration) int64 { return now.Add(d).Unix() }

// TestGoodTokens: what a provider may say is accepted.
func TestGoodTokens(t *testing.T) {
	for name, kind := range kinds {
		s := newSite(t)
		for _, changes := range []m{
			{},
			{"aud": []string{"another", audience, clientID}},
			{"nbf": at(30 * time.Second)},
			{"iat": at(oidcrp.Skew), "exp": at(oidcrp.Skew + endtoken.RevocationLifeMax)},
			{"iat": at(-oidcrp.Skew - 4*time.Minute), "exp": at(time.Second - oidcrp.Skew)},
			{"azp": "x", "more": m{"a": 1}},
		} {
			token, err := kind.check(s, kind.make(s.provider, changes))
			if err != nil || token.ID == "" || token.Until.Before(now) {
				t.Errorf("%s with %v: %+v, %v", name, changes, token, err)
			}
		}
		for _, typ := range []string{"", kind.typ, strings.ToUpper(kind.typ), "application/" + kind.typ} {
			s.provider.Change(func(o *oidctest.Settings) {
				o.Lies.Header = func(h map[string]any) { h["typ"] = typ }
			})
			if _, err := kind.check(s, kind.make(s.provider, nil)); err != nil {
				t.Errorf("%s of type %q: %v", name, typ, err)
			}
		}
	}
}

// TestLies: each fault is refused by its check.
func TestLies(t *testing.T) {
	for name, kind := range kinds {
		s := newSite(t)
		for _, lie := range []struct {
			changes m
			check   string
		}{
			{m{"iss": "https://other.example"}, "iss"},
			{m{"iss": nil}, "iss"},
			{m{"iss": s.provider.Issuer() + "/"}, "iss"},
			{m{"iss": 1}, "provider_error"},
			{m{"aud": "https://other.example"}, "aud"},
			{m{"aud": []any{audience, 1, clientID}}, "aud"},
			{m{"aud": nil}, "aud"},
			{m{"aud": m{"a": audience}}, "aud"},
			{m{"exp": at(-oidcrp.Skew)}, "exp"},
			{m{"exp": nil}, "exp"},
			{m{"exp": "tomorrow"}, "exp"},
			{m{"iat": at(oidcrp.Skew + time.Second), "exp": at(2 * time.Minute)}, "iat"},
			{m{"iat": nil}, "iat"},
			{m{"nbf": at(oidcrp.Skew + time.Second)}, "iat"},
			{m{"nbf": "x"}, "iat"},
			{m{"iat": at(0), "exp": at(-1 * time.Second)}, "lifetime"},
			{m{"iat": at(0), "exp": at(24*time.Hour + time.Second)}, "lifetime"},
			{m{"nonce": "n"}, "nonce"},
			{m{"nonce": ""}, "nonce"},
			{m{"jti": nil}, "provider_error"},
			{m{"jti": ""}, "provider_error"},
			{m{"jti": strings.Repeat("x", 256)}, "provider_error"},
			{m{"jti": 7}, "provider_error"},
		} {
			_, err := kind.check(s, kind.make(s.provider, lie.changes))
			s.refused(name+" with another claim", err, lie.check)
		}
		_, err := kind.check(s, kind.other(s.provider, nil))
		s.refused(name+": a token of the other kind", err, "provider_error")
		for _, text := range []string{"", "x", "a.b", "a.b.c", "a.b.c.d.e"} {
			if _, err := kind.check(s, text); err == nil {
				t.Errorf("%s: %q is accepted", name, text)
			}
		}
	}
}

// TestLifeOfRevocations: five minutes at most.
func TestLifeOfRevocations(t *testing.T) {
	s := newSite(t)
	check := kinds["revocation"].check
	if _, err := check(s, s.provider.Revocation(audience, m{"exp": at(endtoken.RevocationLifeMax)})); err != nil {
		t.Error(err)
	}
	_, err := check(s, s.provider.Revocation(audience, m{"exp": at(endtoken.RevocationLifeMax + time.Second)}))
	s.refused("a longer life", err, "lifetime")
	_, err = check(s, s.provider.Revocation(audience, m{"events": m{}}))
	s.refused("events", err, "provider_error")
}

// TestTypes: the types of other tokens are refused. Google signs tokens of the type JWT for any audience, for anybody
// with a service account.
func TestTypes(t *testing.T) {
	for name, kind := range kinds {
		s := newSite(t)
		for _, typ := range []string{"JWT", "at+jwt", oidctest.TypeLogout, oidctest.TypeRevocation, "application/application/" + kind.typ} {
			if typ == kind.typ || typ == "JWT" && name == "logout" {
				continue
			}
			s.provider.Change(func(o *oidctest.Settings) { o.Lies.Header = func(h map[string]any) { h["typ"] = typ } })
			_, err := kind.check(s, kind.make(s.provider, nil))
			s.refused(name+" of type "+typ, err, "provider_error")
		}
	}
}

// TestForgeries: only a key that the provider publishes signs, by an algorithm that it announces.
func TestForgeries(t *testing.T) {
	for name, kind := range kinds {
		s, thief := newSite(t), newSite(t)
		kind.check(s, kind.make(s.provider, nil)) //nolint:errcheck // it reads the keys
		asOurs := m{"iss": s.provider.Issuer()}
		_, err := kind.check(s, kind.make(thief.provider, asOurs)) // under the same kid
		s.refused(name+" signed by another provider", err, "signature")
		for _, lie := range []struct {
			header map[string]any
			check  string
		}{{m{"alg": "none"}, "alg"}, {m{"alg": "HS256"}, "alg"}, {m{"alg": "RS512"}, "alg"}, {m{"kid": "x"}, "kid"}, {m{"crit": []string{"exp"}}, "signature"}} {
			s.provider.Change(func(o *oidctest.Settings) {
				o.Lies.Header = func(h map[string]any) {
					for member, value := range lie.header {
						h[member] = value
					}
				}
			})
			s.later += time.Minute
			_, err := kind.check(s, kind.make(s.provider, nil))
			s.refused(name+" with another header", err, lie.check)
			if lie.check != "kid" {
				continue
			}
			// The keys are not read again within the minute: it may be signed by a new one.
			_, err = kind.check(s, kind.make(s.provider, nil))
			if f, _ := errors.AsType[*oidcrp.Fault](err); f == nil || !f.Unavailable || f.Check != "kid" {
				s.Errorf("%s by a key that was not looked up: %v", name, err)
			}
			_, err = kind.check(s, kind.make(s.provider, m{"aud": "elsewhere"}))
			s.refused(name+" for another by such a key", err, "kid")
		}
	}
}

// TestLogoutTokens: an event of a logout, and sub or sid.
func TestLogoutTokens(t *testing.T) {
	s := newSite(t)
	check := kinds["logout"].check
	for _, lie := range []struct {
		changes m
		check   string
	}{
		{m{"sub": nil}, "sub"},
		{m{"sub": ""}, "sub"},
		{m{"sub": 7}, "sub"},
		{m{"sub": "a\nb"}, "sub"},
		{m{"sub": strings.Repeat("x", 256)}, "sub"},
		{m{"sid": ""}, "sub"},
		{m{"sid": []string{"s"}}, "sub"},
		{m{"events": nil}, "provider_error"},
		{m{"events": m{}}, "provider_error"},
		{m{"events": []string{oidctest.LogoutEvent}}, "provider_error"},
		{m{"events": m{oidctest.LogoutEvent: true}}, "provider_error"},
		{m{"events": m{oidctest.LogoutEvent: nil}}, "provider_error"},
		{m{"events": m{"http://schemas.openid.net/event/other": m{}}}, "provider_error"},
	} {
		_, err := check(s, s.provider.Logout(clientID, withSub(lie.changes)))
		s.refused("a logout token", err, lie.check)
	}
	for _, want := range []endtoken.Token{{Subject: "7"}, {Session: "s"}, {Subject: "7", Session: strings.Repeat("s", 4096)}} {
		changes := m{}
		if want.Subject != "" {
			changes["sub"] = want.Subject
		}
		if want.Session != "" {
			changes["sid"] = want.Session
		}
		got, err := check(s, s.provider.Logout(clientID, changes))
		if err != nil || got.Subject != want.Subject || got.Session != want.Session {
			t.Errorf("of %+v: %+v, %v", want, got, err)
		}
	}
}

// TestKeys: a new key is read, and a provider out of reach is no refusal.
func TestKeys(t *testing.T) {
	s := newSite(t)
	check := kinds["logout"].check
	s.provider.Change(func(o *oidctest.Settings) {
		o.Lies.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
	})
	_, err := check(s, s.provider.Logout(clientID, withSub(nil)))
	var f *oidcrp.Fault
	if !errors.As(err, &f) || !f.Unavailable {
		t.Errorf("without keys: %v, want a fault of the provider", err)
	}
	rotated := newSite(t)
	rotated.provider.Rotate()
	if _, err := check(rotated, rotated.provider.Logout(clientID, withSub(nil))); err != nil {
		t.Errorf("signed by a new key: %v", err)
	}
}
