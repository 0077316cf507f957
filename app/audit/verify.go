package audit

import (
	"bytes"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
)

// Mark is a position in a chain. With a stored one anybody can show later whether anything before it was
// changed.
type Mark struct {
	TenantID string // empty: the installation
	Seq      int64
	Hash     []byte
}

// FaultKind says how a chain was changed.
type FaultKind string

// The kinds of faults.
const (
	Edited    FaultKind = "edited"    // the event was changed, or not written by Doorward
	Reordered FaultKind = "reordered" // the event is unchanged but had another number
	Deleted   FaultKind = "deleted"   // events are missing from this number on
	Inserted  FaultKind = "inserted"  // the event has another event's number, or is before the start or beyond the end
	CutOff    FaultKind = "cut off"   // the last events are missing, or the end of the chain was edited
	Rewritten FaultKind = "rewritten" // the chain doesn't contain a mark that was taken of it
)

// Fault is a change of a chain that Verify has found.
type Fault struct {
	Kind    FaultKind
	Seq     int64  // the first number that is affected
	EventID string // empty where there is no event
}

// Chains returns the ids of the tenants that have a trail. The first one is empty, for the
// installation.
func (t *Trail) Chains(ctx context.Context) ([]string, error) { return t.db.Read().ChainIDs(ctx) }

// The names of steps, for Begin.
const (
	Verifying = "verifying the audit trail"
	Exporting = "writing events"
)

// Begin begins a step of the context's progress that goes through the events of a scope: calls of Verify, or of
// Export from the oldest event on. Errors: unavailable.
func (t *Trail) Begin(ctx context.Context, step string, scope Scope) error {
	events, err := t.db.Read().CountChained(ctx, scope.All, scope.TenantID)
	progress.Step(ctx, step, events, nil)
	return err
}

// VerifyAll returns the number of faults in all chains. Errors: unavailable.
func (t *Trail) VerifyAll(ctx context.Context) (faults int, err error) {
	chains, err := t.Chains(ctx)
	if err != nil {
		return 0, err
	}
	if err := t.Begin(ctx, Verifying, Scope{All: true}); err != nil {
		return 0, err
	}
	for _, id := range chains {
		_, found, err := t.Verify(ctx, id)
		if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) { // not_found: it has since been destroyed
			return faults, err
		}
		faults += len(found)
	}
	return faults, nil
}

// Verify checks the chain of a tenant, or of the installation if the id is empty. It returns the end
// of the chain and at most maxFaults faults. It includes events that are added while it runs.
// Errors: not_found, unavailable.
func (t *Trail) Verify(ctx context.Context, tenantID string) (Mark, []Fault, error) {
	read := t.db.Read()
	w := walk{tenantID: tenantID}
	for last := int64(-1); ; {
		end, err := read.Chain(ctx, tenantID)
		if errors.Is(err, store.ErrNone) {
			return t.verifyWithoutRow(ctx, tenantID)
		}
		if err != nil {
			return Mark{}, nil, err
		}
		moved := end.Last != last
		last = end.Last
		if err := w.walkRest(ctx, read, end); err != nil {
			return Mark{}, nil, err
		}
		// An event beyond end may have been added since end was read. If the end hasn't moved,
		// the event doesn't belong to the chain.
		if w.seq <= end.Last || !moved || w.hasMaxFaults() {
			return Mark{tenantID, end.Last, end.Head}, w.result(end), nil
		}
	}
}

func noTrail() error {
	return doorward.Fail(doorward.CodeNotFound, "There is no such trail. The list of tenants shows their ids.")
}

// verifyWithoutRow is Verify for a trail whose chain has no row.
func (t *Trail) verifyWithoutRow(ctx context.Context, tenantID string) (Mark, []Fault, error) {
	read := t.db.Read()
	links, err := read.Links(ctx, tenantID, doorward.Position{}, 1)
	if err != nil {
		return Mark{}, nil, err
	}
	_, err = read.Chain(ctx, tenantID)
	if err == nil { // its first event was added since
		return t.Verify(ctx, tenantID)
	}
	if !errors.Is(err, store.ErrNone) {
		return Mark{}, nil, err
	}
	if len(links) == 0 {
		return Mark{}, nil, noTrail()
	}
	return Mark{}, []Fault{{CutOff, links[0].Seq, links[0].ID}}, nil
}

// ContainsMark reports whether the chain still contains the mark. If it does and Verify finds no
// fault, nothing up to the mark was changed. ContainsMark is also true for events that were deleted
// because of their age, and for a destroyed tenant. If old events of the installation's trail were
// deleted, it can't tell a destroyed tenant from a deleted chain, and is true for both.
func (t *Trail) ContainsMark(ctx context.Context, m Mark) (bool, error) {
	read := t.db.Read()
	chain, err := read.Chain(ctx, m.TenantID)
	if errors.Is(err, store.ErrNone) {
		return t.isDestroyed(ctx, m.TenantID)
	}
	if err != nil {
		return false, err
	}
	switch start, hash := chain.Start(); {
	case m.Seq == start:
		return bytes.Equal(m.Hash, hash), nil
	case m.Seq < chain.Anchor: // the event was deleted because of its age
		return true, nil
	}
	links, err := read.Links(ctx, m.TenantID, doorward.Position{At: m.Seq}, 1)
	return len(links) == 1 && links[0].Seq == m.Seq && bytes.Equal(links[0].Hash, m.Hash), err
}

// isDestroyed reports whether the destruction of the tenant is recorded, or may have been recorded in
// an event that was deleted because of its age.
func (t *Trail) isDestroyed(ctx context.Context, tenantID string) (bool, error) {
	if tenantID == "" {
		return false, nil
	}
	own, err := t.db.Read().Chain(ctx, "")
	switch {
	case errors.Is(err, store.ErrNone):
		return false, nil
	case err != nil || own.Anchor > 0: // old events were deleted
		return err == nil, err
	}
	f := store.EventFilter{Action: doorward.TenantDestroy, Target: tenantID}
	page, err := t.db.Read().EventPage(ctx, "", f, doorward.Window{Limit: 1})
	return len(page.Items) == 1 && page.Items[0].Outcome == doorward.Done, err
}
