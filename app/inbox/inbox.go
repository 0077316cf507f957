// Package inbox records the rows of the inbox: refusals, and requests for a reset
// by anonymous callers.
//
// A request only adds a row (see refusal.Inbox and credential), the same for every
// address. The worker here looks the account up, records the row in the trail of
// the account's tenant, with a count, and queues mails. The first of several equal
// refusals becomes an event at once. The others of the same minute become one event
// with a count, when the minute is over or the trail is read.
//
// Each node runs a worker. A row is claimed in the transaction that records it, so
// it is recorded exactly once, however many workers there are and whenever one is
// killed.
package inbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/refusal"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/store"
)

// Inbox is the worker. Make it with New.
type Inbox struct {
	writer   *access.Writer
	db       *store.DB
	log      *slog.Logger
	warn     func(error)
	passLock chan struct{} // holds a value during a pass
	// lines limits the log lines about rows that are set aside.
	lines lograte.Limiter
}

// New returns a worker.
func New(writer *access.Writer, db *store.DB, log *slog.Logger) *Inbox {
	return &Inbox{writer: writer, db: db, log: log, warn: lograte.Warnings(log, "inbox"), passLock: make(chan struct{}, 1)}
}

const (
	pollEvery = 2 * time.Second // finds rows of processes that have died, repeated refusals, and minutes that are over
	// debounce is the worker's pause after a new row. It limits how often the worker locks the
	// chains of events, however many requests there are.
	debounce = 100 * time.Millisecond
	batch    = 200 // rows recorded in one transaction
	// unknownBatch is how many requests for unknown addresses one transaction merges.
	unknownBatch = 1000
	// lastPassTimeout bounds the last pass, at shutdown.
	lastPassTimeout = 2 * time.Second
)

// Run records rows of this process at once, and others within two seconds, until ctx ends. At the end it writes the rows
// in memory.
func (w *Inbox) Run(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for flush := true; ctx.Err() == nil; {
		more, err := w.pass(ctx, flush)
		w.warnUnlessEnded(ctx, err)
		flush = w.wait(ctx, tick, more && err == nil)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPassTimeout)
	defer cancel()
	_, err := w.pass(last, true)
	w.warnUnlessEnded(last, err)
}

// wait waits until there is work, and reports whether the next pass must flush. If there is more work
// already, it returns at once.
func (w *Inbox) wait(ctx context.Context, tick *time.Ticker, more bool) (flush bool) {
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
		pause(ctx, debounce)
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

func (w *Inbox) warnUnlessEnded(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		w.warn(err)
	}
}

// passBatches bounds a pass, so that under load the rows in memory are still
// written and counted.
const passBatches = 10

