package access

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// pauseCache caches whether the operator has paused changes. The lease keeps it current: once the
// command that pauses returns, every node refuses changes, except those that are allowed during a
// pause.
type pauseCache struct {
	db    *store.DB
	lease *lease.Lease

	mu         sync.Mutex
	generation int // increased when known is invalidated, so that an earlier read isn't cached
	known      atomic.Pointer[store.Maintenance]
}

// apply is called by the lease. It reads the new state at once, because pages show only what is in
// memory.
func (p *pauseCache) apply(ctx context.Context, changes []store.Change) error {
	if slices.ContainsFunc(changes, func(c store.Change) bool { return c.Kind == store.ChangeMaintenance || c.Kind == store.ChangeAll }) {
		p.forget()
		_, _ = p.read(ctx) // on an error the next call of state reads it
	}
	return nil
}

func (p *pauseCache) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generation++
	p.known.Store(nil)
}

func (p *pauseCache) currentGeneration() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.generation
}

// state returns the cached state while the lease is valid, else that of the database.
func (p *pauseCache) state(ctx context.Context) (store.Maintenance, error) {
	if known := p.known.Load(); known != nil && p.lease.Valid() {
		return *known, nil
	}
	return p.read(ctx)
}

func (p *pauseCache) read(ctx context.Context) (store.Maintenance, error) {
	before := p.currentGeneration()
	m, err := p.db.Read().Maintenance(ctx)
	if err != nil {
		return m, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.generation == before {
		p.known.Store(&m)
	}
	return m, nil
}

// pauseRetry is the Retry-After while changes are paused. The end of the pause is unknown.
const pauseRetry = time.Minute

// Maintenance returns whether the operator has paused changes. Errors: unavailable.
func (w *Writer) Maintenance(ctx context.Context) (store.Maintenance, error) {
	return w.pauses.state(ctx)
}

// KnownMaintenance is Maintenance from memory alone, for pages: it does no I/O. The result may be
// outdated while the lease is lost, and isn't paused while nothing is known.
func (w *Writer) KnownMaintenance() (m store.Maintenance) {
	if known := w.pauses.known.Load(); known != nil {
		m = *known
	}
	return m
}

// RefuseIfPaused refuses an action if changes are paused and it is not allowed during a pause. Do
// makes the same check; a feature that writes a caller's action with Upkeep must call
// RefuseIfPaused itself. Errors: maintenance, unavailable.
func (w *Writer) RefuseIfPaused(ctx context.Context, by doorward.Caller, action doorward.Action) error {
	return w.refuseIfPaused(ctx, by, []Operation{{Action: action}})
}

func (w *Writer) refuseIfPaused(ctx context.Context, by doorward.Caller, operations []Operation) error {
	if areAllowedWhilePaused(by, operations) {
		return nil
	}
	return errorIfPaused(w.pauses.state(ctx))
}

// refuseIfPausedSince checks again in the transaction, before the commit: an operation that began
// before the pause must not commit long after the command that pauses has returned.
func (w *Writer) refuseIfPausedSince(ctx context.Context, tx *store.Tx, by doorward.Caller, operations []Operation) error {
	if areAllowedWhilePaused(by, operations) {
		return nil
	}
	return errorIfPaused(tx.Maintenance(ctx))
}

// errorIfPaused returns the error maintenance if changes are paused, or err.
func errorIfPaused(m store.Maintenance, err error) error {
	if err != nil || !m.On {
		return err
	}
	e := doorward.Fail(doorward.CodeMaintenance, "")
	e.RetryAfter, e.Reason = pauseRetry, m.Reason
	return e
}

// areAllowedWhilePaused reports whether the operations are allowed during a pause: those of
// Doorward itself, which carry out earlier decisions; those of the operator at the terminal
// (without an id), for whose work changes are paused; and actions with AllowedWhilePaused.
func areAllowedWhilePaused(by doorward.Caller, operations []Operation) bool {
	if by.Kind == doorward.System || by.Kind == doorward.Operator && by.ID == "" {
		return true
	}
	return !slices.ContainsFunc(operations, func(op Operation) bool {
		verb, _ := doorward.Lookup(op.Action)
		return !verb.AllowedWhilePaused
	})
}

// CheckReason cleans the reason of a pause, and returns validation_failed unless it has the form of a
// name: pages show it in one line.
func CheckReason(reason *string) error {
	if faults := doorward.CheckName("/reason", reason); len(faults) > 0 {
		return doorward.Invalid("/reason", faults[0].Code, strings.Replace(faults[0].Message, "A name", "A reason", 1))
	}
	return nil
}
