// Package inbox records what waits in the inbox: refusals, and requests for a
// reset by people who have shown nothing.
//
// A request only leaves a row there (see access.Inbox and credential), the same for
// every address. The worker here finds out whose account it is about, adds what is
// worth a record to the trail of that person's tenant, with the number of times,
// and queues mails. Of a kind of refusal the trail gets the first at once and the
// others of the minute together, when the minute is over or somebody looks.
//
// Each node runs a worker. A row is claimed in the transaction that records it, so
// it is recorded once, whichever workers meet, and wherever one is killed.
package inbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/store"
)

// Inbox is the worker. Make it with New.
type Inbox struct {
	door *access.Door
	db   *store.DB
	warn func(error)
	turn chan struct{} // held by who works
}

// New returns a worker.
func New(door *access.Door, db *store.DB, log *slog.Logger) *Inbox {
	return &Inbox{door, db, lograte.Warnings(log, "inbox"), make(chan struct{}, 1)}
}

const (
	every = time.Second // rows of other processes, repetitions, minutes that are over
	// gather bounds how often the chains of events are locked for what strangers do.
	gather = 100 * time.Millisecond
	batch  = 200 // rows recorded in one transaction
	// endWithin bounds the last pass, when the server ends.
	endWithin = 2 * time.Second
)

// Run records what comes in until ctx ends: within a second. At the end it writes
// down what is in memory.
func (w *Inbox) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for full := true; ctx.Err() == nil; {
		more, err := w.pass(ctx, full)
		w.noted(ctx, err)
		full = w.wait(ctx, tick, more && err == nil)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	_, err := w.pass(last, true)
	w.noted(last, err)
}

// wait returns when there is something to do, at once if there is more of it, and
// whether it is time for a full pass.
func (w *Inbox) wait(ctx context.Context, tick *time.Ticker, more bool) (full bool) {
	if more {
		select {
		case <-tick.C:
			return true
		default:
			return false
		}
	}
	select {
	case <-ctx.Done():
	case <-tick.C:
		return true
	case <-w.db.InboxFiled():
		pause(ctx, gather)
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (w *Inbox) noted(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		w.warn(err)
	}
}

// passBatches bounds a pass, so that in a flood what is in memory is written and
// counted all the same.
const passBatches = 10

// pass takes some of what is due and reports whether there is more. A full one also
// writes what is in memory and counts what is in the database.
func (w *Inbox) pass(ctx context.Context, full bool) (more bool, err error) {
	if full {
		if err := w.door.Inbox().Flush(ctx); err != nil {
			return false, err
		}
		if err := w.door.Inbox().Count(ctx); err != nil {
			return false, err
		}
	}
	err = w.exclusively(ctx, func() error {
		for n := 0; n < passBatches; n++ {
			if more, err = w.next(ctx); err != nil || !more {
				return err
			}
		}
		return nil
	})
	return more, err
}

// exclusively keeps the passes of one process apart: two would claim the same rows.
func (w *Inbox) exclusively(ctx context.Context, do func() error) error {
	select {
	case <-ctx.Done():
		return doorward.Unavailable(ctx.Err())
	case w.turn <- struct{}{}:
	}
	defer func() { <-w.turn }()
	return do()
}

// Due records what is due, until nothing is. Errors: unavailable.
func (w *Inbox) Due(ctx context.Context) error {
	return w.exclusively(ctx, func() error {
		for {
			if more, err := w.next(ctx); err != nil || !more {
				return err
			}
		}
	})
}

// next records a batch of what is due and reports whether there was any. Before it
// come the requests for a reset by people who have an account, the sources by
// turns, so that their mail doesn't wait behind a flood.
func (w *Inbox) next(ctx context.Context) (more bool, err error) {
	known, err := w.db.Read().KnownInbox(ctx, doorward.PasswordForgot, w.db.Now(), batch)
	if err != nil {
		return false, err
	}
	if err := w.record(ctx, known); err != nil {
		return false, err
	}
	rows, err := w.db.Read().DueInbox(ctx, w.db.Now(), batch)
	if err != nil {
		return false, err
	}
	return len(rows) > 0, w.record(ctx, rows)
}

// How much somebody who looks at the trail waits for: no longer than an answer may
// take, and no more than keeps a flood from being recorded one by one.
const (
	settleWithin  = 1500 * time.Millisecond
	settleBatches = 10
)

// Settle records what has been refused up to now, whether it is due or not, so that
// whoever looks at the trail sees it. That this couldn't be done in time keeps
// nobody from looking.
func (w *Inbox) Settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	err := w.door.Inbox().Flush(ctx)
	if err == nil {
		err = w.exclusively(ctx, func() error { return w.pending(ctx) })
	}
	w.noted(ctx, err)
}

func (w *Inbox) pending(ctx context.Context) error {
	for range settleBatches {
		rows, err := w.db.Read().PendingInbox(ctx, batch)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := w.record(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// record claims the rows and records them in one transaction.
func (w *Inbox) record(ctx context.Context, rows []store.InboxRow) error {
	if len(rows) == 0 {
		return nil
	}
	access.SortInbox(rows)
	return w.door.Upkeep(ctx, func(tx *store.Tx) error {
		l := &ledger{tx: tx, tenants: map[string]bool{}, strangers: map[strangers]store.InboxRow{}}
		for _, row := range rows {
			if err := l.take(ctx, row); err != nil {
				return err
			}
		}
		l.write()
		return l.fileStrangers(ctx)
	})
}
