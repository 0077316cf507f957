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

// pauses knows from memory whether the operator has paused changes. It follows changes
// under the lease: once the command that pauses them returns, no node begins another one.
type pauses struct {
	db    *store.DB
	lease *lease.Lease

	mu      sync.Mutex
	changes int // seen so far; what was read before one must not be kept
	known   atomic.Pointer[store.Maintenance]
}

// apply is for lease.Follow. It reads the new state at once, because pages show only what is
// in memory.
func (p *pauses) apply(ctx context.Context, changes []store.Change) error {
	if slices.ContainsFunc(changes, func(c store.Change) bool { return c.Kind == store.ChangeMaintenance || c.Kind == store.ChangeAll }) {
		p.forget()
		_, _ = p.read(ctx) // on an error the next change reads it
	}
	return nil
}

func (p *pauses) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	p.known.Store(nil)
}

func (p *pauses) changesSeen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

// state asks the database unless memory is valid.
func (p *pauses) state(ctx context.Context) (store.Maintenance, error) {
	if known := p.known.Load(); known != nil && p.lease.Valid() {
		return *known, nil
	}
	return p.read(ctx)
}

func (p *pauses) read(ctx context.Context) (store.Maintenance, error) {
	before := p.changesSeen()
	now, err := p.db.Read().Maintenance(ctx)
	if err != nil {
		return now, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes == before {
		p.known.Store(&now)
	}
	return now, nil
}

// pauseRetry is the Retry-After while changes are paused. The end of the pause is unknown.
const pauseRetry = time.Minute

// Maintenance says whether the operator has paused changes. Errors: unavailable.
func (w *Writer) Maintenance(ctx context.Context) (store.Maintenance, error) {
	return w.pauses.state(ctx)
}

// KnownMaintenance is Maintenance from memory alone, for pages. It does no I/O, and returns
// that changes are not paused where memory doesn't know.
func (w *Writer) KnownMaintenance() (m store.Maintenance) {
	if known := w.pauses.known.Load(); known != nil {
		m = *known
	}
	return m
}

// RefuseIfPaused refuses an action if changes are paused and it is not exempt. Do calls it;
// a feature that writes a caller's action with Upkeep must call it itself. Errors:
// maintenance, unavailable.
func (w *Writer) RefuseIfPaused(ctx context.Context, by doorward.Caller, action doorward.Action) error {
	return w.refuseIfPaused(ctx, by, []Operation{{Action: action}})
}

func (w *Writer) refuseIfPaused(ctx context.Context, by doorward.Caller, operations []Operation) error {
	if areExempt(by, operations) {
		return nil
	}
	return refusalOf(w.pauses.state(ctx))
}

// refuseIfPausedSince checks again before the commit, in the transaction: no operation that
// began before the pause may commit long after the command that pauses has returned.
func (w *Writer) refuseIfPausedSince(ctx context.Context, tx *store.Tx, by doorward.Caller, operations []Operation) error {
	if areExempt(by, operations) {
		return nil
	}
	return refusalOf(tx.Maintenance(ctx))
}

func refusalOf(m store.Maintenance, err error) error {
	if err != nil || !m.On {
		return err
	}
	e := doorward.Fail(doorward.CodeMaintenance, "")
	e.RetryAfter, e.Reason = pauseRetry, m.Reason
	return e
}

// areExempt reports whether a pause lets the operations through. An operator at the
// server's terminal may have paused the others for this work, and Doorward's own work only
// carries out what was decided before.
func areExempt(by doorward.Caller, operations []Operation) bool {
	if by.Kind == doorward.System || by.Kind == doorward.Operator && by.ID == "" {
		return true
	}
	return !slices.ContainsFunc(operations, func(op Operation) bool {
		verb, _ := doorward.Lookup(op.Action)
		return !verb.WhilePaused
	})
}

// CheckReason returns validation_failed unless the reason can be shown. It has the limits
// of a name: pages show it in one line.
func CheckReason(reason string) error {
	if faults := doorward.CheckName("/reason", reason); len(faults) > 0 {
		return doorward.Invalid("/reason", faults[0].Code, strings.Replace(faults[0].Message, "A name", "A reason", 1))
	}
	return nil
}
