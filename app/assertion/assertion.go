// Package assertion signs who is calling, for services that verify it offline: a JSON Web Token
// for one of the audiences that the operator has configured.
//
//	token, err := assertions.TokenFor(ctx, &principal, audience)
//
// A token is valid for 30 s, for verifiers whose clock is up to 5 s behind, too. For each session or key
// and audience, TokenFor signs a token and returns it from memory, without allocation, for 10 s. If the role, the tenant or the time of the
// last proof changes, it signs a new one at once.
//
// The keys that sign are rotated every 30 days (keys.go). A service may accept a token
// for up to 30 s after a revocation; Doorward itself never accepts one as a credential.
package assertion

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

const (
	// lifetime is how long a token is valid.
	lifetime = 30 * time.Second
	// backdate is how far iat and nbf lie back: many libraries refuse a token that is from the future
	// by their own clock, which may be a little behind.
	backdate = 5 * time.Second
	// reuse is how long TokenFor returns the same token.
	reuse = 10 * time.Second
)

// Type is the typ of a token's header.
const Type = "doorward+jwt"

// Assertions is the feature. Make it with New. It is safe for use by several goroutines.
type Assertions struct {
	writer    *access.Writer
	db        *store.DB
	lease     *lease.Lease
	master    *masterkey.Keys
	issuer    string
	audiences []string
	cache     *cache
	signed    atomic.Int64

	mu      sync.Mutex // is locked while keys is replaced
	keys    atomic.Pointer[keySet]
	changes int64 // incremented when keys is outdated
}

// New returns the feature. issuer is the base URL. Without audiences nothing is signed. inMemory is
// the number of sessions in memory. The lease must deliver changes to Apply and Forget. While
// the lease isn't valid, nothing is answered from memory.
func New(writer *access.Writer, db *store.DB, l *lease.Lease, master *masterkey.Keys, issuer string, audiences []string, inMemory int) *Assertions {
	a := &Assertions{writer: writer, db: db, lease: l, master: master, issuer: issuer, audiences: audiences}
	if a.Enabled() {
		a.cache = newCache(inMemory)
	}
	master.OnLoss("signing_keys", forgetKeys)
	return a
}

// CheckAudience returns nil if the text can name an audience: an absolute URL without
// query, fragment and user.
func CheckAudience(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("an audience is a URL like https://messages.example.com, without user, query and fragment")
	}
	return nil
}

// Enabled reports whether there are audiences.
func (a *Assertions) Enabled() bool { return len(a.audiences) > 0 }

// Audiences returns the configured audiences, the default first.
func (a *Assertions) Audiences() []string { return a.audiences }

// Signed returns how many tokens this node has signed, for metrics.
func (a *Assertions) Signed() int64 { return a.signed.Load() }

// Token is a signed JSON Web Token.
type Token struct {
	Text      string
	ExpiresAt time.Time
}

// claims are the claims of a token (RFC 7519).
type claims struct {
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
	Subject   string `json:"sub"`
	Tenant    string `json:"tenant"`
	Role      string `json:"role"`
	Session   string `json:"sid,omitempty"`
	Key       string `json:"key,omitempty"`
	AAL       int    `json:"aal,omitempty"`
	AuthTime  int64  `json:"authTime,omitempty"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	ID        string `json:"jti"`
}

// TokenFor returns the token of a principal for an audience, given by its index in Audiences. For a token
// in memory it doesn't allocate. Errors: unavailable, master_key_missing.
func (a *Assertions) TokenFor(ctx context.Context, p *doorward.Principal, audience int) (Token, error) {
	credential := cmp.Or(p.SessionID, p.ID)
	if token, ok := a.remembered(p, credential, audience); ok {
		return token, nil
	}
	return a.renew(ctx, p, credential, audience)
}

// remembered returns the last token from memory unless it is too old. Like a check of a session it
// tests the lease before it reads the memory, which may be outdated without a lease.
func (a *Assertions) remembered(p *doorward.Principal, credential string, audience int) (Token, bool) {
	if !a.lease.Valid() {
		return Token{}, false
	}
	m := a.cache.get(credential, audience)
	if m == nil || !m.isCurrent(p, a.db.Now().UnixMicro()) {
		return Token{}, false
	}
	return m.Token, true
}

// Find returns the index of an audience in Audiences.
func (a *Assertions) Find(name string) (index int, found bool) {
	index = slices.Index(a.audiences, name)
	return index, index >= 0
}

// renew signs a token, unless another goroutine has just done so for the same credential.
func (a *Assertions) renew(ctx context.Context, p *doorward.Principal, credential string, audience int) (Token, error) {
	// Read before the lock: a database that doesn't answer must not hold it.
	keys, err := a.current(ctx)
	if err != nil {
		return Token{}, err
	}
	unlock := a.cache.lock(credential)
	defer unlock()
	if token, ok := a.remembered(p, credential, audience); ok {
		return token, nil
	}
	now := a.db.Now()
	token, err := a.sign(keys, p, audience, now)
	if err != nil {
		return Token{}, err
	}
	a.cache.put(&cachedToken{
		Token: token, credential: credential, audience: audience, tenant: p.TenantID, role: p.Role, authAt: p.AuthAt.Unix(),
		reuseUntil: now.Add(reuse).UnixMicro(),
	})
	if a.keys.Load() != keys { // Forget may have run before put
		a.cache.clear()
	}
	return token, nil
}

func (a *Assertions) sign(keys *keySet, p *doorward.Principal, audience int, now time.Time) (Token, error) {
	begins, expires := now.Add(-backdate).Unix(), now.Truncate(time.Second).Add(lifetime)
	c := claims{
		Issuer: a.issuer, Audience: a.audiences[audience], Subject: p.ID, Tenant: p.TenantID, Role: string(p.Role),
		IssuedAt: begins, NotBefore: begins, Expires: expires.Unix(), ID: doorward.NewID("jti_"),
	}
	if p.SessionID != "" {
		c.Session, c.AAL, c.AuthTime = p.SessionID, p.AAL, p.AuthAt.Unix()
	} else {
		c.Key = p.ID
	}
	text, err := keys.at(now).Sign(Type, c)
	if err != nil {
		return Token{}, err
	}
	a.signed.Add(1)
	return Token{text, expires}, nil
}
