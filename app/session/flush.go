package session

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"time"

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

// dirty is the list of uses to be written.
type dirty struct {
	mu   sync.Mutex
	uses []store.Use
	wake chan struct{}
}

func (d *dirty) add(u store.Use) {
	d.mu.Lock()
	d.uses = append(d.uses, u)
	d.mu.Unlock()
}

func (d *dirty) take() []store.Use {
	d.mu.Lock()
	defer d.mu.Unlock()
	uses := d.uses
	d.uses = nil
	return uses
}

// touch notes a use in memory, and at most once a minute for the database.
func (s *Sessions) touch(h secret.Hash, e *entry, now int64) {
	seen := e.seen.Load()
	if now <= seen {
		return
	}
	e.seen.CompareAndSwap(seen, now) // losing to another use of this instant is as good
	flushed := e.flushed.Load()
	if now-flushed >= flushEvery.Microseconds() && e.flushed.CompareAndSwap(flushed, now) {
		s.dirty.add(store.Use{Hash: h, At: micros(now)})
	}
}

// Flush writes the uses that wait. It never brings an ended session back: that
// row is gone. What can't be written now is kept for the next time.
func (s *Sessions) Flush(ctx context.Context) error {
	uses := s.dirty.take()
	for len(uses) > 0 {
		batch := uses[:min(flushBatch, len(uses))]
		err := s.door.Upkeep(ctx, func(tx *store.Tx) error { return tx.TouchSessions(ctx, batch) })
		if err != nil {
			for _, u := range uses {
				s.dirty.add(u)
			}
			return err
		}
		uses = uses[len(batch):]
	}
	return nil
}

// flushAsked writes down now when this node saw the session used, since
// another one is about to judge it.
func (s *Sessions) flushAsked(subject string) {
	h, ok := parseSubject(subject)
	if !ok {
		return
	}
	e := s.registry.remembered(h)
	if e == nil {
		return
	}
	seen := e.seen.Load() // also if it is about to be written: that may come too late
	ctx, cancel := context.WithTimeout(context.Background(), store.MaxLease)
	defer cancel()
	_ = s.door.Upkeep(ctx, func(tx *store.Tx) error { // else whoever asked judges by what is written
		return tx.TouchSessions(ctx, []store.Use{{Hash: h, At: micros(seen)}})
	})
}

// sweepMemory collects uses that are a minute old and not written, and lets go
// of sessions that are over.
func (s *Sessions) sweepMemory() {
	now := s.db.Now().UnixMicro()
	s.registry.each(func(h secret.Hash, e *entry) bool {
		seen, flushed := e.seen.Load(), e.flushed.Load()
		if seen > flushed && now-flushed >= flushEvery.Microseconds() && e.flushed.CompareAndSwap(flushed, seen) {
			s.dirty.add(store.Use{Hash: h, At: micros(seen)})
		}
		return now >= e.created+s.limits.Absolute.Microseconds() || now >= seen+s.limits.Idle.Microseconds()+flushLag.Microseconds()
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
		if seen := e.seen.Load(); seen > e.flushed.Swap(seen) {
			s.dirty.add(store.Use{Hash: h, At: micros(seen)})
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
		created, seen := s.overdue(tx)
		_, err := tx.DeleteOverdueSessions(ctx, created, seen)
		return err
	})
}

// overdue are the instants before which a session was created or last used that
// is certainly over.
func (s *Sessions) overdue(tx *store.Tx) (created, seen time.Time) {
	return tx.Now.Add(-s.limits.Absolute), tx.Now.Add(-s.limits.Idle - flushLag)
}

func parseSubject(subject string) (secret.Hash, bool) {
	raw, err := hex.DecodeString(subject)
	if err != nil || len(raw) != len(secret.Hash{}) {
		return secret.Hash{}, false
	}
	return secret.Hash(slices.Clone(raw)), true
}
