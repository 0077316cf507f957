package directory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// State returns what the database says of the person with the id, as the connection's directory knows it; nil: they are no
// User. withPlaces: also the places in groups of the tenant's directories, and what other directories say. Errors:
// unavailable.
func State(ctx context.Context, tx *access.Tx, c doorward.Connection, id string, withPlaces bool) (*doorward.DirectoryPerson, error) {
	read := tx.Reader
	e, err := find(ctx, read, asDirectory(c), id)
	if errors.Is(err, store.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &doorward.DirectoryPerson{
		UserID: e.Member.ID, Address: cmp.Or(e.Member.Email, e.Said.Address), Name: e.Member.Name, Role: e.Member.Role,
		SuspendedBy: e.Member.Suspensions(), Invitation: e.InvitationAt(tx.Now), Said: e.Said,
	}
	if !e.IsMember {
		if withPlaces {
			s.Places, err = read.PlacesHeldIn(ctx, c.TenantID, id)
		}
		return s, err
	}
	s.Since = e.Member.CreatedAt
	s.Floor, err = read.RoleFloor(ctx, c.TenantID, e.Member.ID)
	if err == nil && withPlaces {
		err = addPlaces(ctx, read, c, s)
	}
	return s, err
}

func addPlaces(ctx context.Context, read store.Reader, c doorward.Connection, s *doorward.DirectoryPerson) error {
	all, err := read.DirectoryAliasesOf(ctx, c.TenantID, s.UserID)
	if err != nil {
		return err
	}
	s.Others = slices.DeleteFunc(all, func(d doorward.DirectoryUser) bool { return d.ConnectionID == c.ID })
	s.Places, err = read.PlacesHeldIn(ctx, c.TenantID, s.UserID)
	return err
}

// asDirectory is what find needs of a caller.
func asDirectory(c doorward.Connection) doorward.Caller {
	return doorward.Caller{Principal: doorward.Principal{ConnectionID: c.ID, TenantID: c.TenantID}}
}

// state is State with what else an effect keeps.
func (w *work) state(id string) (*doorward.DirectoryPerson, error) {
	s, err := State(w.ctx, w.tx, w.con, id, w.places)
	if err != nil || s == nil || s.UserID == "" || w.isDueRole {
		return s, err
	}
	if isDue, err := w.tx.IsRoleDue(w.ctx, w.con.TenantID, s.UserID); err != nil || isDue {
		return s, err // a group gave it that no mapping means any more, or gives none yet
	}
	mapped, err := w.tx.MappedRolesOf(w.ctx, w.con.TenantID, s.UserID)
	s.Apart = !slices.Contains(slices.Concat(mapped, w.gave), s.Role)
	return s, err
}

// effect records the difference of two states of a person, unless there is none.
func (w *work) effect(id string, before, after *doorward.DirectoryPerson) error {
	if before == nil && after == nil {
		return nil
	}
	e := doorward.DirectoryEffect{Kind: w.kindOf(before, after), SubjectID: id}
	if before != nil {
		e.UserID, e.Address = before.UserID, before.Address
	}
	if after != nil {
		e.UserID, e.Address = cmp.Or(after.UserID, e.UserID), after.Address
	}
	e, err := withStates(e, before, after)
	if err == nil && e.Before != e.After {
		_, err = w.run.insert(e)
	}
	return err
}

func (w *work) kindOf(before, after *doorward.DirectoryPerson) doorward.DirectoryEffectKind {
	isOff := func(s *doorward.DirectoryPerson) bool {
		return slices.Contains(s.SuspendedBy, w.con.ID) || s.UserID == "" && !(s.Said.Active && s.IsInvited())
	}
	switch {
	case before == nil:
		return doorward.DirectoryMade
	case after == nil:
		return doorward.DirectoryRemoved
	case !isOff(before) && isOff(after):
		return doorward.DirectorySuspended
	case isOff(before) && !isOff(after):
		return doorward.DirectoryResumed
	}
	return doorward.DirectoryChanged
}

// groupEffect records a change of a group, and who has joined or left it.
func (w *work) groupEffect(kind doorward.DirectoryEffectKind, before, after *doorward.DirectoryGroupState, in, out []string) error {
	e, err := withStates(doorward.DirectoryEffect{Kind: kind, SubjectID: cmp.Or(after, before).ID}, before, after)
	if err == nil {
		e, err = w.run.insert(e)
	}
	if err == nil {
		err = w.tx.InsertDirectoryMoves(w.ctx, e, true, in)
	}
	if err == nil {
		err = w.tx.InsertDirectoryMoves(w.ctx, e, false, out)
	}
	return err
}

// recorder records the effects of one write in the run that it belongs to.
type recorder struct {
	ctx            context.Context
	tx             *access.Tx
	con            doorward.Connection
	run            *doorward.DirectoryRun // nil: there was no effect yet
	ended, alarmed bool                   // whether the write has ended somebody's access, and whether OWNERs are told of that
}

// withStates returns the effect with both states as JSON; nil: none.
func withStates[T any](e doorward.DirectoryEffect, before, after *T) (doorward.DirectoryEffect, error) {
	for _, side := range []struct {
		state *T
		into  *string
	}{{before, &e.Before}, {after, &e.After}} {
		if side.state == nil {
			continue
		}
		text, err := json.Marshal(side.state)
		if err != nil {
			return e, err
		}
		*side.into = string(text)
	}
	return e, nil
}

func (r *recorder) insert(e doorward.DirectoryEffect) (doorward.DirectoryEffect, error) {
	if r.run == nil {
		if err := r.open(); err != nil {
			return e, err
		}
	}
	r.run.Count(e)
	r.ended = r.ended || e.UserID != "" && (e.Kind == doorward.DirectorySuspended || e.Kind == doorward.DirectoryRemoved)
	e.ID, e.RunID, e.ConnectionID, e.TenantID = r.run.EffectID(), r.run.ID, r.con.ID, r.con.TenantID
	return e, r.tx.InsertDirectoryEffect(r.ctx, e)
}

// open finds the run that goes on, or begins one.
func (r *recorder) open() error {
	last, err := r.tx.LastDirectoryRun(r.ctx, r.con.ID)
	if err == nil && last.IsOpen(r.tx.Now) {
		r.run = &last
		return nil
	}
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	r.run = &doorward.DirectoryRun{ID: doorward.NewID(doorward.PrefixRun), ConnectionID: r.con.ID, TenantID: r.con.TenantID, From: r.tx.Now}
	return r.tx.InsertDirectoryRun(r.ctx, *r.run)
}

// close writes the numbers of the run.
func (r *recorder) close() error {
	if r.run == nil {
		return nil
	}
	r.run.Last = later(r.run.Last, r.tx.Now)
	if err := r.alarm(); err != nil {
		return err
	}
	return r.tx.UpdateDirectoryRun(r.ctx, *r.run)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
