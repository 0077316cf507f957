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
	// flushEvery is the minimum interval between writes of a session's last use.
	flushEvery = time.Minute
	// sweepEvery is how often memory is searched for uses that no later use has
	// flushed.
	sweepEvery = 30 * time.Second
	// flushLag is how far the database may be behind a running node, with a margin for
	// a slow flush.
	flushLag = flushEvery + sweepEvery + 30*time.Second
	// flushBatch is how many sessions are written in one transaction.
	flushBatch = 200
)

// flushWithin bounds one write: a hanging connection would otherwise delay the
// writes for up to 15 minutes, TCP's own timeout.
const flushWithin = 5 * time.Second

// dirty holds the uses to be written. Each stays until it is written, so a use
// that is in neither dirty nor newer than its entry's flushed is in the database.
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

// at returns the unwritten use, or 0.
func (d *dirty) at(h secret.Hash) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uses[h]
}

func (d *dirty) batch(n int) []store.Use {
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

// written removes uses, except those that a later one has replaced.
func (d *dirty) written(uses []store.Use) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range uses {
		if d.uses[u.Hash] == u.At.UnixMicro() {
			delete(d.uses, u.Hash)
		}
	}
	if len(d.uses) == 0 {
		d.uses = nil // a Go map never shrinks
	}
}

// touch records a use in memory, and passes it to Flush at most once a minute.
func (s *Sessions) touch(h secret.Hash, e *entry, now int64) {
	seen := e.seen.Load()
	if now <= seen {
		return
	}
	e.seen.CompareAndSwap(seen, now) // if this fails, another use of the same instant was stored
	if now-e.flushed.Load() >= flushEvery.Microseconds() {
		s.queueFlush(h, e, now)
	}
}

// queueFlush passes a use to Flush. It is added to dirty first, so that the use is
// always in at least one of the two places.
func (s *Sessions) queueFlush(h secret.Hash, e *entry, at int64) {
	s.dirty.add(h, at)
	e.flushed.Store(at)
}

// lastUse is the last use of the session that this node knows of, or 0.
func (s *Sessions) lastUse(h secret.Hash) int64 {
	seen := int64(0)
	if e := s.registry.remembered(h); e != nil {
		seen = e.seen.Load()
	}
	return max(seen, s.dirty.at(h))
}

// Flush writes the uses in dirty. It never restores an ended session: its row is
// gone. Uses that can't be written now are kept for the next flush.
func (s *Sessions) Flush(ctx context.Context) error {
	for {
		uses := s.dirty.batch(flushBatch)
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
	return s.writer.Upkeep(ctx, func(tx *store.Tx) error { return tx.TouchSessions(ctx, uses) })
}

// flushRequested writes at once this node's last use of a session, since another
// node is about to decide whether it is idle. It goes on when the request that
// caused it has ended.
func (s *Sessions) flushRequested(ctx context.Context, subject string) error {
	h, ok := parseSubject(subject)
	if !ok {
		return nil
	}
	e := s.registry.remembered(h)
	known := e == nil || e.seen.Load() <= e.flushed.Load() // read before dirty: see queueFlush
	if known && s.dirty.at(h) == 0 {
		return nil
	}
	return s.write(context.WithoutCancel(ctx), []store.Use{{Hash: h, At: micros(s.lastUse(h))}})
}

// sweepMemory queues uses that have been unwritten for a minute, and removes
// sessions that have expired.
func (s *Sessions) sweepMemory() {
	now := s.db.Now().UnixMicro()
	s.registry.each(func(h secret.Hash, e *entry) bool {
		seen, flushed := e.seen.Load(), e.flushed.Load()
		if seen > flushed && now-flushed >= flushEvery.Microseconds() {
			s.queueFlush(h, e, seen)
		}
		g := e.grant.Value()
		return now >= e.since+g.absolute || now >= seen+g.idle+flushLag.Microseconds()
	})
}

// Run writes uses until ctx ends, then all that remain.
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
		_ = s.Flush(ctx) // on an error the uses are kept and retried in a second
	}
}

// flushAll writes everything this node knows that the database doesn't.
func (s *Sessions) flushAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s.registry.each(func(h secret.Hash, e *entry) bool {
		if seen := e.seen.Load(); seen > e.flushed.Load() {
			s.queueFlush(h, e, seen)
		}
		return false
	})
	_ = s.Flush(ctx) // the process ends; at worst a session idles out a minute early
}

// Sweep deletes the rows of sessions that have certainly expired, a node's
// unwritten uses considered. It only bounds the size of the table.
func (s *Sessions) Sweep(ctx context.Context) error {
	return s.writer.Upkeep(ctx, func(tx *store.Tx) error {
		_, err := tx.DeleteOverdueSessions(ctx, Life(s.limits))
		return err
	})
}

// ClampFuture corrects times in the future that a clock which was ahead has written,
// and returns how many sessions it changed.
func (s *Sessions) ClampFuture(ctx context.Context) (n int, err error) {
	err = s.writer.Upkeep(ctx, func(tx *store.Tx) (err error) { n, err = tx.ClampFuture(ctx); return err })
	return n, err
}

// Life decides whether a session in the database has certainly expired, under the
// limits of the installation.
func Life(l doorward.SessionLimits) store.SessionLifetime {
	return store.SessionLifetime{SessionLimits: l, Lag: flushLag}
}

func parseSubject(subject string) (secret.Hash, bool) {
	raw, err := hex.DecodeString(subject)
	if err != nil || len(raw) != len(secret.Hash{}) {
		return secret.Hash{}, false
	}
	return secret.Hash(slices.Clone(raw)), true
}
