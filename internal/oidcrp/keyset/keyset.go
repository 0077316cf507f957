// Package keyset keeps the keys by which providers sign, by the addresses at which they publish them.
//
//	cache := keyset.New(read, time.Now)
//	keys, err := cache.At(ctx, address, false)
//	text, err := keys.Verify(signed, kid, alg)
//
// Keys are used for at most a day, and read again at most once a minute for each address. Several sign-ins wait for one
// reading. The memory is bounded, whatever addresses there are and whatever is published there.
package keyset

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// keysLife is how long a provider's keys are used without reading them again.
	keysLife = 24 * time.Hour
	// keysPause is the time between two readings because of a token that no key has signed.
	keysPause = time.Minute
	// keysWait bounds a reading, which goes on when the sign-in that began it is given up, since others
	// may wait for it.
	keysWait = 10 * time.Second
	// keysOfSet and setsMax bound the memory: of a set's keys the first count, and of the sets those that
	// were used last.
	keysOfSet = 50
	setsMax   = 1000
	kidMax    = 200 // bytes of the name of a key
	// Sizes of RSA: RFC 7518, section 3.3, and what can be verified in less than a millisecond.
	rsaMin, rsaMax = 2048, 8192
)

// algorithms are those of ID tokens that Doorward takes: none of a shared secret, never none.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.ES256, jose.PS256, jose.EdDSA, jose.RS384, jose.RS512, jose.ES384, jose.ES512, jose.PS384, jose.PS512,
}

// Algorithms returns their names, the preferred first.
func Algorithms() []string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = string(a)
	}
	return names
}

// Keys are those of a provider that verify signatures.
type Keys []jose.JSONWebKey

// Cache has the keys of providers by their address. Make it with New. It is safe for use by several goroutines.
type Cache struct {
	fetch func(ctx context.Context, address string) ([]byte, error)
	now   func() time.Time
	mu    sync.Mutex
	sets  map[string]*keySet
}

// New returns an empty cache. fetch reads what an address answers; now tells the time.
func New(fetch func(ctx context.Context, address string) ([]byte, error), now func() time.Time) *Cache {
	return &Cache{fetch: fetch, now: now, sets: map[string]*keySet{}}
}

// keySet are the keys at one address. Its fields are guarded by Cache.mu.
type keySet struct {
	keys        Keys // nil: none read yet
	read, tried time.Time
	used        time.Time
	failed      error    // of the last reading
	reading     *reading // under way; nil: none
}

// reading is a request for keys for which several sign-ins may wait.
type reading struct {
	done chan struct{} // closed at the end
	keys Keys
	err  error
}

