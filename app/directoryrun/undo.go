package directoryrun

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/store"
)

// peopleAtOnce is how many people or groups one transaction of an undo changes, so that others wait for it only briefly.
const peopleAtOnce = 100

// Undo begins the undo of a run, in which nothing is recorded any more. Errors: not_found, already_undone, undo_over,
// step_up_required, forbidden.
func (r *Runs) Undo(ctx context.Context, by doorward.Caller, connectionID, id string) (run Run, err error) {
	con, err := provider.Find(ctx, r.db.Read(), by, connectionID)
	if err != nil {
		return run, err
	}
	_, err = r.writer.Do(ctx, by, doorward.DirectoryUndo, provider.Object(con), func(tx *access.Tx) error {
		found, err := find(ctx, tx.Reader, by, connectionID, id)
		if err == nil {
			err = mayUndo(found, tx)
		}
		if err != nil {
			return err
		}
		asked, err := tx.AskDirectoryUndo(ctx, id, by.ID)
		if err == nil && !asked {
			err = doorward.Fail(doorward.CodeAlreadyUndone, "")
		}
		tx.Changed(doorward.FieldRun, "", id)
		tx.Changed(doorward.FieldSuspended, "", strconv.Itoa(found.Suspended))
		tx.Changed(doorward.FieldRemoved, "", strconv.Itoa(found.Removed))
		return err
	})
	if err != nil {
		return run, err
	}
	select {
	case r.asked <- struct{}{}:
	default: // it will look for all
	}
	return r.Get(ctx, by, connectionID, id)
}

func mayUndo(run doorward.DirectoryRun, tx *access.Tx) error {
	switch {
	case run.Undo != "":
		return doorward.Fail(doorward.CodeAlreadyUndone, "")
	case tx.Now.Sub(run.Last) > doorward.UndoWithin:
		return doorward.Fail(doorward.CodeUndoOver, "")
	}
	return nil
}

// Run goes on with undos that are asked for on this node, until ctx ends. Those of nodes that have died follow by Sweep.
func (r *Runs) Run(ctx context.Context, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asked:
			if err := r.Sweep(ctx); err != nil && ctx.Err() == nil {
				report(err)
			}
		}
	}
}

// Sweep goes on with the undos of all runs until they are done. Several nodes may at the same time. Errors: unavailable.
func (r *Runs) Sweep(ctx context.Context) error {
	runs, err := r.db.Read().RunningDirectoryUndos(ctx)
	errs := []error{err}
	for _, run := range runs {
		errs = append(errs, r.goOn(ctx, run))
	}
	return errors.Join(errs...)
}

// goOn undoes all of a run: groups that were deleted, then places in groups, then people, whose roles depend on these.
func (r *Runs) goOn(ctx context.Context, run doorward.DirectoryRun) error {
	for _, step := range []func(*undoing) (int, error){(*undoing).groups, (*undoing).places, (*undoing).people} {
		for n := peopleAtOnce; n > 0; {
			var err error
			if n, err = r.batch(ctx, run, step); err != nil {
				return err
			}
		}
	}
	return r.end(ctx, run)
}

// batch does one step in a transaction, and returns how many people or groups it has come to. If one of them makes it fail,
// the others aren't kept from it: they are done one by one, and that one is left as it is.
func (r *Runs) batch(ctx context.Context, run doorward.DirectoryRun, step func(*undoing) (int, error)) (int, error) {
	n, err := r.inTransaction(ctx, run, peopleAtOnce, "", step)
	for code := codeOf(err); code != ""; code = codeOf(err) {
		if n, err = r.inTransaction(ctx, run, 1, "", step); codeOf(err) == "" {
			return n, err
		}
		n, err = r.inTransaction(ctx, run, 1, doorward.Undone(codeOf(err)), step)
	}
	return n, err
}

// codeOf returns the code of a refusal; empty for success and for faults, after which the undo goes on later.
func codeOf(err error) doorward.Code {
	var refusal *doorward.Error
	if !errors.As(err, &refusal) || refusal.Kind() == doorward.KindUnavailable || refusal.Kind() == doorward.KindInternal {
		return ""
	}
	return refusal.Code
}

