package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/outbox"
	"github.com/doorward/doorward/internal/guard"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
)

const (
	// answerTimeout is how long an endpoint has for its answer.
	answerTimeout = 15 * time.Second
	// claimFor is longer than an attempt and the recording of its result.
	claimFor = 30 * time.Second
	// quickWithin is how long a healthy endpoint takes to answer, at most.
	quickWithin = time.Second
	// writersAtOnce bounds the parallel transactions of the queue.
	writersAtOnce = 8
	// maxStoredAnswer is how many bytes of an answer are stored.
	maxStoredAnswer = 1 << 10
	// maxStoredFault is how many bytes of the fault of a certificate are stored. The endpoint chooses
	// the names in its certificate, up to 256 KiB (crypto/tls), and they are in the fault.
	maxStoredFault = 256
	// maxStoredAttempts is how many attempts of a delivery are stored, at most: after manual retries
	// there may be more than the schedule has.
	maxStoredAttempts = 20
	// retryAfterMax is the longest pause that an endpoint can ask for by Retry-After.
	retryAfterMax = 24 * time.Hour
)

// schedule has the pauses after failed attempts, before jitter.
var schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Why an attempt has no answer. NotTrusted is followed by the fault of the certificate.
const (
	NotAllowed  = "The name does not exist, or its address is not allowed." // in one, or it would tell which internal names exist
	Late        = "No answer within 15 s."
	LateForTest = "No answer within 2 s."
	Cancelled   = "Cancelled while slow, since others were waiting."
	NotTrusted  = "The certificate is not valid: "
	NotAccepted = "The connection was refused."
	Reset       = "The connection was reset."
	Broken      = "The connection failed, or the answer was not HTTP."
	NoMasterKey = "The server lacks the master key."
	NoEvent     = "The event is no longer kept."
)

// counts counts attempts since the start of the process, for metrics.
type counts struct{ delivered, retried, failed, dropped atomic.Uint64 }

// Counts has the numbers of attempts since the start of the process, by result.
type Counts struct{ Delivered, Retried, Failed, Dropped uint64 }

// Counts returns the numbers of this process's attempts.
func (w *Webhooks) Counts() Counts {
	return Counts{w.counts.delivered.Load(), w.counts.retried.Load(), w.counts.failed.Load(), w.counts.dropped.Load()}
}

// Sending returns how many attempts this process is making, and how many endpoints are slow.
func (w *Webhooks) Sending() outbox.Stats { return w.queue.Stats() }

// due returns deliveries that are due. A node without a master key can't sign them: it leaves them,
// and their attempts, to nodes that have the key.
func (w *Webhooks) due(ctx context.Context, urgent bool, after outbox.Job, limit int) ([]store.QueuedDelivery, error) {
	if w.master.Ready() != nil {
		return nil, nil
	}
	from := store.QueuedDelivery{DueAt: after.Due}
	from.ID = after.ID
	return w.db.Read().DueDeliveries(ctx, urgent, from, w.db.Now(), limit)
}

// job describes the delivery to the outbox: its share is the tenant, its host the endpoint.
func job(d store.QueuedDelivery) outbox.Job {
	return outbox.Job{ID: d.ID, Due: d.DueAt, Urgent: d.Urgent, Share: d.TenantID, Host: d.WebhookID, LastTryWasQuick: d.Healthy}
}

// upkeep is access.Writer.Upkeep, for at most writersAtOnce callers at once. If ctx ends while
// it waits for its turn, it returns the error of ctx.
func (w *Webhooks) upkeep(ctx context.Context, fn func(*store.Tx) error) error {
	select {
	case w.writers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.writers }()
	return w.writer.Upkeep(ctx, fn)
}

// claimed is a delivery that this worker has claimed, and what it sends.
type claimed struct {
	store.QueuedDelivery
	webhook doorward.Webhook
	body    []byte
	signer  signer
	// unsentReason is why nothing can be sent now; empty if it can.
	unsentReason string
}

