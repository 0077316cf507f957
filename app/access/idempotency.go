package access

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// A call with an Idempotency-Key has a mark in the database, from BeginCall on. The feature stores
// the answer with Tx.KeepAnswer, in the transaction that makes the object. KeepAnswer fails unless
// the attempt still has the mark. So only one attempt commits, on all nodes and after crashes, and
// the others get its answer.

// BeginCall marks the call as being in progress. If an earlier attempt has succeeded, it returns
// the sealed answer of that attempt instead, once every node has applied the revocations that the
// attempt caused. Errors: idempotency_key_reused if that attempt had another body,
// idempotency_in_progress, unavailable.
func (w *Writer) BeginCall(ctx context.Context, call *doorward.IdempotentCall) (answer []byte, err error) {
	if err := w.db.Clock().Err(); err != nil {
		return nil, err
	}
	err = w.Upkeep(ctx, func(tx *store.Tx) (err error) {
		answer, err = begin(ctx, tx, call)
		return err
	})
	if err != nil || answer == nil {
		return nil, err
	}
	_, err = w.waitForNodes(ctx, w.lease.SettleAll)
	return answer, err
}

func begin(ctx context.Context, tx *store.Tx, call *doorward.IdempotentCall) ([]byte, error) {
	if marked, err := tx.MarkCall(ctx, *call); marked || err != nil {
		return nil, err
	}
	known, err := tx.KnownCall(ctx, call.ID)
	switch {
	case errors.Is(err, store.ErrNone): // the other attempt has just failed
		return nil, inProgress()
	case err != nil:
		return nil, err
	case !bytes.Equal(known.Body, call.Body):
		return nil, doorward.Fail(doorward.CodeIdempotencyKeyReused, "")
	case known.Answer == nil:
		return nil, inProgress()
	}
	tx.ForceDurable() // the caller relies on what the answer says
	return known.Answer, nil
}

func inProgress() error {
	return &doorward.Error{Code: doorward.CodeIdempotencyInProgress, RetryAfter: time.Second}
}

// unmarkWithin bounds the work after a failed attempt.
const unmarkWithin = 250 * time.Millisecond

// AbandonCall removes the mark of a failed attempt, so that the next one can begin at once. It
// does nothing if the answer of the attempt is stored: the transaction may be committed although
// the caller got an error. If the write fails, the mark expires by itself.
func (w *Writer) AbandonCall(ctx context.Context, call *doorward.IdempotentCall) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // no time is left before the answer
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkWithin)
	defer cancel()
	_ = w.Upkeep(ctx, func(tx *store.Tx) error { return tx.UnmarkCall(ctx, *call) })
}

// KeepAnswer stores the answer in this transaction if the caller's request has an
// Idempotency-Key. The feature calls it once, at the end, with the value that it will return.
// Errors: those of judge; idempotency_in_progress if the attempt has lost its mark; then the transaction
// must be rolled back.
func (tx *Tx) KeepAnswer(ctx context.Context, result any) error {
	if tx.By.Idempotent == nil {
		return nil
	}
	if err := judge(ctx, tx.Tx, tx.By); err != nil { // before the answer is sealed, which says whether a replay needs a proof
		return err
	}
	return keepAnswer(ctx, tx.Tx, tx.By, result)
}

// KeepAnswerAlone is Tx.KeepAnswer in a transaction of its own, for a call that succeeds and
// changes nothing, such as one with several invitations that are all refused.
func (w *Writer) KeepAnswerAlone(ctx context.Context, by doorward.Caller, result any) error {
	if by.Idempotent == nil {
		return nil
	}
	return w.Upkeep(ctx, func(tx *store.Tx) error { return keepAnswer(ctx, tx, by, result) })
}

func keepAnswer(ctx context.Context, tx *store.Tx, by doorward.Caller, result any) error {
	answer, err := by.Idempotent.Answer(result)
	if err != nil {
		return err
	}
	stored, err := tx.KeepAnswer(ctx, *by.Idempotent, answer)
	if err == nil && !stored {
		err = inProgress()
	}
	return err
}

// SweepCalls deletes marks and answers that have expired.
func (w *Writer) SweepCalls(ctx context.Context) error {
	return w.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteExpiredCalls(ctx, limit) })
}