// At returns the keys at the address. With again they are read anew, unless that was done within
// keysPause. Errors: those of
// fetch, ErrNotJSON, ErrNone, that of the context.
func (c *Cache) At(ctx context.Context, address string, again bool) (Keys, error) {
	keys, under, err := c.cached(ctx, address, again)
	if under == nil {
		return keys, err
	}
	select {
	case <-under.done:
		return under.keys, under.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cached returns the keys in memory, or a reading to wait for.
func (c *Cache) cached(ctx context.Context, address string, again bool) (Keys, *reading, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	set := c.set(address)
	set.used = now
	if set.keys != nil && isWithin(now, set.read, keysLife) {
		switch {
		case !again:
			return set.keys, nil, nil
		case set.isPaused(now):
			return set.keys, nil, set.failed
		}
	}
	if set.reading == nil {
		set.reading, set.tried = &reading{done: make(chan struct{})}, now
		go c.read(context.WithoutCancel(ctx), address, set, set.reading)
	}
	return nil, set.reading, nil
}

// IsPaused reports whether At would not read the keys at the address anew, because that was done a short while ago.
func (c *Cache) IsPaused(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	set, now := c.sets[address], c.now()
	return set != nil && set.keys != nil && isWithin(now, set.read, keysLife) && set.isPaused(now)
}

func (s *keySet) isPaused(now time.Time) bool {
	return s.reading == nil && isWithin(now, s.tried, keysPause)
}

// isWithin reports whether less time than d has passed since the instant. One that is to come was written before
// the clock was set back, and counts as long ago.
func isWithin(now, since time.Time, d time.Duration) bool {
	age := now.Sub(since)
	return age >= 0 && age < d
}

// set returns the set of the address; a new one takes the place of the one that was used longest ago.
func (c *Cache) set(address string) *keySet {
	if set := c.sets[address]; set != nil {
		return set
	}
	if len(c.sets) >= setsMax {
		oldest := ""
		for name, set := range c.sets {
			if oldest == "" || set.used.Before(c.sets[oldest].used) {
				oldest = name
			}
		}
		delete(c.sets, oldest)
	}
	set := &keySet{}
	c.sets[address] = set
	return set
}

// read reads the keys, and ends the reading. Keys that were read before stay if that fails.
func (c *Cache) read(ctx context.Context, address string, set *keySet, under *reading) {
	ctx, cancel := context.WithTimeout(ctx, keysWait)
	defer cancel()
	body, err := c.fetch(ctx, address)
	if err == nil {
		under.keys, err = Parse(body)
	}
	under.err = err
	c.mu.Lock()
	defer c.mu.Unlock()
	if set.reading, set.failed = nil, err; err == nil {
		set.keys, set.read = under.keys, c.now()
	}
	close(under.done)
}

// Parse returns the keys of a JSON Web Key Set that verify signatures. A member that can't be read,
// of another kind or for encryption is passed over: it mustn't keep the others from use.
// Errors: ErrNotJSON, ErrNone.
func Parse(body []byte) (Keys, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, ErrNotJSON
	}
	keys := Keys{}
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if len(keys) < keysOfSet && key.UnmarshalJSON(text) == nil && isUsable(key) {
			// Only these are needed: certificates would take memory.
			keys = append(keys, jose.JSONWebKey{Key: key.Key, KeyID: key.KeyID, Algorithm: key.Algorithm})
		}
	}
	if len(keys) == 0 {
		return nil, ErrNone
	}
	return keys, nil
}

// The errors of what a provider publishes, and of tokens that its keys haven't signed.
var (
	ErrNotJSON   = errors.New("the provider answered something else than JSON")
	ErrNone      = errors.New("the provider published no key that verifies signatures")
	ErrUnknown   = errors.New("no published key has the name that the token gives")
	ErrNotSigned = errors.New("no published key has signed the token")
)

// Verify returns what the token says, if one of the keys has signed it by the algorithm. Without a kid each of the keys
// may have. Errors: ErrUnknown, ErrNotSigned.
func (k Keys) Verify(signed *jose.JSONWebSignature, kid, alg string) ([]byte, error) {
	err := ErrUnknown
	for _, key := range k {
		if kid != "" && key.KeyID != kid {
			continue
		}
		err = ErrNotSigned
		if !fits(key, alg) {
			continue
		}
		if text, err := signed.Verify(key.Key); err == nil {
			return text, nil
		}
	}
	return nil, err
}

// isUsable reports whether the key is public, strong enough, and for signatures.
func isUsable(k jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" || !k.Valid() || len(k.KeyID) > kidMax {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= rsaMin && key.N.BitLen() <= rsaMax && key.E > 2
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// fits reports whether a key may have signed by the algorithm.
func fits(k jose.JSONWebKey, alg string) bool {
	if k.Algorithm != "" && k.Algorithm != alg {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == curveAlgorithms[key.Params().BitSize]
	}
	return alg == string(jose.EdDSA)
}

// curveAlgorithms has the algorithm of each curve, by its bits (RFC 7518, section 3.4).
var curveAlgorithms = map[int]string{256: string(jose.ES256), 384: string(jose.ES384), 521: string(jose.ES512)}
