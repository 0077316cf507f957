package oidcrp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/waittest"
)

// keysRead returns how often the provider's keys were read.
func (s *site) keysRead() int { return s.provider.Count(oidctest.KeysPath) }

func TestRotation(t *testing.T) {
	s := newSite(t, "")
	for range 3 {
		if _, err := s.signIn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.keysRead(); n != 1 {
		t.Errorf("the keys were read %d times", n)
	}
	s.later(2 * time.Minute)
	s.provider.Rotate()
	for range 3 {
		if _, err := s.signIn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.keysRead(); n != 2 {
		t.Errorf("after a rotation the keys were read %d times", n)
	}
}

// A key may be replaced under the same kid, or tokens have none.
func TestRotationUnderTheSameKid(t *testing.T) {
	for _, kid := range []any{"always", nil} {
		s := newSite(t, "")
		s.lie(oidctest.Lies{
			Header: func(h map[string]any) {
				if h["kid"] = kid; kid == nil {
					delete(h, "kid")
				}
			},
			Keys: func(set map[string]any) {
				for _, key := range set["keys"].([]any) {
					key.(map[string]any)["kid"] = "always"
				}
			},
		})
		if _, err := s.signIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.provider.Rotate()
		s.later(2 * time.Minute)
		if _, err := s.signIn(t.Context()); err != nil {
			t.Errorf("kid %v: %v", kid, err)
		}
	}
}

// What was read while the clock was ahead doesn't keep the keys from being read again, be they unknown or a day
// old.
func TestKeysAfterAClockThatWasAhead(t *testing.T) {
	s := newSite(t, "")
	s.later(50 * 24 * time.Hour)
	if _, err := s.signIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.later(-50 * 24 * time.Hour)
	for range 2 {
		if _, err := s.signIn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.keysRead(); n != 2 {
		t.Errorf("once the clock was set back the keys were read %d times", n)
	}
	s.later(time.Hour)
	s.provider.Rotate()
	if _, err := s.signIn(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnknownKidReadsKeysOnceAMinute(t *testing.T) {
	s := newSite(t, "")
	if _, err := s.signIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.lie(header("kid", "other")(s))
	for minute := range 3 {
		for range 5 {
			_, err := s.signIn(t.Context())
			wantFault(t, err, oidcrp.CheckKid)
		}
		if n := s.keysRead(); n != 1+minute {
			t.Errorf("in minute %d the keys were read %d times", minute, n)
		}
		s.later(time.Minute)
	}
	// Another provider has a minute of its own.
	other := newSite(t, "")
	other.client = s.client
	if _, err := other.signIn(t.Context()); err != nil {
		t.Error(err)
	}
}

// Keys that were withdrawn are good for a day at most.
func TestKeysAreReadDaily(t *testing.T) {
	s := newSite(t, "")
	for day := 1; day <= 3; day++ {
		if _, err := s.signIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.later(24*time.Hour - time.Second)
		if _, err := s.signIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.keysRead(); n != day {
			t.Errorf("on day %d the keys were read %d times", day, n)
		}
		s.later(time.Second)
	}
	s.lie(respond(oidctest.KeysPath, http.NotFound))
	_, err := s.signIn(t.Context())
	wantUnavailable(t, err)
	s.lie(oidctest.Lies{})
	if _, err := s.signIn(t.Context()); err != nil {
		t.Errorf("as soon as keys can be read again: %v", err)
	}
}

// A key that can't be looked for isn't refused, in the minute without reading either.
func TestUnknownKidWithoutAnswer(t *testing.T) {
	s := newSite(t, "")
	if _, err := s.signIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.provider.Rotate()
	s.later(2 * time.Minute)
	s.lie(respond(oidctest.KeysPath, http.NotFound))
	for range 3 {
		_, err := s.signIn(t.Context())
		wantUnavailable(t, err)
	}
	if n := s.keysRead(); n != 2 {
		t.Errorf("the keys were read %d times", n)
	}
	s.lie(oidctest.Lies{})
	s.later(time.Minute)
	if _, err := s.signIn(t.Context()); err != nil {
		t.Error(err)
	}
}

// jwk returns a key as a member of a set, with further members.
func jwk(t *testing.T, key any, kid string, more map[string]any) map[string]any {
	t.Helper()
	text, err := jose.JSONWebKey{Key: key, KeyID: kid}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	for name, value := range more {
		out[name] = value
	}
	return out
}

// Members of a set that Doorward can't use keep it from using none of the others.
func TestOddKeysArePassedOver(t *testing.T) {
	s := newSite(t, "")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	odd := []any{
		7, "key", nil,
		[]any{},
		map[string]any{},
		map[string]any{"kty": "AKP", "kid": "a", "pub": "x"},
		map[string]any{"kty": "oct", "k": "c2VjcmV0", "kid": "b"},
		map[string]any{"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"},
		jwk(t, &weak.PublicKey, "weak", nil), jwk(t, private, "private", nil), jwk(t, &private.PublicKey, "enc", map[string]any{"use": "enc"}),
	}
	s.lie(oidctest.Lies{Keys: func(set map[string]any) { set["keys"] = append(odd, set["keys"].([]any)...) }})
	if _, err := s.signIn(t.Context()); err != nil {
		t.Error(err)
	}
	for _, key := range odd {
		s := newSite(t, "")
		s.lie(oidctest.Lies{Keys: func(set map[string]any) { set["keys"] = []any{key} }})
		_, err := s.signIn(t.Context())
		wantUnavailable(t, err)
	}
}

// A key for one algorithm verifies no other.
func TestKeyOfAnotherAlgorithm(t *testing.T) {
	s := newSite(t, "")
	s.provider.Change(func(o *oidctest.Settings) { o.Algorithm = "RS256" })
	s.lie(oidctest.Lies{
		Keys:   func(set map[string]any) { set["keys"].([]any)[0].(map[string]any)["alg"] = "RS256" },
		Header: func(h map[string]any) { h["alg"] = "PS256" },
	})
	_, err := s.signIn(t.Context())
	wantFault(t, err, oidcrp.CheckSignature)
}

// Fifty people come at nine o'clock: the keys are read once, and one who leaves takes nothing from the
// others.
func TestRaceManySignInsAtOnce(t *testing.T) {
	s := newSite(t, "")
	leaving, leave := context.WithCancel(t.Context())
	asked := make(chan struct{})
	release := make(chan struct{})
	var once sync.Once
	s.lie(oidctest.Lies{Answer: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == oidctest.KeysPath {
			once.Do(func() { close(asked) })
			<-release
		}
		return false
	}})
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := s.signIn(leaving); err == nil {
			t.Error("a sign-in that was given up is taken")
		}
	})
	<-asked
	for range 50 {
		all.Go(func() {
			if _, err := s.signIn(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	leave()
	waittest.Until(t, "all codes to be sent", func() bool { return s.provider.Count(oidctest.TokenPath) == 51 })
	close(release)
	all.Wait()
	if n := s.keysRead(); n != 1 {
		t.Errorf("the keys were read %d times", n)
	}
}

// Rotations, liars and sign-ins at once: nobody is signed in by a key that was never published.
func TestRaceRotations(t *testing.T) {
	s := newSite(t, "")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10 {
				switch i {
				case 0:
					s.provider.Rotate()
				case 1:
					s.later(30 * time.Second)
				}
				if _, err := s.signIn(t.Context()); err != nil {
					fault := faultOf(t, err)
					if fault.Check != oidcrp.CheckKid && fault.Check != oidcrp.CheckExp && fault.Check != oidcrp.CheckIat {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}
