// Package webhook manages endpoints that get events, and delivers events to them, as Standard
// Webhooks 1.0.0 says (https://www.standardwebhooks.com).
//
// A delivery is a row that is written with the event, in the same transaction (see
// store/delivery.go), and package outbox decides when it is tried. So no event is lost, an event
// that was rolled back is not sent, and an event that is sent twice has the same id.
//
//	webhook.go   reading and changing
//	draft.go     the rules for what is typed
//	secret.go    secrets and signatures
//	payload.go   the body
//	deliver.go   the queue, one attempt, what follows it
//	attempt.go   deliveries: listed, retried, replayed
//	sweep.go     notices, disabling, retention
//	lost.go      what follows the loss of the master key
package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/app/outbox"
	"github.com/doorward/doorward/internal/guard"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/store"
)

// Settings configure the feature.
type Settings struct {
	Allow    []netip.Prefix // internal addresses that endpoints may have
	Proxy    *url.URL       // that requests go through; nil: none
	Local    bool           // allows http on loopback names
	Keep     time.Duration  // how long finished deliveries are kept
	Operator string         // address for mails about the installation's own webhooks; empty: none
}

// Webhooks is the feature. Make it with New.
type Webhooks struct {
	writer  *access.Writer
	db      *store.DB
	master  *masterkey.Keys
	client  *guard.Client
	keep    time.Duration
	mailTo  string
	log     *slog.Logger
	queue   *outbox.Queue[store.QueuedDelivery]
	writers chan struct{} // holds an item for each running transaction of the queue
	tests   chan struct{} // holds an item for each running test
	retired chan struct{} // has an item when a webhook was deleted
	counts  counts
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, master *masterkey.Keys, s Settings, log *slog.Logger) *Webhooks {
	w := &Webhooks{
		writer: writer, db: db, master: master, keep: s.Keep, mailTo: s.Operator, log: log,
		client:  guard.New(guard.Options{Allow: s.Allow, Proxy: s.Proxy, Local: s.Local}),
		writers: make(chan struct{}, writersAtOnce), tests: make(chan struct{}, testsAtOnce), retired: make(chan struct{}, 1),
	}
	w.queue = &outbox.Queue[store.QueuedDelivery]{
		Fetch: w.due, Job: job, Try: w.try, Permanent: func(error) bool { return false },
		Now: db.Now, Wake: db.DeliveryQueued(), Warn: lograte.Warnings(log, "webhook queue"), Endpoints: true,
	}
	master.OnLoss("webhooks", w.forgetSecrets)
	return w
}

// Run delivers until ctx ends: events of this process at once, those of others within a
// second. It deletes what is left of webhooks that this process has deleted.
func (w *Webhooks) Run(ctx context.Context) {
	var deleting sync.WaitGroup
	defer deleting.Wait()
	deleting.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.retired:
			}
			_ = w.sweepRetired(ctx) // the next Sweep tries again, and reports it
		}
	})
	w.queue.Run(ctx)
}

// Deliver tries everything that is due once. The error is one of the database or of ctx.
func (w *Webhooks) Deliver(ctx context.Context) error { return w.queue.Drain(ctx) }

// List returns the webhooks of the caller's tenant, or those of the installation, the newest
// first.
func (w *Webhooks) List(ctx context.Context, by doorward.Caller, window doorward.Window) (doorward.Page[doorward.Webhook], error) {
	return w.db.Read().WebhookPage(ctx, by.TenantID, window)
}

// Get returns a webhook of the caller's tenant, or of the installation. Errors: not_found.
func (w *Webhooks) Get(ctx context.Context, by doorward.Caller, id string) (doorward.Webhook, error) {
	return find(ctx, w.db.Read(), by, id)
}

