package oidcrp

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/internal/oidcrp/keyset"
)

func TestNoProxyOfTheEnvironment(t *testing.T) {
	client := New(&http.Client{}, time.Now)
	if client.http.Transport.(bounded).next.(*http.Transport).Proxy != nil {
		t.Error("requests go through the proxy that the environment names")
	}
}

// Whatever a provider sends is read without a panic, and can be shown.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"iss":"https://a","sub":"1","aud":["a"],"nonce":"n","exp":1,"iat":1.5e9,"groups":["a",null],"amr":["mfa"]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"1"},{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}]}`,
		`{"issuer":"https://a","authorization_endpoint":"https://a/","id_token_signing_alg_values_supported":["ES256"]}`,
		`{"alg":"ES256","kid":"1","crit":[]}`, `{"a":1,"a":2}`, `{"sub":"\ud800"}`, "\u202e\x00\xff", `[[[[`, `{"exp":1e400}`,
	} {
		f.Add([]byte(text))
	}
	now := time.Unix(1_700_000_000, 0)
	discovery := Discovery{Issuer: "https://a", Algorithms: []string{"ES256"}}
	config := Config{Issuer: "https://a", ClientID: "a", GroupsClaim: "groups", Entra: true, Google: true}
	flow := Flow{State: "s", Nonce: "n", At: now, Fresh: true}
	f.Fuzz(func(t *testing.T, body []byte) {
		checkShown(t, CheckIssuer(string(body)))
		if _, fault := readHeader(discovery, base64.RawURLEncoding.EncodeToString(body)+".e30."); fault != nil {
			checkShown(t, fault)
		}
		_, _ = keyset.Parse(body)
		checkShown(t, providerFault(string(body), string(body)))
		var read document
		if json.Unmarshal(body, &read) == nil {
			if fault := read.check("https://a"); fault != nil {
				checkShown(t, fault)
			}
		}
		c, err := parseClaims(body)
		if err != nil {
			return
		}
		if fault := c.check(discovery, config, flow, now); fault != nil {
			checkShown(t, fault)
		}
		shown := c.asserted(config, Asserted{Claims: c.shown(config), Names: c.names()})
		if text, err := json.Marshal(shown.Claims); err != nil || len(text) > 64<<10 {
			t.Errorf("the claims are %d bytes, %v", len(text), err)
		}
	})
}

// checkShown checks the texts of a fault.
func checkShown(t *testing.T, err error) {
	t.Helper()
	fault, ok := err.(*Fault)
	if !ok {
		return
	}
	for _, text := range []string{fault.Seen, fault.Wanted} {
		if utf8.RuneCountInString(text) > textMax || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%q can't be shown", text)
		}
	}
}
