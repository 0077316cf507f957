package app

import (
	"context"
	"sync"
	"time"

	"github.com/doorward/doorward"
)

// Join registers this process as a node, before Run, and cuts what a clock that was
// ahead has left. The error is a *lease.DiffersError. A database that can't be asked
// is none: the node starts, and registers when it can.
func (a *App) Join(ctx context.Context) error {
	err := a.Lease.Join(ctx)
	if moved := a.db.Clock().Moved(); err == nil && moved != 0 {
		a.log.Warn("the time is moved by --clock-offset, for tests: what ends by time ends by that", "moved", moved.String())
	}
	if err == nil && !a.db.Clock().Wrong() {
		err = a.cutFuture(ctx)
	}
	if doorward.HasCode(err, doorward.CodeUnavailable) {
		a.log.Warn("the node starts without the database", "err", err)
		return nil
	}
	return err
}

// Differing counts the nodes that have a setting otherwise, by its name.
func (a *App) Differing(name string) (n float64) {
	for _, d := range a.Lease.Differences() {
		if d.Setting.Name == name {
			n++
		}
	}
	return n
}

// futureEvery is how often what lies in the future is looked for when nothing says
// that there is any: nodes of the version before go by clocks of their own.
const futureEvery = time.Hour

// futures says when what lay in the future was cut.
type futures struct {
	mu     sync.Mutex
	cut    time.Time // zero: not yet
	mended int64     // see store.Clock
}

// cutFuture reads whole tables, so it works only at the start, after the clock was
// mended, and every now and then.
func (a *App) cutFuture(ctx context.Context) error {
	f, mended := &a.futures, a.db.Clock().Mended()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.cut.IsZero() && mended == f.mended && time.Since(f.cut) < futureEvery {
		return nil
	}
	n, err := a.Sessions.CutFuture(ctx)
	if err != nil {
		return err
	}
	f.cut, f.mended = time.Now(), mended
	if n > 0 {
		a.log.Warn("sessions from a clock that was ahead are cut: they end as if they had been opened now", "sessions", n)
	}
	return nil
}
