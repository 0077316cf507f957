package assertion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/jwt"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

const (
	// keyLife is how long a key signs.
	keyLife = 30 * 24 * time.Hour
	// publishedAfter is how long a key is published after the next one has begun to sign.
	publishedAfter = 24 * time.Hour
	// KeySetLife is how long a verifier may cache the published keys. So a new key is published
	// for this time before it signs.
	KeySetLife = 300 * time.Second
)

// keySet has the keys, at least one, in the order in which they sign: those that were replaced within
// the last day, the key that signs now, and the next one. Within KeySetLife before the next one
// signs, there is a further one.
type keySet struct {
	keys      []signer
	published []jwt.Public
}

// signer is a key that signs from startsAt until the next key does.
type signer struct {
	jwt.Key
	startsAt time.Time
}

// at returns the key that signs at an instant: the last one that has started, or the first one if
// none has, as after a clock was set back.
func (s *keySet) at(now time.Time) jwt.Key {
	for _, k := range slices.Backward(s.keys) {
		if !k.startsAt.After(now) {
			return k.Key
		}
	}
	return s.keys[0].Key
}

// Published returns the public keys that verify tokens. Errors: unavailable, master_key_missing.
func (a *Assertions) Published(ctx context.Context) ([]jwt.Public, error) {
	if !a.Enabled() {
		return nil, nil
	}
	keys, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	return keys.published, nil
}

// Prepare makes the keys that are missing and reads them, so that no check has to.
// Errors: master_key_missing, unavailable.
func (a *Assertions) Prepare(ctx context.Context) error {
	if !a.Enabled() {
		return nil
	}
	if err := a.Sweep(ctx); err != nil {
		return err
	}
	_, err := a.current(ctx)
	return err
}

// current returns the keys from memory while the lease is valid, or else from the database.
func (a *Assertions) current(ctx context.Context) (*keySet, error) {
	if a.lease.Valid() {
		if keys := a.keys.Load(); keys != nil {
			return keys, nil
		}
	}
	return a.load(ctx)
}

// loadTries is how often load reads the keys if they change during the read.
const loadTries = 3