func (w *Webhooks) try(ctx context.Context, d store.QueuedDelivery, send outbox.Send) error {
	ctx, span := trace.Root(ctx, "webhook")
	defer span.End()
	span.Set("doorward.webhook", d.WebhookID)
	span.SetCount("doorward.webhook.try", d.Tries+1)
	c, err := w.claim(ctx, d)
	if err != nil || c == nil {
		return err
	}
	attempt, wait := doorward.DeliveryAttempt{At: w.db.Now(), Error: c.unsentReason}, time.Duration(0)
	if c.unsentReason == "" {
		// The attempt has the error.
		_ = send(ctx, func(ctx context.Context) error {
			attempt, wait = w.post(ctx, c.webhook.URL, c.EventID, c.body, c.signer)
			return failure(attempt)
		})
	}
	if ctx.Err() != nil {
		return ctx.Err() // shutting down: the claim expires and it is retried
	}
	return w.record(ctx, c, attempt, wait)
}

// claim claims the delivery and prepares its message. It returns nil if another worker has the
// delivery, or if the delivery was dropped or deleted.
func (w *Webhooks) claim(ctx context.Context, d store.QueuedDelivery) (c *claimed, err error) {
	err = w.upkeep(ctx, func(tx *store.Tx) error {
		c = nil
		isClaimed, err := tx.ClaimDelivery(ctx, d, tx.Now.Add(claimFor))
		if err != nil || !isClaimed {
			return err
		}
		d := d
		d.Tries++
		if d.WebhookDelivery, err = tx.Delivery(ctx, d.ID); err != nil {
			return err
		}
		isOpen, err := w.dropUnlessOpen(ctx, tx, d)
		if err != nil || !isOpen {
			return err
		}
		c, err = w.prepare(ctx, tx, d)
		return err
	})
	if errors.Is(err, store.ErrNone) {
		return nil, nil //nolint:nilnil // it has since been deleted
	}
	return c, err
}

// dropUnlessOpen drops the delivery unless the webhook still gets events, and reports whether it
// does: it must be enabled, and its tenant active.
func (w *Webhooks) dropUnlessOpen(ctx context.Context, tx *store.Tx, d store.QueuedDelivery) (isOpen bool, err error) {
	hook, err := tx.Webhook(ctx, d.WebhookID)
	if err != nil {
		return false, err
	}
	isOpen = hook.Enabled
	if isOpen && hook.TenantID != "" {
		tenant, err := tx.Tenant(ctx, hook.TenantID)
		if err != nil {
			return false, err
		}
		isOpen = tenant.Status == doorward.TenantActive
	}
	if isOpen {
		return true, nil
	}
	w.counts.dropped.Add(1)
	d.State = doorward.DeliveryDropped
	return false, tx.FinishAttempt(ctx, d, tx.Now)
}

func (w *Webhooks) prepare(ctx context.Context, tx *store.Tx, d store.QueuedDelivery) (*claimed, error) {
	c := &claimed{QueuedDelivery: d}
	var err error
	if c.webhook, err = tx.Webhook(ctx, d.WebhookID); err != nil {
		return nil, err
	}
	if c.signer, err = w.signer(ctx, tx.Reader, d.WebhookID, tx.Now); doorward.HasCode(err, doorward.CodeMasterKeyMissing) {
		c.unsentReason = NoMasterKey
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	event, err := tx.Event(ctx, d.EventID)
	if errors.Is(err, store.ErrNone) {
		c.unsentReason, c.Step = NoEvent, len(schedule) // the last step: it is given up
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.body, err = payload(c.webhook, event)
	return c, err
}

// post makes one attempt, and returns how long the endpoint asks to wait (Retry-After).
func (w *Webhooks) post(ctx context.Context, endpoint, id string, body []byte, s signer) (attempt doorward.DeliveryAttempt, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	now, began := w.db.Now(), time.Now()
	attempt.At = now
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err == nil {
		r.Header = headers(id, now, body, s)
		var answer guard.Answer
		if answer, err = w.client.Do(r); err == nil {
			attempt.Status, attempt.Answer = answer.Status, storedText(answer.Body, maxStoredAnswer)
			wait = retryAfter(answer.Header.Get("Retry-After"), now)
		}
	}
	attempt.Ms = time.Since(began).Milliseconds()
	if err != nil {
		attempt.Error = describe(err)
	}
	if attempt.Error == NotAllowed {
		attempt.Ms = 0 // the time that resolving took would tell, too
	}
	return attempt, wait
}

// headers returns the headers of a message, as Standard Webhooks names them.
func headers(id string, at time.Time, body []byte, s signer) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Doorward-Webhooks/1")
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("Webhook-Signature", s.sign(id, at, body))
	return h
}

// describe returns why there is no answer, as a fixed text: errors of the network name internal
// addresses. Only the fault of a certificate is quoted.
func describe(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return Cancelled
	case guard.IsRefused(err), errors.As(err, &name): // also a resolver that doesn't answer in time
		return NotAllowed
	case errors.Is(err, context.DeadlineExceeded):
		return Late
	case errors.As(err, &certificate):
		return NotTrusted + storedText([]byte(certificate.Err.Error()), maxStoredFault)
	case errors.Is(err, syscall.ECONNREFUSED):
		return NotAccepted
	case errors.Is(err, syscall.ECONNRESET):
		return Reset
	}
	return Broken
}