// pass records some of the due rows and reports whether there are more. If flush is set, it
// also writes the rows in memory and counts those in the database; without any it asks no more, since
// most passes find none.
func (w *Inbox) pass(ctx context.Context, flush bool) (more bool, err error) {
	if flush {
		flushed := w.writer.Inbox.Flush(ctx)
		rows, counted := w.writer.Inbox.Count(ctx)
		if err := errors.Join(flushed, counted); err != nil {
			w.warnUnlessEnded(ctx, err) // the rows in the database are recorded all the same
		} else if rows == 0 {
			return false, nil
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

// exclusively runs one pass of this process at a time. Two would read the same rows, and only one
// of them could claim them.
func (w *Inbox) exclusively(ctx context.Context, do func() error) error {
	select {
	case <-ctx.Done():
		return doorward.Unavailable(ctx.Err())
	case w.passLock <- struct{}{}:
	}
	defer func() { <-w.passLock }()
	return do()
}

// RecordDue records all rows that are due. Errors: unavailable.
func (w *Inbox) RecordDue(ctx context.Context) error {
	return w.exclusively(ctx, func() error {
		for {
			if more, err := w.next(ctx); err != nil || !more {
				return err
			}
		}
	})
}

// next records a batch of due rows and reports whether there were any. Requests
// for a reset whose address has an account come first, round-robin by source, so
// that their mails don't wait behind many others.
func (w *Inbox) next(ctx context.Context) (more bool, err error) {
	known, err := w.db.Read().KnownInbox(ctx, doorward.PasswordForgot, w.db.Now(), batch)
	if err != nil {
		return false, err
	}
	if err := w.record(ctx, known); err != nil {
		return false, err
	}
	unknown, err := w.mergeUnknown(ctx)
	if err != nil {
		return false, err
	}
	rows, err := w.db.Read().DueInbox(ctx, doorward.PasswordForgot, w.db.Now(), batch)
	if err != nil {
		return false, err
	}
	return len(known)+unknown+len(rows) > 0, w.record(ctx, rows)
}

// mergeUnknown replaces due requests for a reset of unknown addresses by rows that count them, one
// for each network and minute. It returns how many requests it has merged.
func (w *Inbox) mergeUnknown(ctx context.Context) (n int, err error) {
	err = w.writer.Upkeep(ctx, func(tx *store.Tx) error {
		rows, err := tx.TakeUnknownInbox(ctx, doorward.PasswordForgot, unknownBatch)
		if n = len(rows); err != nil {
			return err
		}
		r := newRecorder(tx)
		for _, row := range rows {
			r.count(row)
		}
		return r.fileAnonymous(ctx) // the counts are recorded later
	})
	return n, err
}

// pendingTimeout bounds how long a reader of the trail waits for RecordPending, and
// pendingBatches how many batches that records. The worker records the remaining rows, many of
// them in one event.
const (
	pendingTimeout = 1500 * time.Millisecond
	pendingBatches = 10
)

// RecordPending records all refusals up to now, due or not, so that a reader of the trail
// sees them. Beyond pendingTimeout or pendingBatches the trail is read without the
// remaining refusals.
func (w *Inbox) RecordPending(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pendingTimeout)
	defer cancel()
	err := w.writer.Inbox.Flush(ctx)
	if err == nil {
		err = w.exclusively(ctx, func() error { return w.recordPending(ctx) })
	}
	w.warnUnlessEnded(ctx, err)
}

func (w *Inbox) recordPending(ctx context.Context) error {
	for range pendingBatches {
		if _, err := w.mergeUnknown(ctx); err != nil {
			return err
		}
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

// record records the rows. A row that can't be recorded is set aside, so that it
// doesn't block the others.
func (w *Inbox) record(ctx context.Context, rows []store.InboxRow) error {
	var readable []store.InboxRow
	for _, row := range rows {
		if row.Fault == nil {
			readable = append(readable, row)
		} else if err := w.setAside(ctx, row, row.Fault); err != nil {
			return err
		}
	}
	refusal.SortInbox(readable)
	return w.recordAll(ctx, readable)
}

// recordAll records the rows. If that fails, it looks for the rows that can't be recorded, by
// halving, and sets them aside. If that fails too, the fault is the database's, and it returns
// the error.
func (w *Inbox) recordAll(ctx context.Context, rows []store.InboxRow) error {
	err := w.recordOnce(ctx, rows)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case len(rows) == 1:
		if err = w.recordOnce(ctx, rows); err == nil || ctx.Err() != nil { // the database was briefly unavailable
			return err
		}
		return w.setAside(ctx, rows[0], err)
	}
	if err := w.recordAll(ctx, rows[:len(rows)/2]); err != nil {
		return err
	}
	return w.recordAll(ctx, rows[len(rows)/2:])
}

// recordOnce claims the rows and records them in one transaction.
func (w *Inbox) recordOnce(ctx context.Context, rows []store.InboxRow) error {
	if len(rows) == 0 {
		return nil
	}
	return w.writer.Upkeep(ctx, func(tx *store.Tx) error {
		r := newRecorder(tx)
		for _, row := range rows {
			if err := r.take(ctx, row); err != nil {
				return err
			}
		}
		r.write()
		return r.fileAnonymous(ctx) // rows that r.take has counted go back into the inbox
	})
}

// A row that can't be recorded is retried after a minute, since a lock may have
// been the cause, and then every hour, since a newer version may be able to record it.
const (
	firstRetryAfter = time.Minute
	laterRetryAfter = time.Hour
)

// setAside postpones the row. The log line leaves out the source and the subject, since both
// may contain an address.
func (w *Inbox) setAside(ctx context.Context, row store.InboxRow, cause error) error {
	retryAfter := firstRetryAfter
	if row.IsSetAside {
		retryAfter = laterRetryAfter
	}
	found := false
	err := w.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		found, err = tx.SetAsideInbox(ctx, row, tx.Now.Add(retryAfter))
		return err
	})
	if err != nil || !found {
		return err
	}
	if leftOut, ok := w.lines.Allow(cause.Error(), time.Now()); ok {
		w.log.Error("inbox: a row can't be recorded and is set aside",
			"action", row.Action, "reason", row.Reason, "minute", row.Minute, "event", row.Event.ID, "retryIn", retryAfter, "leftOut", leftOut, "err", cause)
	}
	return nil
}