// transaction runs fn, maybe more than once, in a transaction of the run's undo under the lock on the tenant. Without the
// connection, with which the run has gone, it doesn't.
func (r *Runs) transaction(ctx context.Context, run doorward.DirectoryRun, fn func(*undoing) error) error {
	on := doorward.Object{Type: "connection", ID: run.ConnectionID, TenantID: run.TenantID, ConnectionID: run.ConnectionID}
	_, err := r.writer.Do(ctx, access.System, doorward.DirectoryUndo, on, func(tx *access.Tx) error {
		tx.SkipEvent()
		con, err := tx.Connection(ctx, run.ConnectionID)
		if errors.Is(err, store.ErrNone) {
			return nil
		}
		if err != nil {
			return err
		}
		u, err := r.undoing(ctx, tx, run, con)
		if err != nil {
			return err
		}
		return fn(u)
	})
	return err
}

// inTransaction does a step for at most limit people or groups; with leave it leaves them as they are.
func (r *Runs) inTransaction(ctx context.Context, run doorward.DirectoryRun, limit int, leave doorward.Undone, step func(*undoing) (int, error)) (n int, err error) {
	var done, left int
	err = r.transaction(ctx, run, func(u *undoing) (err error) {
		n, done, left = 0, 0, 0
		u.limit, u.leave = limit, cmp.Or(leave, u.leave)
		if n, err = step(u); err != nil {
			return err
		}
		done, left = u.done, u.left
		return u.tx.CountUndone(ctx, run.ID, done, left)
	})
	if err == nil {
		r.undone.Add(int64(done))
		r.left.Add(int64(left))
	}
	return n, err
}

// end marks the undo as done, once what it has ended is accepted on no node: a batch whose answer was lost may have been the
// last one.
func (r *Runs) end(ctx context.Context, run doorward.DirectoryRun) error {
	if _, err := r.writer.ConfirmGone(ctx, func(*store.Tx) (bool, error) { return true, nil }); err != nil {
		return err
	}
	return r.writer.Upkeep(ctx, func(tx *store.Tx) error {
		_, err := tx.EndDirectoryUndo(ctx, run.ID)
		return err
	})
}

// undoing is one transaction of an undo.
type undoing struct {
	ctx    context.Context
	tx     *access.Tx
	r      *Runs
	run    doorward.DirectoryRun
	con    doorward.Connection
	tenant doorward.Tenant
	rules  *doorward.Rules
	by     doorward.Caller // who has asked for it
	limit  int
	leave  doorward.Undone // unless empty, why everybody is left as they are

	done, left int
}

func (r *Runs) undoing(ctx context.Context, tx *access.Tx, run doorward.DirectoryRun, con doorward.Connection) (*undoing, error) {
	u := &undoing{ctx: ctx, tx: tx, r: r, run: run, con: con}
	var err error
	if u.tenant, err = tx.Tenant(ctx, run.TenantID); err != nil {
		return nil, err
	}
	switch u.tenant.Status {
	case doorward.TenantActive:
	case doorward.TenantClosing:
		u.leave = doorward.UndoneClosing
	default:
		u.leave = doorward.UndoneFrozen
	}
	if u.rules, err = tx.Rules(ctx, run.TenantID); err != nil {
		return nil, err
	}
	u.by = doorward.Caller{Principal: doorward.Principal{Kind: doorward.ByUser, ID: run.UndoBy, TenantID: run.TenantID}}
	account, err := tx.Account(ctx, run.UndoBy)
	if errors.Is(err, store.ErrNone) { // erased since
		err = nil
	}
	u.by.Email = account.Email
	tx.RecordFor(u.by)
	return u, err
}

// mark records what has become of a person or a group.
func (u *undoing) mark(id string, why doorward.Undone) error {
	if why == "" {
		u.done++
		return u.tx.MarkUndone(u.ctx, u.run.ID, id, doorward.UndoneDone)
	}
	u.left++
	return u.tx.MarkUndone(u.ctx, u.run.ID, id, why)
}
