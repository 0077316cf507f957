package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// attemptAt is an attempt at the call with the id.
func attemptAt(id, attempt string) doorward.IdempotentCall {
	return doorward.IdempotentCall{ID: []byte(id), TenantID: "tnt_" + id, Body: []byte("body of " + attempt), Attempt: attempt}
}

// markCall marks the call for the attempt, and reports whether it got the mark.
func (f *fixture) markCall(c doorward.IdempotentCall) (marked bool) {
	f.Helper()
	f.write(func(tx *store.Tx) {
		var err error
		marked, err = tx.MarkCall(f.Context(), c)
		noError(f, err)
	})
	return marked
}

// keepAnswer keeps the attempt's answer, and reports whether it is kept.
func (f *fixture) keepAnswer(c doorward.IdempotentCall, answer string) (kept bool) {
	f.Helper()
	f.write(func(tx *store.Tx) {
		var err error
		kept, err = tx.KeepAnswer(f.Context(), c, []byte(answer))
		noError(f, err)
	})
	return kept
}

func (f *fixture) isKnown(id string) bool {
	f.Helper()
	_, err := f.Read().KnownCall(f.Context(), []byte(id))
	if errors.Is(err, store.ErrNone) {
		return false
	}
	noError(f, err)
	return true
}

// idempotentCalls: a mark belongs to its attempt until it expires; an answer is kept for
// 24 hours.
func idempotentCalls(f *fixture) {
	ctx := f.Context()
	first, second := attemptAt("a", "first"), attemptAt("a", "second")
	equal(f, f.isKnown("a"), false)
	equal(f, f.markCall(first), true)
	equal(f, f.markCall(second), false)
	equal(f, f.value(f.Read().KnownCall(ctx, first.ID)), store.KnownCall{Body: first.Body})
	equal(f, f.keepAnswer(second, "not its own mark"), false)

	f.clock.move(4*time.Second - time.Microsecond)
	equal(f, f.markCall(second), false)
	f.clock.move(time.Microsecond)
	equal(f, f.markCall(second), true)
	equal(f, f.keepAnswer(first, "too late"), false)
	f.write(func(tx *store.Tx) { noError(f, tx.UnmarkCall(ctx, first)) }) // no longer its own
	equal(f, f.keepAnswer(second, "answer"), true)
	equal(f, f.keepAnswer(second, "another"), false)
	f.write(func(tx *store.Tx) { noError(f, tx.UnmarkCall(ctx, second)) }) // an answer stays
	equal(f, f.value(f.Read().KnownCall(ctx, first.ID)), store.KnownCall{Body: second.Body, Answer: []byte("answer")})

	f.clock.move(24*time.Hour - time.Microsecond)
	equal(f, f.markCall(first), false)
	f.clock.move(time.Microsecond)
	equal(f, f.markCall(first), true)
	equal(f, f.value(f.Read().KnownCall(ctx, first.ID)), store.KnownCall{Body: first.Body})
	f.write(func(tx *store.Tx) { noError(f, tx.UnmarkCall(ctx, first)) })
	equal(f, f.isKnown("a"), false)
}

// endOfIdempotentCalls: expired rows are deleted in parts, those of a tenant, or all, at once.
func endOfIdempotentCalls(f *fixture) {
	ctx := f.Context()
	remaining := func() (all []string) {
		for _, id := range []string{"a", "b", "c", "d"} {
			if f.isKnown(id) {
				all = append(all, id)
			}
		}
		return all
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		equal(f, f.markCall(attemptAt(id, "one")), true)
	}
	equal(f, f.keepAnswer(attemptAt("c", "one"), "kept"), true)
	equal(f, f.keepAnswer(attemptAt("d", "one"), "kept"), true)
	f.clock.move(4 * time.Second)
	for _, want := range []int64{1, 1, 0} {
		f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteExpiredCalls(ctx, 1)), want) })
	}
	equal(f, remaining(), []string{"c", "d"})
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteCallsOf(ctx, "tnt_c")) })
	equal(f, remaining(), []string{"d"})
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteAllCalls(ctx)) })
	equal(f, remaining(), []string(nil))
}

// idempotentRaces: of many attempts at once one gets the mark, also when it has
// expired.
func idempotentRaces(f *fixture) {
	for range 3 {
		var marked atomic.Int64
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if f.markCall(attemptAt("a", string(rune('a'+i)))) {
					marked.Add(1)
				}
			})
		}
		all.Wait()
		equal(f, marked.Load(), int64(1))
		f.clock.move(4 * time.Second)
	}
}
