package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Assertion is what a signed assertion states about a caller.
type Assertion struct {
	Subject   string    // usr_… or key_…
	TenantID  string    // tnt_…
	Role      Role      // in that tenant
	SessionID string    // ses_…; empty for an API key
	KeyID     string    // key_…; empty for a person
	AAL       int       // how strongly a person has signed in; 0 for a key
	AuthTime  time.Time // when a person has signed in; zero for a key
	ExpiresAt time.Time
}

// Verifier verifies the assertions of X-Auth-Assertion and of POST /api/v2/auth/token
// offline, by the keys that Doorward publishes. Make it with [Client.Verifier], once for
// a service; it is safe for use by several goroutines.
//
// A valid assertion was true when it was made, at most 30 s ago. It may outlive a logout
// or a suspension by that time. It doesn't say that an action is allowed: that is what
// the gateway's check, or [Client.Require], is for.
type Verifier struct {
	client   *Client
	audience string

	mu      sync.Mutex
	keys    map[string]*ecdsa.PublicKey
	readAt  time.Time
	triedAt time.Time // of the last attempt, failed or not
	reading *reading  // under way; nil if none
}

// reading is one attempt to read the keys, shared by all calls that wait for it.
type reading struct {
	done chan struct{}
	err  error // after done
}

// Verifier returns a verifier for assertions that are for this audience, one of
// --assertion-audience.
func (c *Client) Verifier(audience string) *Verifier { return &Verifier{client: c, audience: audience} }

const (
	keysLife  = 300 * time.Second // as their Cache-Control says
	keysPause = 5 * time.Second   // between two attempts, once keys have been read
)

// Verify returns what the assertion states. The error is an [*Error]:
// ErrUnauthenticated when it isn't valid here and now, whatever the reason, and
// ErrUnavailable when the keys can't be read.
func (v *Verifier) Verify(ctx context.Context, assertion string) (Assertion, error) {
	text, signature, _ := cutLast(assertion)
	header, body, _ := strings.Cut(text, ".")
	var h struct{ Alg, Typ, Kid string }
	if !decode(header, &h) || h.Alg != "ES256" || h.Typ != "doorward+jwt" {
		return Assertion{}, invalid("it is no assertion")
	}
	key, err := v.key(ctx, h.Kid)
	if err != nil {
		return Assertion{}, err
	}
	bits, err := strict.DecodeString(signature)
	sum := sha256.Sum256([]byte(text))
	if err != nil || len(bits) != 64 || !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(bits[:32]), new(big.Int).SetBytes(bits[32:])) {
		return Assertion{}, invalid("its signature is wrong")
	}
	var c struct {
		Iss, Aud, Sub, Tenant, Role, Sid, Key string
		AAL                                   int
		AuthTime, Exp                         int64
	}
	switch {
	case !decode(body, &c) || c.Iss != v.client.public || c.Sub == "":
		return Assertion{}, invalid("it is of another issuer")
	case c.Aud != v.audience:
		return Assertion{}, invalid("it is for another audience")
	case time.Now().Unix() >= c.Exp:
		return Assertion{}, invalid("it has expired")
	}
	a := Assertion{Subject: c.Sub, TenantID: c.Tenant, Role: Role(c.Role), SessionID: c.Sid, KeyID: c.Key, AAL: c.AAL, ExpiresAt: time.Unix(c.Exp, 0)}
	if c.AuthTime != 0 {
		a.AuthTime = time.Unix(c.AuthTime, 0)
	}
	return a, nil
}

// invalid returns the error for an assertion, without repeating it.
func invalid(why string) *Error {
	return &Error{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: "The assertion isn't valid: " + why + ".", err: errInvalid}
}

var errInvalid = errors.New("client: the assertion isn't valid")

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func decode(part string, to any) bool {
	text, err := strict.DecodeString(part)
	return err == nil && json.Unmarshal(text, to) == nil
}

// key returns the key with this id. Keys that are too old are read again; if that fails
// they still verify, since Doorward publishes a key for a day after its last use.
func (v *Verifier) key(ctx context.Context, id string) (*ecdsa.PublicKey, error) {
	key, r := v.lookUp(ctx, id)
	if r == nil {
		return keyOrInvalid(key)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, unavailable("", 0, ctx.Err())
	}
	v.mu.Lock()
	key = v.keys[id]
	v.mu.Unlock()
	if key == nil && r.err != nil {
		return nil, r.err
	}
	return keyOrInvalid(key)
}

func keyOrInvalid(key *ecdsa.PublicKey) (*ecdsa.PublicKey, error) {
	if key == nil {
		return nil, invalid("its key isn't published")
	}
	return key, nil
}

// lookUp returns the key, if it is known, and the reading to wait for first, if there is
// one. It starts one while no keys have ever been read, and at most every five seconds if
// the keys are too old or the key isn't known.
func (v *Verifier) lookUp(ctx context.Context, id string) (*ecdsa.PublicKey, *reading) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key, age := v.keys[id], time.Since(v.readAt)
	if key != nil && age < keysLife {
		return key, nil
	}
	if v.reading == nil && (v.keys == nil || age >= keysPause && time.Since(v.triedAt) >= keysPause) {
		v.triedAt = time.Now()
		v.reading = &reading{done: make(chan struct{})}
		go v.read(context.WithoutCancel(ctx), v.reading) // others wait for it, too
	}
	return key, v.reading
}

// read reads the keys, within the client's timeout.
func (v *Verifier) read(ctx context.Context, r *reading) {
	keys, err := v.client.keys(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.err = err; err == nil {
		v.keys, v.readAt = keys, time.Now()
	}
	v.reading = nil
	close(r.done)
}

// keys reads the keys that Doorward publishes. It skips those that aren't for ES256.
func (c *Client) keys(ctx context.Context) (map[string]*ecdsa.PublicKey, error) {
	a, err := c.send(ctx, call{method: http.MethodGet, path: "/.well-known/jwks.json", header: http.Header{"X-Request-Id": {requestID(nil)}}})
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []struct{ Kty, Crv, X, Y, Kid string }
	}
	if json.Unmarshal(a.body, &set) != nil || set.Keys == nil {
		return nil, a.notDoorward("has no keys")
	}
	keys := map[string]*ecdsa.PublicKey{}
	for _, k := range set.Keys {
		x, errX := strict.DecodeString(k.X)
		y, errY := strict.DecodeString(k.Y)
		if k.Kty != "EC" || k.Crv != "P-256" || errX != nil || errY != nil {
			continue
		}
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
		if err == nil {
			keys[k.Kid] = key
		}
	}
	return keys, nil
}
