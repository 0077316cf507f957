package directoryrun

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/store"
)

// Shown is how many people are named of an answer that only counts the others: those whom an undo has left as they are,
// those who joined or left a group.
const Shown = 100

// Run is a run as it is shown.
type Run struct {
	doorward.DirectoryRun
	IsOpen bool   // it may still grow
	Left   []Left // whom the undo has left as they are, the first of them
}

// Left is somebody, or a group, that the undo has left as they are.
type Left struct {
	SubjectID, UserID string // UserID: the account; empty: none
	Why               doorward.Undone
}

// IsGroup reports whether it is a group.
func (l Left) IsGroup() bool { return doorward.DirectoryEffect{SubjectID: l.SubjectID}.IsGroup() }

// List returns the runs of the connection's directory, usually the latest first. Errors: not_found; validation_failed for an
// unknown order.
func (r *Runs) List(ctx context.Context, by doorward.Caller, connectionID string, w doorward.Window) (page doorward.Page[Run], err error) {
	read, now := r.db.Read(), r.db.Now()
	if _, err := provider.Find(ctx, read, by, connectionID); err != nil {
		return page, err
	}
	found, err := read.DirectoryRunPage(ctx, connectionID, w)
	page.Prev, page.Next, page.Total = found.Prev, found.Next, found.Total
	for _, one := range found.Items {
		var run Run
		if err == nil {
			run, err = shown(ctx, read, one, now)
		}
		page.Items = append(page.Items, run)
	}
	return page, err
}

// Alarmed returns the runs of the directories of the caller's tenant that have ended the access of many, so that OWNERs were
// told, while they can be undone and nobody has: the newest first, at most limit.
func (r *Runs) Alarmed(ctx context.Context, by doorward.Caller, limit int) ([]doorward.DirectoryRun, error) {
	return r.db.Read().AlarmedRuns(ctx, by.TenantID, r.db.Now().Add(-doorward.UndoWithin), limit)
}

func shown(ctx context.Context, read store.Reader, r doorward.DirectoryRun, now time.Time) (Run, error) {
	run := Run{DirectoryRun: r, IsOpen: r.IsOpen(now)}
	if r.Left == 0 {
		return run, nil
	}
	left, err := read.LeftByUndo(ctx, r.ID, Shown)
	for _, e := range left {
		run.Left = append(run.Left, Left{e.SubjectID, e.UserID, e.Undone})
	}
	return run, err
}

// Get returns a run. Errors: not_found.
func (r *Runs) Get(ctx context.Context, by doorward.Caller, connectionID, id string) (Run, error) {
	found, err := find(ctx, r.db.Read(), by, connectionID, id)
	if err != nil {
		return Run{}, err
	}
	return shown(ctx, r.db.Read(), found, r.db.Now())
}

func find(ctx context.Context, read store.Reader, by doorward.Caller, connectionID, id string) (doorward.DirectoryRun, error) {
	if _, err := provider.Find(ctx, read, by, connectionID); err != nil {
		return doorward.DirectoryRun{}, err
	}
	found, err := read.DirectoryRun(ctx, connectionID, id)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return found, err
}

// Effect is what one write has done to a person or a group. Of what isn't there, or is gone, the state is nil.
type Effect struct {
	doorward.DirectoryEffect
	PersonBefore, PersonAfter *doorward.DirectoryPerson
	GroupBefore, GroupAfter   *doorward.DirectoryGroupState
	Joined, Gone              []string // ids of Users who have joined or left the group, the first of them
	JoinedTotal, GoneTotal    int
}

// Effects returns the effects of a run, usually the oldest first. Errors: not_found; validation_failed for an unknown order.
func (r *Runs) Effects(ctx context.Context, by doorward.Caller, connectionID, id string, w doorward.Window) (page doorward.Page[Effect], err error) {
	read := r.db.Read()
	if _, err := find(ctx, read, by, connectionID, id); err != nil {
		return page, err
	}
	found, err := read.DirectoryEffectPage(ctx, id, w)
	page.Prev, page.Next, page.Total = found.Prev, found.Next, found.Total
	for _, one := range found.Items {
		var e Effect
		if err == nil {
			e, err = readEffect(ctx, read, one)
		}
		page.Items = append(page.Items, e)
	}
	return page, err
}

func readEffect(ctx context.Context, read store.Reader, found doorward.DirectoryEffect) (e Effect, err error) {
	e.DirectoryEffect = found
	if !found.IsGroup() {
		e.PersonBefore, e.PersonAfter, err = states[doorward.DirectoryPerson](found)
		return e, err
	}
	if e.GroupBefore, e.GroupAfter, err = states[doorward.DirectoryGroupState](found); err != nil {
		return e, err
	}
	if e.Joined, e.JoinedTotal, err = moved(ctx, read, found.ID, true); err == nil {
		e.Gone, e.GoneTotal, err = moved(ctx, read, found.ID, false)
	}
	return e, err
}

func moved(ctx context.Context, read store.Reader, effectID string, joined bool) (ids []string, total int, err error) {
	some, total, err := read.DirectoryMoves(ctx, effectID, joined, Shown)
	for _, m := range some {
		ids = append(ids, m.MemberID)
	}
	return ids, total, err
}

// states returns what an effect keeps of before and after it.
func states[T any](e doorward.DirectoryEffect) (before, after *T, err error) {
	if before, err = parsed[T](e.Before); err == nil {
		after, err = parsed[T](e.After)
	}
	return before, after, err
}

func parsed[T any](text string) (*T, error) {
	if text == "" {
		return nil, nil
	}
	var state T
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return nil, doorward.Unavailable(err)
	}
	return &state, nil
}
