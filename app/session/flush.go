package session

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

const (
	// flushEvery is how often at most the last use of a session is written.
	flushEvery = time.Minute
	// sweepEvery is how often uses that no later use has flushed are looked
	// for.
	sweepEvery = 30 * time.Second
	// flushLag is how far the database may be behind a node that lives, with
	// room for a slow flush.
	flushLag = flushEvery + sweepEvery + 30*time.Second
	// flushBatch is how many sessions are written in one transaction.
	flushBatch = 200
)

// flushWithin bounds one write: a connection that hangs must not keep the uses
// of a quarter of an hour, the patience of TCP, from being written.
const flushWithin = 5 * time.Second

// dirty holds the uses to be written. Each stays until it is, so that whatever
// isn't here, and isn't newer than its entry's flushed, the database knows.
type dirty struct {
	mu   sync.Mutex
	uses map[secret.Hash]int64 // Unix microseconds
}

func (d *dirty) add(h secret.Hash, at int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uses == nil {
		d.uses = map[secret.Hash]int64{}
	}
	d.uses[h] = max(d.uses[h], at)
}

// at is the use that waits, or 0.
func (d *dirty) at(h secret.Hash) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uses[h]
}

func (d *dirty) some(n int) []store.Use {
	d.mu.Lock()
	defer d.mu.Unlock()
	uses := make([]store.Use, 0, min(n, len(d.uses)))
	for h, at := range d.uses {
		if len(uses) == n {
			break
		}
		uses = append(uses, store.Use{Hash: h, At: micros(at)})
	}
	return uses
}

// written removes uses, but for those that have been followed by another.
func (d *dirty) written(uses []store.Use) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range uses {
		if d.uses[u.Hash] == u.At.UnixMicro() {
			delete(d.uses, u.Hash)
		}
	}
	if len(d.uses) == 0 {
		d.uses = nil // a map that was large once stays large
	}
}

// touch notes a use in memory, and at most once a minute for the database.
func (s *Sessions) touch(h secret.Hash, e *entry, now int64) {
	seen := e.seen.Load()
	if now <= seen {
		return
	}
	e.seen.CompareAndSwap(seen, now) // losing to another use of this instant is as good
	if now-e.flushed.Load() >= flushEvery.Microseconds() {
		s.toBeFlushed(h, e, now)
	}
}

// toBeFlushed hands a use over to Flush: there first, so that no moment exists
// at which it is in neither place.
func (s *Sessions) toBeFlushed(h secret.Hash, e *entry, at int64) {
	s.dirty.add(h, at)
	e.flushed.Store(at)
}

// lastUse is the last use of a session that this node knows of, 0 when it knows
// of none.
func (s *Sessions) lastUse(h secret.Hash) int64 {
	seen := int64(0)
	if e := s.registry.remembered(h); e != nil {
		seen = e.seen.Load()
	}
	return max(seen, s.dirty.at(h))
}

// Flush writes the uses that wait. It never brings an ended session back: that
// row is gone. What can't be written now is kept for the next time.
func (s *Sessions) Flush(ctx context.Context) error {
	for {
		uses := s.dirty.some(flushBatch)
		if len(uses) == 0 {
			return nil
		}
		if err := s.write(ctx, uses); err != nil {
			return err
		}
		s.dirty.written(uses)
	}
}

func (s *Sessions) write(ctx context.Context, uses []store.Use) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	return s.door.Upkeep(ctx, func(tx *store.Tx) error { return tx.TouchSessions(ctx, uses) })
}

// flushAsked writes down now when this node saw the session used, since
// another one is about to judge it. Whoever asked may have gone by now, but the
// use is there all the same.
func (s *Sessions) flushAsked(ctx context.Context, subject string) error {
	h, ok := parseSubject(subject)
	if !ok {
		return nil
	}
	e := s.registry.remembered(h)
	known := e == nil || e.seen.Load() <= e.flushed.Load() // before the list: see toBeFlushed
	if known && s.dirty.at(h) == 0 {
		return nil
	}
	return s.write(context.WithoutCancel(ctx), []store.Use{{Hash: h, At: micros(s.lastUse(h))}})
}

// sweepMemory collects uses that are a minute old and not written, and lets go
// of sessions that are over.
func (s *Sessions) sweepMemory() {
	now := s.db.Now().UnixMicro()
	s.registry.each(func(h secret.Hash, e *entry) bool {
		seen, flushed := e.seen.Load(), e.flushed.Load()
		if seen > flushed && now-flushed >= flushEvery.Microseconds() {
			s.toBeFlushed(h, e, seen)
		}
		g := e.grant.Value()
		return now >= e.since+g.absolute || now >= seen+g.idle+flushLag.Microseconds()
	})
}

// Run writes uses until ctx ends, then all that are left.
func (s *Sessions) Run(ctx context.Context) {
	second, sweep := time.NewTicker(time.Second), time.NewTicker(sweepEvery)
	defer second.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			s.flushAll(context.WithoutCancel(ctx))
			return
		case <-sweep.C:
			s.sweepMemory()
		case <-second.C:
		}
		_ = s.Flush(ctx) // kept, and tried again in a second
	}
}

// flushAll leaves the database knowing what this node knew.
func (s *Sessions) flushAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s.registry.each(func(h secret.Hash, e *entry) bool {
		if seen := e.seen.Load(); seen > e.flushed.Load() {
			s.toBeFlushed(h, e, seen)
		}
		return false
	})
	_ = s.Flush(ctx) // the process ends; at worst a session idles out a minute early
}

// Sweep deletes the rows of sessions that are over, those included that some
// node may have been about to touch. Nothing depends on it but the size of the
// table.
func (s *Sessions) Sweep(ctx context.Context) error {
	return s.door.Upkeep(ctx, func(tx *store.Tx) error {
		_, err := tx.DeleteOverdueSessions(ctx, Life(s.limits))
		return err
	})
}

// CutFuture shortens what a clock that was ahead has left, and returns how many
// sessions.
func (s *Sessions) CutFuture(ctx context.Context) (n int, err error) {
	err = s.door.Upkeep(ctx, func(tx *store.Tx) (err error) { n, err = tx.CutFuture(ctx); return err })
	return n, err
}

// Life is what tells whether a session in the database is certainly over, under
// the limits of the installation.
func Life(l doorward.SessionLimits) store.Life {
	return store.Life{SessionLimits: l, Lag: flushLag}
}

func parseSubject(subject string) (secret.Hash, bool) {
	raw, err := hex.DecodeString(subject)
	if err != nil || len(raw) != len(secret.Hash{}) {
		return secret.Hash{}, false
	}
	return secret.Hash(slices.Clone(raw)), true
}
