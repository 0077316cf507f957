package registry

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

const (
	// flushEvery is the minimum interval between writes of a credential's last use.
	flushEvery = time.Minute
	// sweepEvery is how often memory is searched for uses that are still unwritten, since
	// no later use has caused a write.
	sweepEvery = 30 * time.Second
	// FlushLag is how far the database may be behind a running node, with a margin for
	// a slow flush.
	FlushLag = flushEvery + sweepEvery + 30*time.Second
	// flushBatch is how many credentials are written in one transaction.
	flushBatch = 200
	// lastFlushTimeout bounds the last flush, at shutdown.
	lastFlushTimeout = 5 * time.Second
)

// uses holds the uses to be written, each until it is written. So the last use of a credential
// is in the database, unless it is in uses or is newer than its entry's flushed.
type uses struct {
	mu    sync.Mutex
	times map[secret.Hash]int64 // of the last uses, in Unix microseconds
}

func (u *uses) add(h secret.Hash, at int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.times == nil {
		u.times = map[secret.Hash]int64{}
	}
	u.times[h] = max(u.times[h], at)
}

// unwritten returns the time of the unwritten use, or 0.
func (u *uses) unwritten(h secret.Hash) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.times[h]
}

// batch returns up to n uses, in an order that is the same on all nodes: two that write
// the same rows at the same time would otherwise wait for each other.
func (u *uses) batch(n int) []store.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]store.Use, 0, min(n, len(u.times)))
	for h, at := range u.times {
		if len(all) == n {
			break
		}
		all = append(all, store.Use{Hash: h, At: micros(at)})
	}
	slices.SortFunc(all, func(a, b store.Use) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return all
}

// removeWritten removes uses that were written, except those that a later one has replaced.
func (u *uses) removeWritten(all []store.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, use := range all {
		if u.times[use.Hash] == use.At.UnixMicro() {
			delete(u.times, use.Hash)
		}
	}
	if len(u.times) == 0 {
		u.times = nil // a Go map never shrinks
	}
}

// Use records a use in memory, and passes it to Flush at most once a minute.
func (r *Registry) Use(h secret.Hash, e *Entry, now int64) {
	seen := e.seen.Load()
	if now <= seen {
		return
	}
	e.seen.CompareAndSwap(seen, now) // if this fails, another use of the same instant was stored
	if now-e.flushed.Load() >= flushEvery.Microseconds() {
		r.queue(h, e, now)
	}
}

// UseUnknown is Use for a credential that has no valid entry.
func (r *Registry) UseUnknown(h secret.Hash, now int64) { r.uses.add(h, now) }

// queue passes a use to Flush. It adds the use to uses before it marks the entry as flushed, so
// that HasUnwritten always finds it in one of the two.
func (r *Registry) queue(h secret.Hash, e *Entry, at int64) {
	r.uses.add(h, at)
	e.flushed.Store(at)
}

// LastUse returns the time of the last use that this node knows of, in Unix microseconds, or 0.
func (r *Registry) LastUse(h secret.Hash) int64 {
	seen := int64(0)
	if e := r.Known(h); e != nil {
		seen = e.seen.Load()
	}
	return max(seen, r.uses.unwritten(h))
}

// HasUnwritten reports whether this node knows a use that isn't in the database.
func (r *Registry) HasUnwritten(h secret.Hash) bool {
	e := r.Known(h)
	inEntry := e != nil && e.seen.Load() > e.flushed.Load() // read before uses: see queue
	return inEntry || r.uses.unwritten(h) != 0
}

// Flush writes uses in batches. If a write fails, it returns the error and keeps the rest for
// the next flush.
func (r *Registry) Flush(write func([]store.Use) error) error {
	for {
		all := r.uses.batch(flushBatch)
		if len(all) == 0 {
			return nil
		}
		if err := write(all); err != nil {
			return err
		}
		r.uses.removeWritten(all)
	}
}

// Run writes uses until ctx ends, then all that remain. now is in Unix microseconds.
func (r *Registry) Run(ctx context.Context, now func() int64, write func(context.Context, []store.Use) error) {
	flush := func(ctx context.Context) {
		_ = r.Flush(func(batch []store.Use) error { return write(ctx, batch) }) // on an error the uses are kept and retried in a second
	}
	second, sweep := time.NewTicker(time.Second), time.NewTicker(sweepEvery)
	defer second.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			r.queueAll()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
			defer cancel()
			flush(last) // if it fails, at worst a session idles out a minute early
			return
		case <-sweep.C:
			r.sweep(now())
		case <-second.C:
		}
		flush(ctx)
	}
}

// sweep queues uses that have been unwritten for a minute, and removes entries that
// have expired at now.
func (r *Registry) sweep(now int64) {
	r.each(func(h secret.Hash, e *Entry) bool {
		seen, flushed := e.seen.Load(), e.flushed.Load()
		if seen > flushed && now-flushed >= flushEvery.Microseconds() {
			r.queue(h, e, seen)
		}
		s := e.shared.Value()
		return now >= e.start+s.absolute || now >= seen+s.idle+FlushLag.Microseconds()
	})
}

// queueAll passes all unwritten uses to Flush.
func (r *Registry) queueAll() {
	r.each(func(h secret.Hash, e *Entry) bool {
		if seen := e.seen.Load(); seen > e.flushed.Load() {
			r.queue(h, e, seen)
		}
		return false
	})
}
