package oidcrp_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

func TestCheckIssuer(t *testing.T) {
	for issuer, code := range map[string]string{
		"https://login.example.com":                            "",
		"https://login.example.com/":                           "",
		"https://login.example.com:8443/a/b":                   "",
		"https://[2001:db8::1]/":                               "",
		"https://accounts.google.com":                          "",
		"":                                                     "invalid",
		"login.example.com":                                    "invalid",
		"http://login.example.com":                             "invalid",
		"HTTP://login.example.com":                             "invalid",
		"https://":                                             "invalid",
		"https://:443":                                         "invalid",
		"https:login.example.com":                              "invalid",
		"https://ann@login.example.com":                        "invalid",
		"https://@login.example.com":                           "invalid",
		"https://login.example.com?":                           "invalid",
		"https://login.example.com?a=b":                        "invalid",
		"https://login.example.com#":                           "invalid",
		"https://login.example.com#a":                          "invalid",
		"https://login.example.com/ a":                         "invalid",
		"https://login.example.com\\@x":                        "invalid",
		"https://login.example.com\n":                          "invalid",
		"https://löginn.example.com":                           "invalid",
		"https://login.example.com/%zz":                        "invalid",
		"https://a/" + strings.Repeat("a", 1100):               "invalid",
		"ftp://login.example.com":                              "invalid",
		"https://login.microsoftonline.com/common/v2.0":        "multi_tenant_issuer",
		"https://login.microsoftonline.com/Common":             "multi_tenant_issuer",
		"https://LOGIN.microsoftonline.com/organizations/v2.0": "multi_tenant_issuer",
		"https://login.microsoftonline.us/consumers/v2.0":      "multi_tenant_issuer",
		"https://sts.windows.net/common/":                      "multi_tenant_issuer",
		"https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0": "multi_tenant_issuer",
		"https://login.microsoftonline.com/{tenantid}/v2.0":                           "multi_tenant_issuer",
		"https://login.microsoftonline.com/%7Btenantid%7D/v2.0":                       "multi_tenant_issuer",
		"https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0": "",
		"https://login.example.com/common":                                            "",
	} {
		err := oidcrp.CheckIssuer(issuer)
		if code == "" {
			if err != nil {
				t.Errorf("%q: %v", issuer, err)
			}
			continue
		}
		if fault := wantFault(t, err, oidcrp.CheckOfIssuer); fault.Code != code {
			t.Errorf("%q: the code is %s, want %s", issuer, fault.Code, code)
		}
	}
}

func TestDiscover(t *testing.T) {
	s := newSite(t, "/realms/one")
	issuer := s.provider.Issuer()
	want := oidcrp.Discovery{
		Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", JWKSURI: issuer + "/keys",
		Algorithms: []string{"RS256", "ES256", "PS256", "EdDSA"}, PromisesIss: true,
		TokenAuthMethods: []string{"client_secret_basic", "client_secret_post", "private_key_jwt"},
	}
	if diff := cmp.Diff(want, s.discovery); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(s.discovery)
	if err != nil {
		t.Fatal(err)
	}
	var kept oidcrp.Discovery
	if err := json.Unmarshal(text, &kept); err != nil || !cmp.Equal(kept, s.discovery) {
		t.Errorf("kept as JSON it is %+v, %v", kept, err)
	}
}

// What can't be an issuer isn't called.
func TestDiscoverChecksTheIssuerFirst(t *testing.T) {
	s := newSite(t, "")
	before := s.provider.Count(oidctest.DiscoveryPath)
	_, err := s.client.Discover(t.Context(), s.provider.Issuer()+"/?a=/")
	wantFault(t, err, oidcrp.CheckOfIssuer)
	_, err = s.client.Discover(t.Context(), "http"+strings.TrimPrefix(s.provider.Issuer(), "https"))
	wantFault(t, err, oidcrp.CheckOfIssuer)
	for path, n := range map[string]int{oidctest.DiscoveryPath: before, "/": 0} {
		if got := s.provider.Count(path); got != n {
			t.Errorf("%s was called %d times", path, got)
		}
	}
}

