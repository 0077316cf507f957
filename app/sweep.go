package app

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/store"
)

const (
	// sweepEvery is the time between two sweeps. The data of a closed tenant outlives its hold by
	// this time at most, and by twice this time if the node whose turn it is dies.
	sweepEvery = time.Minute
	// scanEvery is that of sweeps that read whole tables.
	scanEvery = 5 * time.Minute
	// forgetEvery is that of forgetAddresses, which reads whole tables, and isn't urgent.
	forgetEvery = 24 * time.Hour
	// turnTime ends a turn before the next one is due, so that one node at a time does a sweep. What it has
	// not done follows in the next turn.
	turnTime = sweepEvery - 10*time.Second
	// lookForTurn is how often a node asks whether a turn is due. It takes one, so that sweeps are spread over
	// the minute.
	lookForTurn = 3 * time.Second
	// passOn is for how long after a turn that failed, from its beginning, a node leaves the next one to others.
	passOn = sweepEvery + 2*lookForTurn
)

// sweep is periodic work in the database, which one node at a time does.
type sweep struct {
	name  string // in the table of turns; it never gets another meaning
	every time.Duration
	do    func(context.Context) error
}

// sweeps are the sweeps of all features: they delete what has expired, destroy tenants whose hold has ended, send
// what is due by time.
func (a *App) sweeps() []sweep {
	return []sweep{
		{"sessions", sweepEvery, a.Sessions.SweepEnded},
		{"expired-sessions", scanEvery, a.Sessions.SweepExpired},
		{"attempts", sweepEvery, a.verifier.Sweep},
		{"accounts", sweepEvery, all(a.verifier.SweepOrphaned, a.Accounts.Sweep, a.Users.Sweep)},
		{"factors", sweepEvery, a.Factors.Sweep},
		{"factor-totals", scanEvery, a.Factors.CountTotals},
		{"tenants", sweepEvery, a.Tenants.Sweep},
		{"trails", sweepEvery, a.Audit.Sweep},
		{"mails", sweepEvery, a.Mail.Sweep},
		{"webhooks", sweepEvery, a.Webhooks.Sweep},
		{"connections", sweepEvery, all(a.Connections.Sweep, a.SetupLinks.Sweep, a.Demands.Sweep, a.SignOff.Sweep, a.Directories.Sweep)},
		{"directory-undos", sweepEvery, a.DirectoryRuns.Sweep},
		{"api-keys", sweepEvery, a.APIKeys.Sweep},
		{"usage", sweepEvery, a.Overviews.Sweep},
		{"addresses", forgetEvery, a.forgetAddresses},
		{"changes", sweepEvery, all(a.Lease.Sweep, a.Access.SweepCalls, a.Access.Decisions().Sweep)},
	}
}

const (
	// keepAddresses is how long the address of a client is kept outside of trails.
	keepAddresses = 90 * 24 * time.Hour
	// addressesAtOnce is how many rows one transaction blanks.
	addressesAtOnce = 200
)

// forgetAddresses blanks the addresses of clients in rows other than events that are older than keepAddresses, or
// will be before the next time.
func (a *App) forgetAddresses(ctx context.Context) error {
	until := a.db.Now().Add(forgetEvery - keepAddresses)
	for _, of := range store.ClientAddresses {
		for last := ""; ; {
			old, err := a.db.Read().OldAddresses(ctx, of, last, until, addressesAtOnce)
			if err != nil {
				return err
			}
			if len(old) == 0 {
				break
			}
			if err := a.Access.Upkeep(ctx, func(tx *store.Tx) error { return tx.ForgetAddresses(ctx, of, old, until) }); err != nil {
				return err
			}
			last = old[len(old)-1]
		}
	}
	return nil
}

