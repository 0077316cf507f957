package oidcrp_test

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

const (
	clientID    = "doorward"
	secret      = "s3cret/with+signs and%"
	redirectURI = "https://doorward.example.com/api/v2/auth/sso/con_1/callback"
)

// site is a client with one provider, and the client's clock.
type site struct {
	provider  *oidctest.Provider
	client    *oidcrp.Client
	discovery oidcrp.Discovery
	config    oidcrp.Config
	begun     time.Time
	ahead     atomic.Int64 // of the clock, in nanoseconds
}

// newSite starts a provider whose issuer has the path, and reads its document.
func newSite(t testing.TB, path string) *site {
	t.Helper()
	s := &site{provider: oidctest.New(path), begun: time.Now().Truncate(time.Second)}
	t.Cleanup(s.provider.Close)
	s.provider.Change(func(o *oidctest.Settings) {
		o.Now = s.now
		o.Apps = []oidctest.App{{ID: clientID, Secrets: []string{secret}, RedirectURIs: []string{redirectURI}}}
		o.Person = oidctest.Person{Subject: "248289761001", Email: "ann@example.com", IsVerified: true}
	})
	s.client = oidcrp.New(s.provider.Client(), s.now)
	s.config = oidcrp.Config{
		Issuer: s.provider.Issuer(), ClientID: clientID, Auth: oidcrp.SecretBasic, Secrets: []string{secret},
		RedirectURI: redirectURI, GroupsClaim: "groups",
	}
	var err error
	if s.discovery, err = s.client.Discover(t.Context(), s.provider.Issuer()); err != nil {
		t.Fatal(err)
	}
	return s
}

// now is the time for client and provider, which stands still.
func (s *site) now() time.Time { return s.begun.Add(time.Duration(s.ahead.Load())) }

// later moves that time.
func (s *site) later(d time.Duration) { s.ahead.Add(int64(d)) }

// lie changes what the provider says.
func (s *site) lie(lies oidctest.Lies) {
	s.provider.Change(func(o *oidctest.Settings) { o.Lies = lies })
}

// signIn makes a whole sign-in.
func (s *site) signIn(ctx context.Context) (oidcrp.Asserted, error) {
	return s.finish(ctx, oidcrp.Begin(s.now()))
}

// finish makes the sign-in of a flow.
func (s *site) finish(ctx context.Context, flow oidcrp.Flow) (oidcrp.Asserted, error) {
	callback, err := s.provider.SignIn(oidcrp.AuthURL(s.discovery, s.config, flow, ""))
	if err != nil {
		return oidcrp.Asserted{}, err
	}
	return s.client.Finish(ctx, s.discovery, s.config, flow, callback.Query())
}

// faultOf returns the fault of an error.
func faultOf(t testing.TB, err error) *oidcrp.Fault {
	t.Helper()
	fault, ok := errors.AsType[*oidcrp.Fault](err)
	if !ok {
		t.Fatalf("got the error %v, want a *Fault", err)
	}
	return fault
}

// wantFault checks which check failed.
func wantFault(t testing.TB, err error, check string) *oidcrp.Fault {
	t.Helper()
	fault := faultOf(t, err)
	if fault.Check != check || fault.Unavailable {
		t.Fatalf("got %v (unavailable: %t), want check %s", fault, fault.Unavailable, check)
	}
	return fault
}

// wantUnavailable checks that nothing was refused.
func wantUnavailable(t testing.TB, err error) *oidcrp.Fault {
	t.Helper()
	fault := faultOf(t, err)
	if !fault.Unavailable {
		t.Fatalf("got %v, want that the provider is out of reach", fault)
	}
	return fault
}

func TestSignIn(t *testing.T) {
	for _, alg := range []string{"ES256", "RS256", "PS256", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			s := newSite(t, "/realms/one")
			s.provider.Change(func(o *oidctest.Settings) {
				o.Algorithm = alg
				o.Person.Claims = map[string]any{
					"groups": []string{"staff", "日本"}, "amr": []string{"pwd", "otp"}, "acr": "urn:gold", "secret": "not ours",
				}
			})
			got, err := s.signIn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Subject != "248289761001" || got.Address != "ann@example.com" || !got.AddressVerified || got.UsedSecret != 0 {
				t.Errorf("got %+v", got)
			}
			if got.ACR != "urn:gold" || len(got.AMR) != 2 || got.AuthTime.IsZero() || got.IssuedAt.IsZero() {
				t.Errorf("got %+v", got)
			}
			if got.Groups.State != oidcrp.GroupsList || len(got.Groups.Names) != 2 || got.Groups.Names[1] != "日本" {
				t.Errorf("got the groups %+v", got.Groups)
			}
			if _, isThere := got.Claims["secret"]; isThere || got.Claims["email"] != "ann@example.com" {
				t.Errorf("got the claims %v", got.Claims)
			}
			if _, isThere := got.Claims["nonce"]; isThere {
				t.Error("the nonce is shown")
			}
		})
	}
}