func TestDiscoverWithoutOptionalMembers(t *testing.T) {
	s := newSite(t, "")
	s.lie(oidctest.Lies{Discovery: func(d map[string]any) {
		for _, name := range []string{
			"id_token_signing_alg_values_supported", "token_endpoint_auth_methods_supported", "authorization_response_iss_parameter_supported",
		} {
			delete(d, name)
		}
	}})
	got, err := s.client.Discover(t.Context(), s.provider.Issuer())
	if err != nil || got.PromisesIss || !slices.Equal(got.Algorithms, []string{"RS256"}) || !slices.Equal(got.TokenAuthMethods, []string{"client_secret_basic"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Google's issuer has no slash at its end, that of Entra's first version has: both are compared exactly.
func TestDiscoverWithASlash(t *testing.T) {
	s := newSite(t, "")
	s.lie(oidctest.Lies{Discovery: func(d map[string]any) { d["issuer"] = s.provider.Issuer() + "/" }})
	if got, err := s.client.Discover(t.Context(), s.provider.Issuer()+"/"); err != nil || got.Issuer != s.provider.Issuer()+"/" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err := s.client.Discover(t.Context(), s.provider.Issuer())
	if fault := wantFault(t, err, oidcrp.CheckOfIssuer); fault.Code != oidcrp.CodeIssuerMismatch {
		t.Errorf("got %v", fault)
	}
}

func TestLiesOfDiscovery(t *testing.T) {
	s := newSite(t, "")
	member := func(name string, value any) func(map[string]any) {
		return func(d map[string]any) {
			if d[name] = value; value == nil {
				delete(d, name)
			}
		}
	}
	for _, one := range []struct {
		name string
		lie  func(map[string]any)
		code string
	}{
		{"another issuer", member("issuer", "https://other.example.com"), "issuer_mismatch"},
		{"no issuer", member("issuer", nil), "issuer_mismatch"},
		{"a template", member("issuer", "https://login.microsoftonline.com/{tenantid}/v2.0"), "multi_tenant_issuer"},
		{"authorization without TLS", member("authorization_endpoint", "http://login.example.com/"), "invalid"},
		{"authorization by a script", member("authorization_endpoint", "javascript:alert(1)"), "invalid"},
		{"tokens without TLS", member("token_endpoint", "http://login.example.com/"), "invalid"},
		{"tokens with a user", member("token_endpoint", "https://a:b@login.example.com/"), "invalid"},
		{"tokens with a fragment", member("token_endpoint", "https://login.example.com/#a"), "invalid"},
		{"no tokens", member("token_endpoint", nil), "invalid"},
		{"no keys", member("jwks_uri", nil), "invalid"},
		{"keys in a file", member("jwks_uri", "file:///etc/passwd"), "invalid"},
		{"an empty address", member("jwks_uri", ""), "invalid"},
		{"shared secrets alone", member("id_token_signing_alg_values_supported", []string{"HS256", "none"}), "invalid"},
		{"no algorithm", member("id_token_signing_alg_values_supported", []string{}), "invalid"},
		{"an issuer that is a list", member("issuer", []string{"a"}), "unreachable"},
		{"too long", member("x", strings.Repeat("x", oidcrp.BodyMax)), "unreachable"},
	} {
		s.lie(oidctest.Lies{Discovery: one.lie})
		_, err := s.client.Discover(t.Context(), s.provider.Issuer())
		fault := faultOf(t, err)
		if fault.Code != one.code || fault.Check != oidcrp.CheckOfIssuer || fault.Unavailable != (one.code == "unreachable") {
			t.Errorf("%s: got %v", one.name, fault)
		}
	}
	s.lie(oidctest.Lies{Discovery: member("id_token_signing_alg_values_supported", []string{"HS256", "none", "ES256", "X"})})
	if got, err := s.client.Discover(t.Context(), s.provider.Issuer()); err != nil || !slices.Equal(got.Algorithms, []string{"ES256"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A document that was kept from before, or changed since, doesn't make an algorithm usable.
func TestKeptAlgorithmsAreJudgedAgain(t *testing.T) {
	s := newSite(t, "")
	s.discovery.Algorithms = []string{"none", "HS256"}
	for _, alg := range []string{"none", "HS256", "ES256"} {
		s.lie(header("alg", alg)(s))
		_, err := s.signIn(t.Context())
		wantFault(t, err, oidcrp.CheckAlg)
	}
}

// answers of servers that are no provider, or have a fault.
func faultyAnswers() map[string]http.HandlerFunc {
	status := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	return map[string]http.HandlerFunc{
		"404":              status(http.StatusNotFound, "<html>"),
		"403 of a gateway": status(http.StatusForbidden, "<html>"),
		"429":              status(http.StatusTooManyRequests, `{"error":"invalid_client"}`),
		"500":              status(http.StatusInternalServerError, `{"error":"invalid_client"}`),
		"503":              status(http.StatusServiceUnavailable, ""),
		"a page":           status(http.StatusOK, "<html><title>Maintenance</title>"),
		"nothing":          status(http.StatusOK, ""),
		"too much":         status(http.StatusOK, strings.Repeat(" ", oidcrp.BodyMax+1)),
		"a redirect": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"an end of the connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
	}
}

// A provider with a fault has refused nobody, wherever it shows.
func TestFaultsRefuseNobody(t *testing.T) {
	for name, answer := range faultyAnswers() {
		for _, path := range []string{oidctest.DiscoveryPath, oidctest.TokenPath, oidctest.KeysPath} {
			s := newSite(t, "")
			s.lie(respond(path, answer))
			var err error
			if path == oidctest.DiscoveryPath {
				_, err = s.client.Discover(t.Context(), s.provider.Issuer())
			} else {
				_, err = s.signIn(t.Context())
			}
			fault := wantUnavailable(t, err)
			if fault.Seen == "" || fault.Advice == "" {
				t.Errorf("%s at %s: got %+v", name, path, fault)
			}
			if n := s.provider.Count("/elsewhere"); n > 0 {
				t.Errorf("%s: a redirect was followed", path)
			}
		}
	}
}

func TestNothingAnswers(t *testing.T) {
	s := newSite(t, "")
	s.provider.Close()
	_, err := s.client.Discover(t.Context(), s.config.Issuer)
	if fault := wantUnavailable(t, err); fault.Code != oidcrp.CodeUnreachable || strings.Contains(fault.Seen, "127.0.0.1") {
		t.Errorf("got %+v", fault)
	}
}

func TestUnknownAuthority(t *testing.T) {
	s := newSite(t, "")
	client := oidcrp.New(&http.Client{}, time.Now)
	_, err := client.Discover(t.Context(), s.provider.Issuer())
	if fault := wantUnavailable(t, err); fault.Advice != oidcrp.AdviceTLS {
		t.Errorf("got %+v", fault)
	}
}

// refusing is a guarded transport that refuses all addresses.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errRefused{} }

type errRefused struct{}

func (errRefused) Error() string { return "10.0.0.1 is not allowed" }

func TestRefusedAddress(t *testing.T) {
	s := newSite(t, "")
	client := oidcrp.New(&http.Client{Transport: refusing{}}, time.Now, oidcrp.WithRefused(func(err error) bool {
		_, isRefused := errors.AsType[errRefused](err)
		return isRefused
	}))
	_, err := client.Discover(t.Context(), s.provider.Issuer())
	if fault := wantUnavailable(t, err); fault.Code != oidcrp.CodeAddressRefused || strings.Contains(fault.Seen, "10.0.0.1") {
		t.Errorf("got %+v", fault)
	}
	s.client = client
	_, err = s.signIn(t.Context())
	if fault := wantUnavailable(t, err); fault.Code != oidcrp.CodeAddressRefused {
		t.Errorf("got %+v", fault)
	}
}
