// Package queue is for the operator when mails or deliveries to webhooks don't get through: it shows what waits,
// has it tried again at once, gives it up, and pauses the queues.
//
// Package outbox sends what is queued. Here only rows change; nodes see that when they look for work, and when they
// claim it. Each call that changes rows is many short transactions; one that was interrupted is run again.
package queue

import (
	"context"
	"errors"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
)

// Queues is the feature. Make it with New.
type Queues struct {
	writer *access.Writer
	db     *store.DB
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB) *Queues { return &Queues{writer, db} }

const (
	// rowBatch is how many rows one transaction changes.
	rowBatch = 2000
	// pageSize is how many rows are read at once.
	pageSize = 500
)

// Fields of events.
const (
	fieldQueue   = "queue"
	fieldKind    = "mailKind"
	fieldRetried = "retried"
	fieldDropped = "dropped"
	fieldPause   = "pause"
)

var installation = doorward.Object{Type: "installation"}

// EachMail calls fn with the mails that the filter selects, until fn fails: queued ones in the order in which they
// are due, failed ones the oldest first. It returns fn's error. Errors: not_found, for an unknown tenant.
func (q *Queues) EachMail(ctx context.Context, f store.MailFilter, fn func(store.Mail) error) error {
	if err := q.checkTenant(ctx, f.TenantID); err != nil {
		return err
	}
	for after := (store.Mail{}); ; {
		page, err := q.db.Read().SelectedMails(ctx, f, q.db.Now(), after, pageSize)
		if err != nil {
			return err
		}
		for _, m := range page {
			if err := fn(m); err != nil {
				return err
			}
			after = m
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// checkTenant returns not_found unless there is such a tenant; "" is always known.
func (q *Queues) checkTenant(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	_, err := q.db.Read().Tenant(ctx, id)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "No tenant has the id %s. \"doorward tenant list\" shows all.", id)
	}
	return err
}

// RetryMails has mails that the filter selects tried again now: queued ones, or those that failed or were dropped within a
// day. Those that are due within three minutes stay as they are. It returns how many, with an error those so far.
// Errors: not_found, for an unknown tenant.
func (q *Queues) RetryMails(ctx context.Context, by doorward.Caller, f store.MailFilter) (int64, error) {
	began := q.db.Now() // what fails again since then isn't retried again
	return q.eachMailBatch(ctx, by, doorward.QueueRetry, fieldRetried, f, func(tx *access.Tx) (int64, error) {
		return tx.RetryMails(ctx, f, began, rowBatch)
	})
}

// DropMails gives up queued mails that the filter selects; for a day they can be retried. Number and errors are as for
// RetryMails.
func (q *Queues) DropMails(ctx context.Context, by doorward.Caller, f store.MailFilter) (int64, error) {
	return q.eachMailBatch(ctx, by, doorward.QueueDrop, fieldDropped, f, func(tx *access.Tx) (int64, error) {
		return tx.DropMails(ctx, f, rowBatch)
	})
}

// eachMailBatch runs change until it changes fewer rows than a batch has. The trail of the installation has an
// event for each transaction, and so has that of the tenant, if the filter names one.
func (q *Queues) eachMailBatch(ctx context.Context, by doorward.Caller, act doorward.Action, field string, f store.MailFilter, change func(*access.Tx) (int64, error)) (int64, error) {
	if err := q.checkTenant(ctx, f.TenantID); err != nil {
		return 0, err
	}
	all, err := q.db.Read().CountSelectedMails(ctx, f, q.db.Now())
	if err != nil {
		return 0, err
	}
	progress.Step(ctx, "mails", all, nil)
	return q.inBatches(ctx, by, act, installation, change, func(tx *access.Tx, n int64) error {
		changes := []doorward.Change{{Field: fieldQueue, To: string(store.MailQueue)}, {Field: field, To: strconv.FormatInt(n, 10)}}
		if f.Kind != "" {
			changes = append(changes, doorward.Change{Field: fieldKind, To: string(f.Kind)})
		}
		record(tx, changes)
		if f.TenantID == "" {
			return nil
		}
		return tx.RecordAlso(ctx, act, doorward.Object{Type: "tenant", ID: f.TenantID, TenantID: f.TenantID}, changes...)
	})
}

func record(tx *access.Tx, changes []doorward.Change) {
	for _, c := range changes {
		tx.Changed(c.Field, c.From, c.To)
	}
}

// inBatches runs change in a transaction each until it changes fewer rows than a batch has, and returns how many it
// has changed in all. A transaction that changes none is not recorded.
func (q *Queues) inBatches(ctx context.Context, by doorward.Caller, act doorward.Action, on doorward.Object, change func(*access.Tx) (int64, error), note func(*access.Tx, int64) error) (all int64, err error) {
	for n := int64(rowBatch); n == rowBatch; {
		_, err := q.writer.Do(ctx, by, act, on, func(tx *access.Tx) (err error) {
			if n, err = change(tx); err != nil {
				return err
			}
			if n == 0 {
				tx.SkipEvent()
				return nil
			}
			return note(tx, n)
		})
		if err != nil {
			return all, err
		}
		all += n
		progress.Add(ctx, n)
	}
	return all, nil
}

// Pauses returns the pauses of both queues.
func (q *Queues) Pauses(ctx context.Context) ([]store.QueuePause, error) {
	return q.db.Read().QueuePauses(ctx)
}

// Pause stops a queue on all nodes: nothing of it begins to be sent until Resume; what is being sent is finished.
// Rows go on to be queued. The scope is empty for all of it; of webhooks it may be the id of a tenant or of a
// webhook. The reason is that of the caller's command. It does nothing to a queue that is paused. Errors: not_found.
func (q *Queues) Pause(ctx context.Context, by doorward.Caller, queue store.Queue, scope string) error {
	return q.change(ctx, by, queue, scope, "on", func(tx *access.Tx) (bool, error) {
		return tx.PauseQueue(ctx, store.QueuePause{Queue: queue, Scope: scope, Reason: by.Terminal.Reason})
	})
}

// Resume ends a pause, and reports whether there was one. Errors: not_found.
func (q *Queues) Resume(ctx context.Context, by doorward.Caller, queue store.Queue, scope string) (ended bool, err error) {
	err = q.change(ctx, by, queue, scope, "off", func(tx *access.Tx) (bool, error) {
		ended, err = tx.ResumeQueue(ctx, queue, scope)
		return ended, err
	})
	return ended, err
}

func (q *Queues) change(ctx context.Context, by doorward.Caller, queue store.Queue, scope, to string, write func(*access.Tx) (bool, error)) error {
	on, err := q.find(ctx, scope)
	if err != nil {
		return err
	}
	_, err = q.writer.Do(ctx, by, doorward.QueuePause, on, func(tx *access.Tx) error {
		isChanged, err := write(tx)
		if !isChanged {
			tx.SkipEvent()
		}
		record(tx, []doorward.Change{{Field: fieldQueue, To: string(queue)}, {Field: fieldPause, To: to}})
		return err
	})
	return err
}

// find returns what a scope names. Errors: not_found.
func (q *Queues) find(ctx context.Context, scope string) (doorward.Object, error) {
	if scope == "" {
		return installation, nil
	}
	hook, err := q.db.Read().Webhook(ctx, scope)
	switch {
	case err == nil && hook.TenantID != store.RetiredWebhooksTenant:
		return doorward.Object{Type: "webhook", ID: hook.ID, TenantID: hook.TenantID}, nil
	case err != nil && !errors.Is(err, store.ErrNone):
		return doorward.Object{}, err
	}
	_, err = q.db.Read().Tenant(ctx, scope)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "No tenant or webhook has the id %s.", scope)
	}
	return doorward.Object{Type: "tenant", ID: scope, TenantID: scope}, err
}
