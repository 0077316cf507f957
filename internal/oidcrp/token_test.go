package oidcrp_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// app changes the client that the provider knows.
func (s *site) app(change func(*oidctest.App)) {
	s.provider.Change(func(o *oidctest.Settings) {
		app := o.Apps[0]
		change(&app)
		o.Apps = []oidctest.App{app}
	})
}

func TestWaysOfAuthentication(t *testing.T) {
	s := newSite(t, "")
	for auth, name := range map[oidcrp.Auth]string{oidcrp.SecretBasic: "client_secret_basic", oidcrp.SecretPost: "client_secret_post"} {
		s.config.Auth = auth
		s.app(func(a *oidctest.App) { a.Auth = name })
		if _, err := s.signIn(t.Context()); err != nil {
			t.Errorf("%s: %v", auth, err)
		}
	}
}

func TestPrivateKeyJWT(t *testing.T) {
	s := newSite(t, "")
	key, err := oidcrp.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s.config.Auth, s.config.Key, s.config.Secrets = oidcrp.PrivateKeyJWT, key, nil
	s.app(func(a *oidctest.App) {
		a.Auth, a.Keys, a.Secrets = "private_key_jwt", func() [][]byte { return [][]byte{key.JWK()} }, nil
	})
	for range 3 { // each assertion is good once
		got, err := s.signIn(t.Context())
		if err != nil || got.UsedSecret != -1 {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	s.config.AudienceIsTokenEndpoint = true
	_, err = s.signIn(t.Context())
	if fault := wantFault(t, err, oidcrp.CheckClient); fault.Advice != oidcrp.AdviceClientKey {
		t.Errorf("got %+v", fault)
	}
	s.app(func(a *oidctest.App) { a.AudienceIsTokenEndpoint = true })
	if _, err := s.signIn(t.Context()); err != nil {
		t.Error(err)
	}
	s.config.Key, _ = oidcrp.NewKey()
	_, err = s.signIn(t.Context())
	wantFault(t, err, oidcrp.CheckClient)
	s.config.Key = nil
	_, err = s.signIn(t.Context())
	wantFault(t, err, oidcrp.CheckClient)
}

func TestKeyIsKept(t *testing.T) {
	key, err := oidcrp.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := oidcrp.ParseKey(der)
	if err != nil || again.ID != key.ID || !bytes.Equal(again.JWK(), key.JWK()) {
		t.Errorf("got %v, %v", again, err)
	}
	if text := string(key.JWK()); strings.Contains(text, `"d"`) || !strings.Contains(text, key.ID) {
		t.Errorf("the public key is %s", text)
	}
	if _, err := oidcrp.ParseKey(der[:20]); err == nil {
		t.Error("half a key is read")
	}
}

func TestSecretsAreTriedInOrder(t *testing.T) {
	s := newSite(t, "")
	s.config.Secrets = []string{"newest", secret}
	got, err := s.signIn(t.Context())
	if err != nil || got.UsedSecret != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	s.config.Secrets = []string{secret, "older"}
	before := s.provider.Count(oidctest.TokenPath)
	if got, err := s.signIn(t.Context()); err != nil || got.UsedSecret != 0 || s.provider.Count(oidctest.TokenPath) != before+1 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, secrets := range [][]string{{"wrong", "wrong, too"}, nil} {
		s.config.Secrets = secrets
		_, err = s.signIn(t.Context())
		if fault := wantFault(t, err, oidcrp.CheckClient); fault.Advice != oidcrp.AdviceClientSecret {
			t.Errorf("got %+v", fault)
		}
	}
}

// Another refusal than that of the client is final: the next secret would only use the code up again.
func TestNextSecretOnlyForARefusedClient(t *testing.T) {
	s := newSite(t, "")
	s.config.Secrets = []string{secret, "older"}
	for body, isClient := range map[string]bool{
		`400 {"error":"invalid_grant"}`:                                      false,
		`400 {"error":"unauthorized_client"}`:                                false,
		`401 {"error":"unauthorized_client","error_description":"Keycloak"}`: true,
		`401 {"error":"invalid_client"}`:                                     true,
		`400 {"error":"invalid_client"}`:                                     true,
	} {
		status, text := http.StatusBadRequest, body[4:]
		if body[:3] == "401" {
			status = http.StatusUnauthorized
		}
		s.lie(respond(oidctest.TokenPath, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}))
		before := s.provider.Count(oidctest.TokenPath)
		_, err := s.signIn(t.Context())
		check, want := oidcrp.CheckProvider, 1
		if isClient {
			check, want = oidcrp.CheckClient, 2
		}
		wantFault(t, err, check)
		if n := s.provider.Count(oidctest.TokenPath) - before; n != want {
			t.Errorf("%s: %d requests, want %d", body, n, want)
		}
	}
}

func TestAdviceOfTheTokenEndpoint(t *testing.T) {
	s := newSite(t, "")
	for text, advice := range map[string]string{
		`{"error":"invalid_grant"}`: oidcrp.AdviceStartAgain,
		`{"error":"invalid_grant","error_description":"PKCE verification failed"}`:     oidcrp.AdvicePKCE,
		`{"error":"invalid_grant","error_description":"The redirect URI differs"}`:     oidcrp.AdviceRedirectURI,
		`{"error":"invalid_request","error_description":"AADSTS50011: reply address"}`: oidcrp.AdviceRedirectURI,
		`{"error":"invalid_scope"}`:                                                                     oidcrp.AdviceScope,
		`{"error":"unauthorized_client"}`:                                                               oidcrp.AdviceClientID,
		`{"error":"new","error_description":"` + strings.Repeat("ü", 5000) + `"}`:                       oidcrp.AdviceProvider,
		`{"error":"invalid_client","error_description":"` + secret + ` is wrong"}`:                      oidcrp.AdviceClientSecret,
		`{"error":"invalid_grant","error_description":"` + strings.Repeat("eyJhbGciOiJub25l", 4) + `"}`: oidcrp.AdviceStartAgain,
	} {
		s.lie(respond(oidctest.TokenPath, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(text))
		}))
		flow := oidcrp.Begin(s.now())
		_, err := s.finish(t.Context(), flow)
		fault := faultOf(t, err)
		if fault.Advice != advice || fault.Unavailable {
			t.Errorf("%.80s: got %+v", text, fault)
		}
		checkText(t, fault, secretsOf(s, flow))
	}
}

// A provider that never answers costs the time of the context, and no more.
func TestSlowProvider(t *testing.T) {
	for _, path := range []string{oidctest.DiscoveryPath, oidctest.TokenPath, oidctest.KeysPath} {
		s := newSite(t, "")
		ctx, cancel := context.WithCancel(t.Context())
		s.lie(respond(path, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		}))
		var err error
		if path == oidctest.DiscoveryPath {
			_, err = s.client.Discover(ctx, s.provider.Issuer())
		} else {
			_, err = s.signIn(ctx)
		}
		wantUnavailable(t, err)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