func TestAuthURL(t *testing.T) {
	s := newSite(t, "")
	s.discovery.AuthorizationEndpoint += "?p=b2c_1"
	flow := oidcrp.Begin(s.now())
	flow.Fresh = true
	u, err := url.Parse(oidcrp.AuthURL(s.discovery, s.config, flow, "ann@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"p": "b2c_1", "client_id": clientID, "redirect_uri": redirectURI, "response_type": "code",
		"scope": "openid email profile", "state": flow.State, "nonce": flow.Nonce, "prompt": "login", "max_age": "0",
		"login_hint": "ann@example.com", "code_challenge_method": "S256",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if q.Get("code_challenge") == flow.Verifier || q.Has("code_verifier") {
		t.Error("the verifier is in the address")
	}
	if q, _ := url.Parse(oidcrp.AuthURL(s.discovery, s.config, oidcrp.Begin(s.now()), "")); q.Query().Has("max_age") || q.Query().Has("login_hint") {
		t.Error("a flow that isn't fresh, without a hint, asks for one")
	}
}

// The scope "groups" is asked for where the product needs it, the connection reads groups, and the provider
// announces it.
func TestGroupsScope(t *testing.T) {
	for _, c := range []struct {
		asks, announced bool
		claim, want     string
	}{
		{true, true, "groups", "openid email profile groups"},
		{true, true, "", "openid email profile"},
		{true, false, "groups", "openid email profile"},
		{false, true, "groups", "openid email profile"},
	} {
		s := newSite(t, "")
		if c.announced {
			s.provider.Change(func(p *oidctest.Settings) {
				p.Lies.Discovery = func(d map[string]any) { d["scopes_supported"] = []string{"openid", "groups"} }
			})
		}
		var err error
		if s.discovery, err = s.client.Discover(t.Context(), s.config.Issuer); err != nil {
			t.Fatal(err)
		}
		s.config.AskGroups, s.config.GroupsClaim = c.asks, c.claim
		u, err := url.Parse(oidcrp.AuthURL(s.discovery, s.config, oidcrp.Begin(s.now()), ""))
		if err != nil || u.Query().Get("scope") != c.want {
			t.Errorf("%+v: %v, %v", c, u, err)
		}
	}
}

func TestFlowsDiffer(t *testing.T) {
	one, other := oidcrp.Begin(time.Now()), oidcrp.Begin(time.Now())
	seen := map[string]bool{}
	for _, text := range []string{one.State, one.Nonce, one.Verifier, other.State, other.Nonce, other.Verifier} {
		if seen[text] || len(text) < 43 {
			t.Errorf("%q is there twice, or short", text)
		}
		seen[text] = true
	}
}

// A code that another browser's flow got isn't taken: PKCE binds it to the verifier.
func TestCodeOfAnotherFlow(t *testing.T) {
	s := newSite(t, "")
	mine, theirs := oidcrp.Begin(s.now()), oidcrp.Begin(s.now())
	callback, err := s.provider.SignIn(oidcrp.AuthURL(s.discovery, s.config, theirs, ""))
	if err != nil {
		t.Fatal(err)
	}
	query := callback.Query()
	query.Set("state", mine.State)
	_, err = s.client.Finish(t.Context(), s.discovery, s.config, mine, query)
	if fault := wantFault(t, err, oidcrp.CheckProvider); fault.Advice != oidcrp.AdvicePKCE {
		t.Errorf("the advice is %s", fault.Advice)
	}
}

func TestFreshSignIn(t *testing.T) {
	s := newSite(t, "")
	flow := oidcrp.Begin(s.now())
	flow.Fresh = true
	if _, err := s.finish(t.Context(), flow); err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]any{
		"absent": nil, "of before": s.now().Add(-5 * time.Minute).Unix(), "of the future": s.now().Add(5 * time.Minute).Unix(),
		"a text": "1700000000", "null": any(nil),
	} {
		s.lie(oidctest.Lies{Claims: func(c map[string]any) {
			if c["auth_time"] = lie; name == "absent" {
				delete(c, "auth_time")
			}
		}})
		flow := oidcrp.Begin(s.now())
		flow.Fresh = true
		_, err := s.finish(t.Context(), flow)
		if fault := wantFault(t, err, oidcrp.CheckAuthTime); fault.Advice != oidcrp.AdviceFresh {
			t.Errorf("%s: the advice is %s", name, fault.Advice)
		}
		if _, err := s.signIn(t.Context()); err != nil {
			t.Errorf("%s: a sign-in that asked for nothing is refused: %v", name, err)
		}
	}
}