// find returns a webhook that the caller manages. Errors: not_found.
func find(ctx context.Context, read store.Reader, by doorward.Caller, id string) (doorward.Webhook, error) {
	found, err := read.Webhook(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && found.TenantID != by.TenantID {
		return doorward.Webhook{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return found, err
}

// Usage returns how often deliveries to the webhook were attempted since an instant, by outcome and hour, the oldest first.
// Errors: not_found.
func (w *Webhooks) Usage(ctx context.Context, by doorward.Caller, id string, since time.Time) ([]doorward.UsageCount, error) {
	if _, err := w.Get(ctx, by, id); err != nil {
		return nil, err
	}
	return w.db.Read().Usage(ctx, id, since)
}

// UsageOfAll is Usage for all webhooks of the caller's tenant.
func (w *Webhooks) UsageOfAll(ctx context.Context, by doorward.Caller, since time.Time) ([]doorward.UsageCount, error) {
	return w.db.Read().UsageOfWebhooks(ctx, by.TenantID, since)
}

func object(w doorward.Webhook) doorward.Object {
	return doorward.Object{Type: "webhook", ID: w.ID, TenantID: w.TenantID}
}

// lock makes other changes of the owner's webhooks wait until the transaction ends. The owner is a
// tenant, which is locked already, or the installation (""), which has no lock of its own: lock
// locks the rows of all master keys instead. Create locks one of them when it seals.
func lock(ctx context.Context, tx *access.Tx, tenantID string) error {
	if tenantID != "" {
		return nil
	}
	return tx.LockAllMasterKeys(ctx)
}

// change runs write on a webhook that the caller manages, read again under lock. Errors:
// not_found, those of write.
func (w *Webhooks) change(ctx context.Context, by doorward.Caller, act doorward.Action, id string, write func(*access.Tx, doorward.Webhook) error) error {
	found, err := w.Get(ctx, by, id)
	if err != nil {
		return err
	}
	_, err = w.writer.Do(ctx, by, act, object(found), func(tx *access.Tx) error {
		if err := lock(ctx, tx, by.TenantID); err != nil {
			return err
		}
		hook, err := find(ctx, tx.Reader, by, id)
		if err != nil {
			return err
		}
		return write(tx, hook)
	})
	return err
}

// Create makes a webhook and returns it with its secret, which can't be shown again. Errors:
// too_many_webhooks, quota_exceeded, master_key_missing, validation_failed.
func (w *Webhooks) Create(ctx context.Context, by doorward.Caller, d Draft) (Issued, error) {
	made := doorward.Webhook{ID: doorward.NewID(doorward.PrefixWebhook), TenantID: by.TenantID, Enabled: true, Health: doorward.WebhookNew}
	faults, err := w.apply(ctx, &made, d, complete)
	if err != nil {
		return Issued{}, err
	}
	fresh := newSecret()
	private, public := newSigningKey()
	made.PublicKey = public
	_, err = w.writer.Do(ctx, by, doorward.WebhookCreate, object(made), func(tx *access.Tx) error {
		// Seal before counting: sealing takes the lock of the owner's webhooks (see lock), so that
		// two requests at once can't pass the limit.
		sealed, err := w.seal(ctx, tx, made.ID, fresh, private)
		if err != nil {
			return err
		}
		n, err := tx.CountWebhooks(ctx, made.TenantID)
		switch {
		case err != nil:
			return err
		case n >= doorward.WebhooksMax:
			return doorward.Fail(doorward.CodeTooManyWebhooks, "")
		case len(faults) > 0:
			return doorward.InvalidFields(faults...)
		}
		if err := checkQuota(ctx, tx, made.TenantID, int64(n)+1); err != nil {
			return err
		}
		made.CreatedAt, made.CreatedBy, made.URLBy = tx.Now, tx.By.UserID(), tx.By.UserID()
		for _, f := range fields(made) {
			if f.value != "" {
				tx.Changed(f.name, "", f.value)
			}
		}
		if err := tx.InsertWebhook(ctx, made, sealed); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, Issued{made, fresh})
	})
	if err != nil {
		return Issued{}, err
	}
	return Issued{made, fresh}, nil
}

// Edit changes a webhook and returns it. Disabling it drops its pending deliveries.
// versions, unless empty, are those that the edit is based on. Errors: not_found,
// precondition_failed, validation_failed.
func (w *Webhooks) Edit(ctx context.Context, by doorward.Caller, id string, d Draft, versions []string) (after doorward.Webhook, err error) {
	proposed, err := w.Get(ctx, by, id)
	if err != nil {
		return after, err
	}
	faults, err := w.apply(ctx, &proposed, d, partial)
	if err != nil {
		return after, err
	}
	err = w.change(ctx, by, doorward.WebhookUpdate, id, func(tx *access.Tx, was doorward.Webhook) error {
		if err := doorward.CheckVersion(was.Version(), versions); err != nil {
			return err
		}
		if len(faults) > 0 {
			return doorward.InvalidFields(faults...)
		}
		after = was
		set(&after, d)
		if after.Enabled && !was.CanBeEnabled() {
			return doorward.Invalid("/enabled", "invalid", "The secret was lost with the master key of the installation. Rotate it, give the new one to the receiver, and enable the webhook then.")
		}
		if after.Enabled {
			after.DisabledReason = ""
		}
		if !recordEdit(tx, was, after) {
			tx.SkipEvent()
			return nil
		}
		if was.Enabled && !after.Enabled {
			tx.SkipQuota()
			if _, err := tx.DropDeliveries(ctx, id); err != nil {
				return err
			}
		}
		if after.URL != was.URL {
			after.URLBy = tx.By.UserID()
		}
		resetHealth := after.Enabled && !was.Enabled || after.URL != was.URL
		if err := tx.UpdateWebhook(ctx, after, resetHealth); err != nil {
			return err
		}
		after, err = tx.Webhook(ctx, id)
		return err
	})
	return after, err
}

// Delete deletes a webhook. Its deliveries, which can be many, are deleted afterwards in
// batches, by Run or the next Sweep. If versions are given, the webhook must have one of them.
// Errors: not_found, precondition_failed.
func (w *Webhooks) Delete(ctx context.Context, by doorward.Caller, id string, versions ...string) error {
	err := w.change(ctx, by, doorward.WebhookDelete, id, func(tx *access.Tx, was doorward.Webhook) error {
		if err := doorward.CheckVersion(was.Version(), versions); err != nil {
			return err
		}
		tx.Changed(doorward.FieldURL, withoutQuery(was.URL), "")
		return tx.RetireWebhook(ctx, id)
	})
	if err == nil {
		select {
		case w.retired <- struct{}{}:
		default: // Run knows already
		}
	}
	return err
}

// Rotate gives the webhook a new secret. Until the grace is over, messages are signed with the
// old and the new one. Errors: not_found, master_key_missing, validation_failed.
func (w *Webhooks) Rotate(ctx context.Context, by doorward.Caller, id string, graceHours *int64) (Issued, error) {
	grace := int64(doorward.WebhookGraceHours)
	if graceHours != nil {
		grace = *graceHours
	}
	fresh := newSecret()
	var after doorward.Webhook
	err := w.change(ctx, by, doorward.WebhookRotate, id, func(tx *access.Tx, _ doorward.Webhook) error {
		if grace < 0 || grace > doorward.WebhookGraceHoursMax {
			return doorward.Invalid("/graceHours", "out_of_range", "The present secret may stay in use for 0 to 168 hours.")
		}
		ends := tx.Now.Add(time.Duration(grace) * time.Hour)
		tx.Changed("previousEndsAt", "", ends.Format(time.RFC3339))
		previous, secret, err := w.sealAgain(ctx, tx, id, fresh)
		if err != nil {
			return err
		}
		if err := tx.RotateWebhook(ctx, id, previous, ends, secret); err != nil {
			return err
		}
		if after, err = tx.Webhook(ctx, id); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, Issued{after, fresh})
	})
	return Issued{after, fresh}, err
}

// checkQuota checks the quota of a tenant; the operator's own webhooks have none.
func checkQuota(ctx context.Context, tx *access.Tx, tenantID string, have int64) error {
	if tenantID == "" {
		return nil
	}
	t, err := tx.Tenant(ctx, tenantID)
	if err != nil {
		return err
	}
	return t.Quotas.Check(doorward.QuotaWebhooks, have)
}
