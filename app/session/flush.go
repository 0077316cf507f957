package session

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/registry"
	"github.com/doorward/doorward/store"
)

// flushTimeout bounds one write: a hanging connection would otherwise delay the
// writes for up to 15 minutes, TCP's own timeout.
const flushTimeout = 5 * time.Second

// Flush writes uses. It never restores an ended session: its row is gone. Uses that
// can't be written now are kept for the next flush.
func (s *Sessions) Flush(ctx context.Context) error {
	return s.registry.Flush(func(uses []store.Use) error { return s.write(ctx, uses) })
}

func (s *Sessions) write(ctx context.Context, uses []store.Use) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	var locked []store.Use
	err := s.writer.Upkeep(ctx, func(tx *store.Tx) (err error) { locked, err = tx.TouchSessions(ctx, uses); return err })
	for _, use := range locked {
		if err == nil { // alone it may wait: it has no other lock
			err = s.writer.Upkeep(ctx, func(tx *store.Tx) error { return tx.TouchSession(ctx, use) })
		}
	}
	return err
}

// flushRequested writes this node's last use of a session at once, since another node is about
// to decide whether the session is idle. It continues even if ctx ends.
func (s *Sessions) flushRequested(ctx context.Context, subject string) error {
	h, ok := registry.ParseSubject(subject)
	if !ok || !s.registry.HasUnwritten(h) {
		return nil
	}
	return s.write(context.WithoutCancel(ctx), []store.Use{{Hash: h, At: micros(s.registry.LastUse(h))}})
}

// Run writes uses until ctx ends, then all that remain.
func (s *Sessions) Run(ctx context.Context) {
	s.registry.Run(ctx, func() int64 { return s.db.Now().UnixMicro() }, s.write)
}

// sweepBatch is how many sessions one transaction deletes, so that nobody waits for it.
const sweepBatch = 500

// SweepEnded deletes the rows of sessions that have ended with all of their tenant's. It only bounds the size of
// the table, as SweepExpired does.
func (s *Sessions) SweepEnded(ctx context.Context) error {
	tenants, err := s.db.Read().TenantsToSweep(ctx)
	for _, id := range tenants {
		err = errors.Join(err, s.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.SweepEnded(ctx, id, limit) }))
	}
	return err
}

// SweepExpired deletes the rows of sessions that have certainly expired, even if a node has uses that it has not
// written yet. It reads the whole table.
func (s *Sessions) SweepExpired(ctx context.Context) error {
	life := Life(s.limits)
	for {
		over, err := s.db.Read().OverdueSessions(ctx, life, s.db.Now(), sweepBatch)
		if err != nil || len(over) == 0 {
			return err
		}
		deleted := int64(0)
		err = s.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			deleted, err = tx.DeleteOverdueSessions(ctx, life, over)
			return err
		})
		if err != nil || deleted == 0 || len(over) < sweepBatch {
			return err
		}
	}
}

// ClampFuture corrects times in the future, written while a clock was ahead, and returns how
// many sessions it changed.
func (s *Sessions) ClampFuture(ctx context.Context) (n int, err error) {
	err = s.writer.Upkeep(ctx, func(tx *store.Tx) (err error) { n, err = tx.ClampFuture(ctx); return err })
	return n, err
}

// Life returns the rule by which the store finds sessions that have certainly expired, under the
// limits of the installation.
func Life(l doorward.SessionLimits) store.SessionLifetime {
	return store.SessionLifetime{SessionLimits: l, Lag: registry.FlushLag}
}

// micros converts a time of the registry.
func micros(us int64) time.Time { return doorward.Instant(time.UnixMicro(us)) }