// sweepNode does what each node has to do for itself: it is about its memory, its files or its settings.
func (a *App) sweepNode(ctx context.Context) error {
	return all(a.clampFuture, a.sweepMasterKey, a.Assertions.Sweep, a.SignOn.WriteStrays, a.SignOff.WriteStrays, a.Directories.WriteFaults, a.APIKeys.WriteUses, a.APIKeys.ForgetIdle, a.Factors.ReadTotals)(ctx)
}

// all does all works, also after one has failed, and joins their errors.
func all(works ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		var errs []error
		for _, do := range works {
			errs = append(errs, do(ctx))
		}
		return errors.Join(errs...)
	}
}

// Sweep does the periodic work of every feature at once, whose turn it may be. If a feature fails, the others
// follow, and the result joins all errors. Sweep does nothing while the clock is wrong.
func (a *App) Sweep(ctx context.Context) error {
	if a.db.Clock().Wrong() {
		return nil
	}
	errs := []error{}
	for _, s := range a.sweeps() {
		errs = append(errs, s.do(ctx))
	}
	return errors.Join(append(errs, a.sweepNode(ctx))...)
}

// runNodeSweeps runs sweepNode at once and every sweepEvery until ctx ends.
func (a *App) runNodeSweeps(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if !a.db.Clock().Wrong() {
			a.warnUnlessEnded(ctx, "node", a.sweepNode(ctx))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.clockCorrected: // nothing was done while the clock was wrong
		}
	}
}

// runTurns takes turns until ctx ends: at the beginning all that are due, so that nodes that restart often sweep
// too, then one every lookForTurn.
func (a *App) runTurns(ctx context.Context) {
	tick := time.NewTicker(lookForTurn)
	defer tick.Stop()
	left := map[string]time.Time{}
	for more := true; more; {
		more = a.takeTurn(ctx, left)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.takeTurn(ctx, left)
		}
	}
}

// takeTurn does the sweep that has been due for longest, and reports whether there was one. left says until when
// this node leaves a sweep to other nodes.
func (a *App) takeTurn(ctx context.Context, left map[string]time.Time) (taken bool) {
	if a.db.Clock().Wrong() {
		return false
	}
	began := a.db.Now()
	s, err := a.claimTurn(ctx, began, left)
	if err != nil || s.do == nil {
		a.warnUnlessEnded(ctx, "turns", err)
		return false
	}
	turn, end := context.WithTimeout(ctx, turnTime)
	defer end()
	if err := s.do(turn); err != nil {
		left[s.name] = began.Add(passOn)
		a.warnUnlessEnded(ctx, s.name, err)
	}
	return true
}

// claimTurn returns the sweep whose turn this node has taken, and no sweep if none is due, or another node was faster.
// If this node dies, the sweep is due again after its time.
func (a *App) claimTurn(ctx context.Context, now time.Time, left map[string]time.Time) (sweep, error) {
	turns, err := a.db.Read().Turns(ctx)
	if err != nil {
		return sweep{}, err
	}
	first, at, found := sweep{}, now.Add(time.Nanosecond), false
	for _, s := range a.sweeps() {
		next := turns[s.name]
		if next.After(now.Add(2 * s.every)) { // the clock was ahead when a turn was taken
			next = time.Time{}
		}
		if next.Before(at) && !left[s.name].After(now) {
			first, at, found = s, next, true
		}
	}
	if !found {
		return sweep{}, nil
	}
	mine := false
	err = a.Access.Upkeep(ctx, func(tx *store.Tx) (err error) {
		mine, err = tx.TakeTurn(ctx, first.name, turns[first.name], now.Add(first.every))
		return err
	})
	if err != nil || !mine {
		return sweep{}, err
	}
	return first, nil
}

// runUndos goes on with undos of directories' runs that were asked for on this node.
func (a *App) runUndos(ctx context.Context) {
	a.DirectoryRuns.Run(ctx, func(err error) { a.warnUnlessEnded(ctx, "directory-undos", err) })
}

func (a *App) warnUnlessEnded(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		a.log.Warn("sweep", "of", what, "err", err)
	}
}