// storedText returns the first bytes of what an endpoint sent, without what PostgreSQL rejects.
func storedText(sent []byte, most int) string {
	text := strings.ToValidUTF8(string(sent[:min(len(sent), most)]), "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}

// retryAfter parses the header: a number of seconds, however large, or a date (RFC 9110, section
// 10.2.3).
func retryAfter(text string, now time.Time) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), retryAfterMax)
}

var errNotDelivered = errors.New("webhook: not delivered")

// failure returns nil if the status is 2xx, else errNotDelivered.
func failure(a doorward.DeliveryAttempt) error {
	if a.Error == "" && a.Status >= 200 && a.Status < 300 {
		return nil
	}
	return errNotDelivered
}

// outcomeOf returns how the attempt counts in charts.
func outcomeOf(a doorward.DeliveryAttempt) doorward.UsageOutcome {
	switch {
	case failure(a) == nil:
		return doorward.UsageDelivered
	case a.Error == "":
		return doorward.UsageRefused
	}
	return doorward.UsageSilent
}

// record stores the result of an attempt and the health of the endpoint. A status 410 disables
// the webhook.
func (w *Webhooks) record(ctx context.Context, c *claimed, attempt doorward.DeliveryAttempt, wait time.Duration) error {
	d := c.QueuedDelivery
	d.Attempts = append(d.Attempts, attempt)
	d.Attempts = d.Attempts[max(0, len(d.Attempts)-maxStoredAttempts):]
	pause := w.settle(&d, attempt, wait)
	err := w.upkeep(ctx, func(tx *store.Tx) error {
		if err := tx.FinishAttempt(ctx, d, tx.Now.Add(pause)); err != nil || c.unsentReason != "" {
			return err
		}
		var err error
		if failure(attempt) != nil {
			err = tx.RecordWebhookFailure(ctx, d.WebhookID)
		} else {
			err = tx.RecordWebhookSuccess(ctx, d.WebhookID, attempt.Ms < quickWithin.Milliseconds())
		}
		if err != nil {
			return err
		}
		return tx.CountUsage(ctx, doorward.UsageCount{SubjectID: d.WebhookID, At: tx.Now.Truncate(time.Hour), Outcome: outcomeOf(attempt), Times: 1})
	})
	if err == nil && attempt.Status == http.StatusGone {
		err = w.disable(ctx, c.webhook, doorward.DisabledGone, nil)
	}
	return err
}

// settle sets the state that follows from an attempt, and returns the pause before the next.
func (w *Webhooks) settle(d *store.QueuedDelivery, attempt doorward.DeliveryAttempt, wait time.Duration) time.Duration {
	switch {
	case failure(attempt) == nil:
		d.State = doorward.DeliveryDone
		w.counts.delivered.Add(1)
		return 0
	case d.Step >= len(schedule):
		d.State = doorward.DeliveryGivenUp
		w.counts.failed.Add(1)
		return 0
	}
	pause := jitter(schedule[d.Step])
	d.State, d.Step = doorward.DeliveryPending, d.Step+1
	w.counts.retried.Add(1)
	return max(pause, wait)
}

// jitter returns the pause, longer or shorter by up to a tenth, so that attempts that failed
// together aren't repeated together.
func jitter(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.9 + 0.2*rand.Float64()))
}
