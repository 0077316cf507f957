package client_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/jwt"
)

const messages, reports = "https://messages.example", "https://reports.example"

// assertionFor returns an assertion about the person, from a running Doorward.
func assertionFor(t *testing.T, p *doorwardtest.Person, audience string) string {
	t.Helper()
	status, body := p.Post("/api/v2/auth/token", map[string]string{"audience": audience})
	var answer struct{ Assertion string }
	if err := json.Unmarshal(body, &answer); status != http.StatusOK || err != nil {
		t.Fatalf("%d %s", status, body)
	}
	return answer.Assertion
}

func TestVerify(t *testing.T) {
	t.Parallel()
	d := doorwardtest.Start(t, doorwardtest.Audiences(messages, reports))
	ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
	c, err := client.New(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	v, good := c.Verifier(messages), assertionFor(t, ann, messages)
	got, err := v.Verify(t.Context(), good)
	if err != nil || got.Subject != ann.ID || got.Role != client.User || got.SessionID == "" || got.KeyID != "" || got.AAL != 1 ||
		time.Since(got.AuthTime) > time.Minute || time.Until(got.ExpiresAt) > 30*time.Second {
		t.Fatalf("%+v, %v", got, err)
	}
	parts := strings.Split(good, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"doorward+jwt"}`)) + "." + parts[1] + "."
	var claims map[string]any
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	foreign, err := jwt.NewKey().Sign("doorward+jwt", claims)
	if err != nil {
		t.Fatal(err)
	}
	foreignParts := strings.Split(foreign, ".")
	for name, bad := range map[string]string{
		"of another audience": assertionFor(t, ann, reports), "of another key": foreign, "without a signature": unsigned,
		"of another key under our key's id": parts[0] + "." + foreignParts[1] + "." + foreignParts[2],
		"with other claims":                 parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"usr_root"}`)) + "." + parts[2],
		"cut short":                         good[:len(good)-4], "that is empty": "", "of dots": "..", "that is a session": ann.Token(),
	} {
		if got, err := v.Verify(t.Context(), bad); !errors.Is(err, client.ErrUnauthenticated) || got != (client.Assertion{}) {
			t.Errorf("an assertion %s gives %+v, %v", name, got, err)
		}
	}
	internal := strings.Replace(d.URL, "localhost", "127.0.0.1", 1)
	if _, err := must(client.New(internal, client.PublicURL(d.URL+"/"))).Verifier(messages).Verify(t.Context(), good); err != nil {
		t.Errorf("with PublicURL, where the service reaches Doorward at another address: %v", err)
	}
	if _, err := must(client.New(internal)).Verifier(messages).Verify(t.Context(), good); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("without PublicURL, where the service reaches Doorward at another address: %v", err)
	}
	if _, err := must(client.New(d.URL+"/elsewhere")).Verifier(messages).Verify(t.Context(), good); err == nil {
		t.Error("an assertion of another issuer is accepted")
	}
}

// startKeyServer serves keys that the test controls, and counts how often they are read.
func startKeyServer(t *testing.T, keys func() []jwt.Public) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var reads atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys()})
	}))
	t.Cleanup(s.Close)
	return s, &reads
}

func TestVerifyExpiredAndUnknownKeys(t *testing.T) {
	t.Parallel()
	key := jwt.NewKey()
	s, reads := startKeyServer(t, func() []jwt.Public { return []jwt.Public{key.Public()} })
	v := must(client.New(s.URL)).Verifier(messages)
	sign := func(k jwt.Key, exp time.Duration) string {
		token, err := k.Sign("doorward+jwt", map[string]any{"iss": s.URL, "aud": messages, "sub": "usr_1", "exp": time.Now().Add(exp).Unix()})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if _, err := v.Verify(t.Context(), sign(key, 30*time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), sign(key, -time.Second)); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("an expired assertion gives %v", err)
	}
	for range 20 {
		if _, err := v.Verify(t.Context(), sign(jwt.NewKey(), time.Minute)); !errors.Is(err, client.ErrUnauthenticated) {
			t.Errorf("an assertion of an unknown key gives %v", err)
		}
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("the keys were read %d times within 5 s, want once: anybody can invent key ids", n)
	}
	s.Close()
	if _, err := v.Verify(t.Context(), sign(key, 30*time.Second)); err != nil {
		t.Errorf("while Doorward is down: %v", err)
	}
	if _, err := must(client.New(s.URL)).Verifier(messages).Verify(context.Background(), sign(key, time.Second)); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("without keys: %v", err)
	}
}

func must(c *client.Client, err error) *client.Client {
	if err != nil {
		panic(err)
	}
	return c
}

func ExampleClient_Verifier() {
	d := doorwardtest.Start(runTB, doorwardtest.Audiences("https://messages.example"))
	auth, err := client.New(d.URL)
	if err != nil {
		panic(err)
	}
	assertions := auth.Verifier("https://messages.example")
	handler := func(r *http.Request) string {
		who, err := assertions.Verify(r.Context(), r.Header.Get("X-Auth-Assertion"))
		if err != nil {
			return "refused"
		}
		return string(who.Role)
	}
	fmt.Println(handler(httptest.NewRequest("GET", "/", nil)))
	// Output: refused
}
