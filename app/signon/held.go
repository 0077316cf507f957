package signon

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/provider"
)

// held is what a provider has said of somebody, while the person is asked for something before the session.
// It lies sealed in a cookie, and is used once.
type held struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
	By []byte    `json:"by"` // providerOf what the connection signed people in by then
	joining.Person
	AMR      []string  `json:"amr,omitempty"`
	Several  bool      `json:"several,omitempty"` // all methods that the provider names say that there was a second factor
	ACR      string    `json:"acr,omitempty"`     // one that the connection trusted then
	AuthTime time.Time `json:"authTime,omitzero"`
	Until    time.Time `json:"until,omitzero"`     // doorward.Assurance.ProviderUntil
	Session  string    `json:"session,omitempty"`  // doorward.Assurance.ProviderSession
	SignedBy []string  `json:"signedBy,omitempty"` // acs.Accepted.SignedBy
	BegunAt  time.Time `json:"begunAt"`            // when the browser went to the provider
	Agreed   bool      `json:"agreed,omitempty"`   // to replace the session of the browser
}

// Limits of held, so that the cookie stays small.
const (
	maxAMR      = 10
	maxAMRBytes = 128 // of each value: the names of SAML are addresses
	maxAMRTotal = 400 // of all values together
)

// hold returns what is kept of the provider's words, for a sign-in that began at begun.
func hold(who joining.Person, j judged, begun, now time.Time) held {
	a := j.asserted
	h := held{
		ID: rand.Text(), At: now, By: providerOf(j.by), Person: who, AMR: bounded(a.Methods), Several: saysSeveral(a.Methods),
		AuthTime: a.At, Until: a.Until, Session: provider.SessionOf(a.Session), SignedBy: j.signedBy, BegunAt: begun,
	}
	if i := slices.IndexFunc(a.Contexts, func(name string) bool { return slices.Contains(who.Connection.FactorACR, name) }); i >= 0 {
		h.ACR = a.Contexts[i]
	}
	return h
}

// providerOf returns a hash of what says whom the provider's words mean. How the client proves itself to it, and
// its secrets, are no part of that.
func providerOf(p doorward.ConnectionParameters) []byte {
	sum := sha256.Sum256([]byte(p.IdentityIssuer() + "\x00" + p.ClientID + "\x00" + p.EmailFrom))
	return sum[:8]
}

// bounded returns names of methods without those that no column takes: they are stored as words.
func bounded(values []string) (few []string) {
	left := maxAMRTotal
	for _, v := range values {
		isOdd := strings.ContainsFunc(v, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if v != "" && len(v) <= min(left, maxAMRBytes) && len(few) < maxAMR && !isOdd && !slices.Contains(few, v) {
			few, left = append(few, v), left-len(v)
		}
	}
	return few
}

// useHash is what used_states has of a state, or of what was held.
func useHash(kind, text string) []byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + text))
	return sum[:]
}
