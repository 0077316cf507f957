package signon

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/seal"
)

// Limits of what a browser keeps of sign-ins that have begun.
const (
	FlowLife = 10 * time.Minute
	MaxTabs  = 5 // sign-ins at once; a further one ends the oldest
	// maxReturn is the longest return address that is kept, in bytes: with it the cookie stays far below
	// the 4,096 bytes that browsers take.
	maxReturn = 1024
)

// Purpose is what a sign-in at the provider is for.
type Purpose string

// The purposes.
const (
	ForSignIn Purpose = "sign_in"
	ForTest   Purpose = "test"
	ForStepUp Purpose = "step_up"
)

// flow is a sign-in at a provider that has begun. It lies sealed in a cookie of the browser.
type flow struct {
	oidcrp.Flow
	Purpose Purpose `json:"purpose"`
	Test    string  `json:"test,omitempty"`    // the test's id
	ByLink  bool    `json:"byLink,omitempty"`  // a set-up link has asked for the test
	Session string  `json:"session,omitempty"` // of a step-up
	Return  string  `json:"return,omitempty"`  // as it was asked for, and allowed then
}

// isOver reports whether the flow's time has passed.
func (f flow) isOver(now time.Time) bool { return isOver(f.At, now) }

// isOver reports whether what was made at an instant is older than FlowLife, or of a clock that was ahead.
func isOver(made, now time.Time) bool {
	return now.After(made.Add(FlowLife)) || now.Before(made.Add(-time.Minute))
}

// Tab is a cookie by which a browser keeps a sign-in that has begun.
type Tab struct{ Name, Value string }

// TabPrefix begins the names of these cookies.
const TabPrefix = "doorward_sso_"

// tabOf returns the name of the cookie with the flow of a state.
func tabOf(state string) string {
	sum := sha256.Sum256([]byte("tab\x00" + state))
	return TabPrefix + strings.ToLower(base32Text.EncodeToString(sum[:8]))
}

// sealed returns the value of a cookie, which opens for the same connection and name alone.
func (s *SignOn) sealed(ctx context.Context, conID, name string, v any) (string, error) {
	key, err := s.key(ctx)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	plain := json.NewEncoder(&text)
	plain.SetEscapeHTML(false) // else each & of a return address takes six bytes
	err = plain.Encode(v)
	return base64.RawURLEncoding.EncodeToString(key.Seal(seal.Place{Table: "cookies", ID: conID, Column: name}, text.Bytes())), err
}

// open reads what sealed has returned, and reports whether it could: not for another connection or name,
// nor for anything made elsewhere.
func (s *SignOn) open(ctx context.Context, conID, name, value string, into any) (bool, error) {
	key, err := s.key(ctx)
	if err != nil {
		return false, err
	}
	bits, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return false, nil
	}
	text, err := key.Open(seal.Place{Table: "cookies", ID: conID, Column: name}, bits)
	return err == nil && json.Unmarshal(text, into) == nil, nil
}

// secretName is the name of the secret from which the key of these cookies is made.
const secretName = "signon"

// key returns the key that seals the cookies: the same on all nodes and after a restart. The first use in an
// installation makes it.
func (s *SignOn) key(ctx context.Context) (seal.Key, error) {
	if key := s.cookieKey.Load(); key != nil {
		return *key, nil
	}
	secret, err := s.writer.SharedSecret(ctx, secretName)
	if err != nil {
		return seal.Key{}, err
	}
	key := seal.KeyFrom(sha256.Sum256(append([]byte("cookies of sign-ins\x00"), secret...)))
	s.cookieKey.Store(&key)
	return key, nil
}

// held is what a provider has said of somebody, while the person is asked for something before the session.
// It lies sealed in a cookie, and is used once.
type held struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
	By []byte    `json:"by"` // providerOf what the connection signed people in by then
	joining.Person
	AMR      []string  `json:"amr,omitempty"`
	Several  bool      `json:"several,omitempty"` // the provider's whole amr says that there was a second factor
	ACR      string    `json:"acr,omitempty"`
	AuthTime time.Time `json:"authTime,omitzero"`
	Session  string    `json:"session,omitempty"` // doorward.Assurance.ProviderSession
	BegunAt  time.Time `json:"begunAt"`           // when the browser went to the provider
	Agreed   bool      `json:"agreed,omitempty"`  // to replace the session of the browser
}

// Limits of held, so that the cookie stays small.
const (
	maxAMR      = 10
	maxAMRBytes = 40
	maxACRBytes = 255
)

// hold returns what is kept of the provider's words, for a sign-in that began at begun.
func hold(who joining.Person, by doorward.ConnectionParameters, a oidcrp.Asserted, begun, now time.Time) held {
	h := held{ID: rand.Text(), At: now, By: providerOf(by), Person: who, AMR: bounded(a.AMR), Several: saysSeveral(a.AMR), AuthTime: a.AuthTime, BegunAt: begun, Session: provider.SessionOf(a.Session)}
	if len(a.ACR) <= maxACRBytes {
		h.ACR = a.ACR
	}
	return h
}

// providerOf returns a hash of what says whom the provider's words mean. How the client proves itself to it, and
// its secrets, are no part of that.
func providerOf(p doorward.ConnectionParameters) []byte {
	sum := sha256.Sum256([]byte(p.Issuer + "\x00" + p.ClientID + "\x00" + p.EmailFrom))
	return sum[:8]
}

// bounded returns values of amr without those that no column takes: they are stored as words.
func bounded(values []string) (few []string) {
	for _, v := range values {
		isOdd := strings.ContainsFunc(v, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if v != "" && len(v) <= maxAMRBytes && len(few) < maxAMR && !isOdd {
			few = append(few, v)
		}
	}
	return few
}

// useHash is what used_states has of a state, or of what was held.
func useHash(kind, text string) []byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + text))
	return sum[:]
}
