package oidcrp_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"pgregory.net/rapid"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// gone takes a claim away.
type gone struct{}

// drawClaims draws a change for some claims: to values that are right, nearly right, or of another kind.
func drawClaims(t *rapid.T, s *site, f oidcrp.Flow) map[string]any {
	now := s.now()
	unix := func(from ...time.Duration) []any {
		out := []any{"1700000000", 0, -1, 1e11 + 1, true, []any{now.Unix()}}
		for _, d := range from {
			out = append(out, now.Add(d).Unix())
		}
		return out
	}
	issuer := s.config.Issuer
	values := map[string][]any{
		"iss":       {issuer, issuer + "/", "https://other.example.com", "", []any{issuer}, nil, 7},
		"aud":       {clientID, []any{clientID}, []any{clientID, "other"}, []any{"other", clientID}, "other", []any{}, []any{clientID, nil}, nil, 7, ""},
		"azp":       {clientID, "other", "", nil, []any{clientID}},
		"nonce":     {f.Nonce, f.State, "", nil, f.Nonce + " ", 7},
		"exp":       unix(-time.Hour, -60*time.Second, -59*time.Second, 0, time.Minute, 24*time.Hour, 25*time.Hour),
		"iat":       unix(-48*time.Hour, -24*time.Hour, -time.Hour, 0, 60*time.Second, 61*time.Second),
		"nbf":       unix(-time.Hour, 60*time.Second, 61*time.Second),
		"auth_time": unix(-time.Hour, -60*time.Second, 0, 60*time.Second, 61*time.Second),
		"sub":       {"1", "", strings.Repeat("s", 255), strings.Repeat("s", 256), "a\x00", "日本", nil, 7, []any{"1"}},
		"email":     {"ann@example.com", "", nil, 7, []any{}, "a\nb"}, "email_verified": {true, false, "true", 1, nil},
		"groups": {[]any{"a"}, []any{}, "a", nil, []any{1}, map[string]any{}}, "hasgroups": {true, false, "true", nil},
		"amr": {[]any{"mfa"}, "mfa", nil, []any{1}}, "acr": {"gold", 7, nil},
	}
	changes := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if rapid.IntRange(0, 3).Draw(t, name) > 0 {
			continue
		}
		changes[name] = rapid.SampledFrom(append(values[name], gone{})).Draw(t, name+" as")
	}
	return changes
}

// isRight reports whether claims are good enough, by the words of the specification and the contract.
// It shares no code with the package.
func isRight(s *site, f oidcrp.Flow, text []byte) bool {
	var c map[string]any
	if json.Unmarshal(text, &c) != nil {
		return false
	}
	number := func(name string) (float64, bool) {
		n, ok := c[name].(float64)
		return n, ok && n > 0 && n <= 1e11
	}
	now, skew := float64(s.now().Unix()), 60.0
	audiences, _ := c["aud"].([]any)
	if one, ok := c["aud"].(string); ok {
		audiences = []any{one}
	}
	areTexts := !slices.ContainsFunc(audiences, func(a any) bool { _, ok := a.(string); return !ok })
	_, hasParty := c["azp"]
	exp, hasEnd := number("exp")
	iat, hasStart := number("iat")
	nbf, isNumber := number("nbf")
	_, hasBefore := c["nbf"]
	at, isTime := number("auth_time")
	sub, _ := c["sub"].(string)
	return c["iss"] == s.config.Issuer &&
		slices.Contains(audiences, any(clientID)) && areTexts &&
		(!hasParty && len(audiences) == 1 || c["azp"] == clientID) &&
		c["nonce"] == f.Nonce &&
		hasEnd && exp > now-skew && hasStart && iat <= now+skew && exp > iat && exp-iat <= 24*60*60 &&
		(!hasBefore || isNumber && nbf <= now+skew) &&
		(!f.Fresh || isTime && at >= float64(f.At.Unix())-skew && at <= now+skew) &&
		sub != "" && len(sub) <= 255 && !strings.ContainsFunc(sub, unicode.IsControl)
}

// Over random lies, a sign-in is taken if and only if the claims are right; go-oidc, which knows nothing
// of this package, takes whatever is taken here.
func TestRandomLies(t *testing.T) {
	s := newSite(t, "")
	ctx := oidc.ClientContext(context.Background(), s.provider.Client())
	peer := oidc.NewVerifier(s.config.Issuer, oidc.NewRemoteKeySet(ctx, s.discovery.JWKSURI), &oidc.Config{
		ClientID: clientID, SupportedSigningAlgs: s.discovery.Algorithms,
		// It knows no skew of exp, and one of five minutes of nbf.
		Now: func() time.Time { return s.now().Add(-oidcrp.Skew) },
	})
	rapid.Check(t, func(t *rapid.T) {
		flow := oidcrp.Begin(s.now())
		flow.Fresh = rapid.Bool().Draw(t, "fresh")
		changes := drawClaims(t, s, flow)
		var payload []byte
		var token string
		s.lie(oidctest.Lies{
			Claims: func(c map[string]any) {
				for name, value := range changes {
					if c[name] = value; value == (gone{}) {
						delete(c, name)
					}
				}
			},
			Payload: func(text []byte) []byte { payload = text; return text },
			Token:   func(body map[string]any) { token, _ = body["id_token"].(string) },
		})
		got, err := s.finish(ctx, flow)
		if isTaken := err == nil; isTaken != isRight(s, flow, payload) {
			t.Fatalf("taken: %t (%v)\n%s", isTaken, err, payload)
		}
		if err != nil {
			if got.Subject != "" || got.Address != "" || got.AddressVerified {
				t.Fatalf("a refused sign-in asserts %+v", got)
			}
			return
		}
		if _, err := peer.Verify(ctx, token); err != nil {
			t.Fatalf("go-oidc refuses what was taken: %v\n%s", err, payload)
		}
	})
}

// Over random callbacks, none is taken but the one of the flow.
func TestRandomCallbacks(t *testing.T) {
	s := newSite(t, "")
	rapid.Check(t, func(t *rapid.T) {
		flow := oidcrp.Begin(s.now())
		back, err := s.provider.SignIn(oidcrp.AuthURL(s.discovery, s.config, flow, ""))
		if err != nil {
			t.Fatal(err)
		}
		right := back.Query()
		query := url.Values{}
		for _, name := range []string{"state", "iss", "code", "error", "error_description", "id_token"} {
			word := rapid.SampledFrom([]string{right.Get(name), "", "x", flow.Nonce})
			query[name] = rapid.SliceOfN(word, 0, 2).Draw(t, name)
			if len(query[name]) == 0 {
				delete(query, name)
			}
		}
		_, err = s.client.Finish(context.Background(), s.discovery, s.config, flow, query)
		isRight := len(query["error"]) == 0
		for _, name := range []string{"state", "iss", "code"} {
			isRight = isRight && slices.Equal(query[name], right[name])
		}
		if isRight != (err == nil) {
			t.Fatalf("%v: %v", query, err)
		}
	})
}
