package access

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// A call with an Idempotency-Key has a mark in the database from BeginCall on. The
// feature keeps its answer by Tx.KeepAnswer, in the transaction that makes something, and
// only while the attempt has the mark. So of all attempts, on all nodes and through
// crashes, one commits, and with it the answer that the others get.

// BeginCall marks the call as under way. If an earlier attempt has succeeded, it returns
// that attempt's sealed answer instead, after every node has applied the revocations that
// it caused. Errors: idempotency_key_reused when the body was another one,
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

// AbandonCall lets the next attempt begin at once, after this one has failed. It does
// nothing if the attempt's answer is kept: the transaction may be committed although the
// caller got an error. If the write fails, the mark expires by itself.
func (w *Writer) AbandonCall(ctx context.Context, call *doorward.IdempotentCall) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // no time is left before the answer
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkWithin)
	defer cancel()
	_ = w.Upkeep(ctx, func(tx *store.Tx) error { return tx.UnmarkCall(ctx, *call) })
}

// KeepAnswer keeps the answer to the caller's request, if it has an Idempotency-Key, in this
// transaction. The feature calls it once, last, with what it will return. Errors:
// idempotency_in_progress if the attempt has lost its mark, after which nothing may
// be committed.
func (tx *Tx) KeepAnswer(ctx context.Context, result any) error {
	return keepAnswer(ctx, tx.Tx, tx.By, result)
}

// KeepAnswerAlone is Tx.KeepAnswer in a transaction of its own. It is for a call that succeeds
// and changes nothing, such as several invitations of which each is refused.
func (w *Writer) KeepAnswerAlone(ctx context.Context, by doorward.Caller, result any) error {
	if by.Idempotent == nil {
		return nil
	}
	return w.Upkeep(ctx, func(tx *store.Tx) error { return keepAnswer(ctx, tx, by, result) })
}

func keepAnswer(ctx context.Context, tx *store.Tx, by doorward.Caller, result any) error {
	if by.Idempotent == nil {
		return nil
	}
	answer, err := by.Idempotent.Answer(result)
	if err != nil {
		return err
	}
	kept, err := tx.KeepAnswer(ctx, *by.Idempotent, answer)
	if err == nil && !kept {
		err = inProgress()
	}
	return err
}

// SweepCalls deletes marks and answers that have expired.
func (w *Writer) SweepCalls(ctx context.Context) error {
	return w.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteExpiredCalls(ctx, limit) })
}
