// Package oidctest is an OpenID provider for tests: it runs on a loopback address with TLS, behaves as
// the specifications say, and can lie in each field, one by one.
//
//	provider := oidctest.New("")
//	defer provider.Close()
//	provider.Change(func(s *oidctest.Settings) {
//		s.Apps = []oidctest.App{{ID: "doorward", Secrets: []string{"secret"}}}
//		s.Person = oidctest.Person{Subject: "1", Email: "ann@example.com"}
//		s.Lies.Claims = func(c map[string]any) { c["aud"] = "somebody else" }
//	})
//	callback, err := provider.SignIn(addressOfStart) // as the browser of Person
//
// It checks what it is sent as strictly as a good provider: client, redirect URI, PKCE with S256, the
// client's authentication, each code and each client assertion once. It is safe for use by several
// goroutines. Each Provider has keys of its own.
package oidctest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// The paths of the endpoints, below that of the issuer.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	AuthorizePath = "/authorize"
	TokenPath     = "/token"
	KeysPath      = "/keys"
)

// Provider is a provider. New starts one.
type Provider struct {
	server *httptest.Server
	path   string // of the issuer

	mu       sync.Mutex
	settings Settings
	keys     map[string]*key // by their kind
	made     int             // keys
	grants   map[string]*grant
	proofs   map[string]bool // the jti of client assertions
	counts   map[string]int  // requests by path
}

// Settings are what a Provider knows and how it lies.
type Settings struct {
	Apps      []App
	Person    Person
	Algorithm string // of ID tokens: ES256, RS256, PS256 or EdDSA
	Now       func() time.Time
	Lies      Lies
}

// App is a client of the provider.
type App struct {
	ID string
	// Auth is one of client_secret_basic, client_secret_post, private_key_jwt; empty: either with a secret.
	Auth    string
	Secrets []string
	// Keys returns the client's public keys, each a JSON Web Key, as its jwks_uri would.
	Keys func() [][]byte
	// AudienceIsTokenEndpoint says what client assertions have to name: the token endpoint, or the issuer.
	AudienceIsTokenEndpoint bool
	RedirectURIs            []string // empty: any
}

// Person is who signs in.
type Person struct {
	Subject, Email string
	IsVerified     bool           // email_verified
	Claims         map[string]any // further ones
	SignedInAt     time.Time      // zero: now. With max_age=0 it is now in any case
	Error          string         // the provider refuses the person by this code; empty: it doesn't
	Description    string         // of Error
}

// Lies change what the provider says. A nil one changes nothing.
type Lies struct {
	Discovery func(document map[string]any)
	Keys      func(set map[string]any) // the JSON Web Key Set
	Callback  func(parameters url.Values)
	Header    func(header map[string]any) // of the ID token, which is signed by its alg, HS256 and none too
	Claims    func(claims map[string]any)
	Payload   func(text []byte) []byte // the claims as JSON
	Signature func(signature []byte) []byte
	Token     func(answer map[string]any) // of the token endpoint
	// Answer may answer a request in place of the provider: by another status, a redirect, at length, or
	// never (until the context of the request ends). It returns whether it did.
	Answer func(w http.ResponseWriter, r *http.Request) bool
}

// grant is a code that was given out.
type grant struct {
	client, redirect, challenge, nonce string
	person                             Person
	at                                 time.Time // of the sign-in
}

// New starts a provider, whose issuer has the path. It signs by ES256. Close it.
func New(path string) *Provider {
	p := &Provider{
		path: path, keys: make(map[string]*key), grants: make(map[string]*grant), proofs: make(map[string]bool),
		counts: make(map[string]int), settings: Settings{Algorithm: "ES256", Now: time.Now},
	}
	p.server = httptest.NewTLSServer(http.HandlerFunc(p.serve))
	return p
}

// Close ends the provider, and requests that it is still to answer.
func (p *Provider) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Issuer is the provider's issuer.
func (p *Provider) Issuer() string { return p.server.URL + p.path }

// Client returns a client that trusts the provider's certificate.
func (p *Provider) Client() *http.Client { return p.server.Client() }

// Change changes the settings. Maps and functions in them must not be changed by the caller afterwards.
func (p *Provider) Change(change func(*Settings)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.settings)
}

// Rotate makes the provider sign by a new key, with a new kid, and publish that alone.
func (p *Provider) Rotate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.keys)
}

