package seal

import (
	"slices"
	"sync/atomic"
)

// Ring holds the keys that a process knows: one, and a second one while the master key
// is replaced. It is safe for use by several goroutines.
type Ring struct{ keys atomic.Pointer[[]Key] }

// NewRing returns a ring with the keys.
func NewRing(keys ...Key) *Ring {
	r := &Ring{}
	r.Set(keys...)
	return r
}

// Set replaces the keys of the ring.
func (r *Ring) Set(keys ...Key) {
	keys = slices.Clone(keys)
	r.keys.Store(&keys)
}

// Keys returns the keys, in the order in which they were set.
func (r *Ring) Keys() []Key { return slices.Clone(*r.keys.Load()) }

// Find returns the key with the id, and whether the ring has it.
func (r *Ring) Find(id ID) (Key, bool) {
	keys := *r.keys.Load()
	i := slices.IndexFunc(keys, func(k Key) bool { return k.id == id })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// Open returns what was sealed with any key of the ring. Errors: those of Key.Open.
func (r *Ring) Open(at Place, sealed []byte) ([]byte, error) {
	id, err := IDOf(sealed)
	if err != nil {
		return nil, err
	}
	key, ok := r.Find(id)
	if !ok {
		return nil, &UnknownKeyError{id}
	}
	return key.Open(at, sealed)
}