// load reads the keys from the database and puts them into memory.
func (a *Assertions) load(ctx context.Context) (*keySet, error) {
	for range loadTries {
		a.mu.Lock()
		before := a.changes
		a.mu.Unlock()
		rows, err := a.db.Read().SigningKeys(ctx)
		if err == nil && len(rows) == 0 {
			if err = a.Sweep(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		keys, err := a.open(ctx, rows)
		if err != nil {
			return nil, err
		}
		if cached := a.cacheKeys(keys, before); cached != nil {
			return cached, nil
		}
	}
	return nil, doorward.Unavailable(errors.New("assertion: the keys change too often"))
}

// cacheKeys puts keys into memory, unless another load was quicker, and returns the keys in memory.
// All callers must get the same pointer: renew compares it with a.keys, and clears the cache of
// tokens if they differ. It returns nil if the keys have changed since they were read.
func (a *Assertions) cacheKeys(keys *keySet, before int64) *keySet {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changes != before {
		return nil
	}
	if cached := a.keys.Load(); cached != nil && a.lease.Valid() {
		return cached
	}
	a.keys.Store(keys)
	return keys
}

// Forget clears the memory; the lease calls it when changes may have been missed.
func (a *Assertions) Forget() {
	if !a.Enabled() {
		return
	}
	a.mu.Lock()
	a.changes++
	a.keys.Store(nil)
	a.mu.Unlock()
	a.cache.clear()
}

// Apply forgets the keys when they have changed; the next token then reads them from the
// database.
func (a *Assertions) Apply(_ context.Context, changes []store.Change) error {
	if slices.ContainsFunc(changes, func(c store.Change) bool { return c.Kind == store.ChangeSigning || c.Kind == store.ChangeAll }) {
		a.Forget()
	}
	return nil
}

// placeOf returns where a sealed private key is stored.
func placeOf(id string) seal.Place {
	return seal.Place{Table: "signing_keys", ID: id, Column: "private_sealed"}
}

// open opens the sealed keys.
func (a *Assertions) open(ctx context.Context, rows []store.SigningKey) (*keySet, error) {
	set := &keySet{}
	for _, row := range rows {
		plain, err := a.master.Open(ctx, placeOf(row.ID), row.Sealed)
		if err != nil {
			return nil, err
		}
		key, err := jwt.ParseKey(plain)
		if err != nil {
			return nil, doorward.Unavailable(fmt.Errorf("signing key %s: %w", row.ID, err))
		}
		set.keys = append(set.keys, signer{key, row.StartsAt})
		set.published = append(set.published, key.Public())
	}
	return set, nil
}

// plan has the changes that are needed so that one key signs, the next key is published, and a
// replaced key is published for a day only.
type plan struct {
	add    []time.Time // when new keys begin to sign
	remove []string    // ids of keys
}

// planOf returns what has to change at an instant, given the keys in the order in which they sign.
func planOf(rows []store.SigningKey, now time.Time) (p plan) {
	if len(rows) == 0 {
		return plan{add: []time.Time{now, now.Add(keyLife)}}
	}
	last := rows[len(rows)-1]
	if !last.StartsAt.After(now.Add(KeySetLife)) { // so that there is a next key when this one begins
		starts := last.StartsAt.Add(keyLife)
		if published := now.Add(KeySetLife); starts.Before(published) {
			starts = published
		}
		p.add = []time.Time{starts}
	}
	for i := range len(rows) - 1 {
		if replaced := rows[i+1].StartsAt; !replaced.Add(publishedAfter).After(now) {
			p.remove = append(p.remove, rows[i].ID)
		}
	}
	return p
}

func (p plan) isEmpty() bool { return len(p.add)+len(p.remove) == 0 }

// Sweep makes the first two keys, later each next key KeySetLife before the last one begins to
// sign, and removes keys that no longer have to be published. Errors: unavailable,
// master_key_missing.
func (a *Assertions) Sweep(ctx context.Context) error {
	if !a.Enabled() {
		return nil
	}
	rows, err := a.db.Read().SigningKeys(ctx)
	if err != nil || planOf(rows, a.db.Now()).isEmpty() {
		return err
	}
	return a.writer.Upkeep(ctx, func(tx *store.Tx) error { return a.applyPlan(ctx, tx) })
}

// applyPlan makes a plan and applies it. It locks the row of the master key first, so that nodes
// apply plans one after the other: the second one finds nothing left to do.
func (a *Assertions) applyPlan(ctx context.Context, tx *store.Tx) error {
	if err := a.master.Hold(ctx, tx); err != nil {
		return err
	}
	rows, err := tx.SigningKeys(ctx)
	if err != nil {
		return err
	}
	p := planOf(rows, tx.Now)
	if p.isEmpty() {
		return nil
	}
	for _, starts := range p.add {
		if err := a.add(ctx, tx, starts); err != nil {
			return err
		}
	}
	for _, id := range p.remove {
		if err := tx.DeleteSigningKey(ctx, id); err != nil {
			return err
		}
	}
	tx.AnnounceSigningKeys()
	return nil
}

// add inserts a new key that begins to sign at starts.
func (a *Assertions) add(ctx context.Context, tx *store.Tx, starts time.Time) error {
	key := jwt.NewKey()
	id := key.Public().ID
	sealed, err := a.master.Seal(ctx, tx, placeOf(id), key.Marshal())
	if err != nil {
		return err
	}
	return tx.InsertSigningKey(ctx, store.SigningKey{ID: id, Public: key.MarshalPublic(), Sealed: sealed, StartsAt: starts, CreatedAt: tx.Now})
}

// forgetKeys deletes keys that nothing can open any more. Nodes with assertions enabled make others when they
// have the new master key.
func forgetKeys(ctx context.Context, tx *access.Tx, ids []string) error {
	for _, id := range ids {
		if err := tx.DeleteSigningKey(ctx, id); err != nil {
			return err
		}
	}
	tx.Changed("signingKey", strings.Join(ids, " "), "")
	tx.AnnounceSigningKeys()
	return nil
}

// Rotated says which key signs next, and from when on.
type Rotated struct {
	KeyID    string
	StartsAt time.Time
}

// Rotate lets the next key sign after KeySetLife, when every verifier has read the key, or at once.
// If the next key starts earlier by itself, Rotate leaves that time. When it returns, every node has
// applied the change. Errors: ErrNoNextKey, master_key_missing, unavailable.
func (a *Assertions) Rotate(ctx context.Context, by doorward.Caller, atOnce bool) (r Rotated, err error) {
	_, err = a.writer.Do(ctx, by, doorward.SigningKeyRotate, doorward.Object{Type: "installation"}, func(tx *access.Tx) error {
		if err := a.master.Hold(ctx, tx.Tx); err != nil {
			return err
		}
		rows, err := tx.SigningKeys(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(rows, func(k store.SigningKey) bool { return k.StartsAt.After(tx.Now) })
		if i < 0 {
			return ErrNoNextKey
		}
		starts := tx.Now.Add(KeySetLife)
		if atOnce {
			starts = startOnAllNodes(rows[:i], tx.Now)
		}
		isEarlier, err := tx.StartSigningKey(ctx, rows[i].ID, starts)
		if err != nil {
			return err
		}
		// starts is in the past if the key signs at once.
		r = Rotated{rows[i].ID, slices.MaxFunc([]time.Time{starts, tx.Now}, time.Time.Compare)}
		tx.Changed("signingKey", "", r.KeyID)
		if !isEarlier {
			r.StartsAt = rows[i].StartsAt
			tx.SkipEvent()
		}
		return a.applyPlan(ctx, tx.Tx)
	})
	return r, err
}

// clockMargin is more than the clocks of two nodes can differ: a node with a larger difference
// refuses to answer.
const clockMargin = time.Minute

// startOnAllNodes returns the start of a key that must sign at once on every node, although the
// clocks of nodes differ a little. It is in the past by clockMargin, but after the start of the keys
// before it.
func startOnAllNodes(before []store.SigningKey, now time.Time) time.Time {
	starts := now.Add(-clockMargin)
	if n := len(before); n > 0 && !before[n-1].StartsAt.Before(starts) {
		starts = before[n-1].StartsAt.Add(time.Microsecond)
	}
	return starts
}

// ErrNoNextKey means that no node with assertions enabled was running when the next key was due, so
// it hasn't been made yet.
var ErrNoNextKey = errors.New("there is no next signing key. A server with --assertion-audience makes it within a minute of its start")