// Count returns how many requests there were for a path, such as KeysPath.
func (p *Provider) Count(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[path]
}

func (p *Provider) current() Settings {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, p.path)
	p.mu.Lock()
	p.counts[path]++
	settings := p.settings
	p.mu.Unlock()
	_ = r.ParseForm() // an end of the connection is only noticed once the body is read
	if settings.Lies.Answer != nil && settings.Lies.Answer(w, r) {
		return
	}
	switch path {
	case DiscoveryPath:
		answer(w, http.StatusOK, p.document(settings))
	case KeysPath:
		answer(w, http.StatusOK, p.keySet(settings))
	case AuthorizePath:
		p.serveAuthorize(w, r)
	case TokenPath:
		p.serveToken(w, r, settings)
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may have gone
}

func (p *Provider) document(s Settings) map[string]any {
	document := map[string]any{
		"issuer": p.Issuer(), "authorization_endpoint": p.Issuer() + AuthorizePath,
		"token_endpoint": p.Issuer() + TokenPath, "jwks_uri": p.Issuer() + KeysPath,
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"RS256", "ES256", "PS256", "EdDSA"},
		"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post", "private_key_jwt"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if s.Lies.Discovery != nil {
		s.Lies.Discovery(document)
	}
	return document
}

func (p *Provider) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	to, err := p.authorize(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusFound)
}

// SignIn signs in Settings.Person at the address to which Doorward has sent the browser, and returns
// where the provider sends it: Doorward's callback, with its parameters. Errors: what is wrong with the
// request, which a provider shows on a page of its own.
func (p *Provider) SignIn(address string) (callback *url.URL, err error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if want := p.Issuer() + AuthorizePath; at.Scheme+"://"+at.Host+at.Path != want {
		return nil, fmt.Errorf("oidctest: the browser was sent to %s, not to %s", address, want)
	}
	return p.authorize(at.Query())
}

// authorize checks an authorization request (OpenID Connect Core 1.0, section 3.1.2.2).
func (p *Provider) authorize(q url.Values) (*url.URL, error) {
	settings := p.current()
	app, err := settings.app(q.Get("client_id"))
	if err != nil {
		return nil, err
	}
	callback, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || !callback.IsAbs() || len(app.RedirectURIs) > 0 && !slices.Contains(app.RedirectURIs, q.Get("redirect_uri")) {
		return nil, errors.New("oidctest: the redirect URI is not registered: " + q.Get("redirect_uri"))
	}
	parameters := callback.Query()
	parameters.Set("iss", p.Issuer())
	parameters.Set("state", q.Get("state"))
	switch code, description := faultOf(q, settings.Person); code {
	case "":
		parameters.Set("code", p.grant(q, settings))
	default:
		parameters.Set("error", code)
		if description != "" {
			parameters.Set("error_description", description)
		}
	}
	if settings.Lies.Callback != nil {
		settings.Lies.Callback(parameters)
	}
	callback.RawQuery = parameters.Encode()
	return callback, nil
}

// faultOf returns the error code with which a request is refused; empty: it isn't.
func faultOf(q url.Values, person Person) (code, description string) {
	switch {
	case person.Error != "":
		return person.Error, person.Description
	case q.Get("response_type") != "code":
		return "unsupported_response_type", ""
	case !slices.Contains(strings.Fields(q.Get("scope")), "openid"):
		return "invalid_scope", "the scope openid is missing"
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		return "invalid_request", "PKCE with S256 is required"
	case len(q.Get("state")) < 20 || len(q.Get("nonce")) < 20:
		return "invalid_request", "state and nonce are required"
	}
	return "", ""
}

// grant makes a code.
func (p *Provider) grant(q url.Values, s Settings) string {
	at := s.Person.SignedInAt
	if at.IsZero() || q.Get("max_age") == "0" {
		at = s.Now()
	}
	person := s.Person
	person.Claims = maps.Clone(person.Claims)
	code := random()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grants[code] = &grant{
		client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
		nonce: q.Get("nonce"), person: person, at: at,
	}
	return code
}

func (s Settings) app(id string) (App, error) {
	i := slices.IndexFunc(s.Apps, func(a App) bool { return a.ID == id })
	if i < 0 {
		return App{}, errors.New("oidctest: there is no client " + id)
	}
	return s.Apps[i], nil
}
