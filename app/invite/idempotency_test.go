package invite_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/store"
)

// TestLateAttemptMakesNothing: an attempt whose mark has expired, so that a second attempt has
// begun, writes nothing. Only the answer of the second attempt is kept.
func TestLateAttemptMakesNothing(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		try := func(node int, attempt string) (by doorward.Caller, begin func() ([]byte, error)) {
			by = owner.Caller
			by.Idempotent = &doorward.IdempotentCall{
				ID: []byte("a call"), TenantID: by.TenantID, Body: []byte("a body"), Attempt: attempt,
				Answer: func(made any) ([]byte, error) { return []byte(made.(doorward.Invitation).ID), nil },
			}
			return by, func() ([]byte, error) { return f.Node(node).Access.BeginCall(f.Context(), by.Idempotent) }
		}
		send := func(node int, by doorward.Caller) (doorward.Invitation, error) {
			return f.Node(node).Invitations.Send(f.Context(), by, invite.Offer{Email: "bob@example.com", Role: "USER"})
		}
		slow, begin := try(0, "slow")
		f.NoError(apptest.ErrorOf(begin()))
		clock.Move(5 * time.Second) // a mark expires after four
		quick, begin := try(1, "quick")
		f.NoError(apptest.ErrorOf(begin()))

		if _, err := send(0, slow); apptest.Code(err) != doorward.CodeIdempotencyInProgress {
			f.Errorf("the late attempt: %v", err)
		}
		f.Node(0).Access.AbandonCall(f.Context(), slow.Idempotent)
		made, err := send(1, quick)
		f.NoError(err)
		f.Node(1).Access.AbandonCall(f.Context(), quick.Idempotent) // as after a fault that follows the commit
		if _, err := send(0, slow); apptest.Code(err) == "" {
			f.Error("the late attempt has invited again")
		}
		_, begin = try(0, "third")
		answer, err := begin()
		f.NoError(err)
		if string(answer) != made.ID {
			f.Errorf("the third attempt gets %q, want the answer of the second, %q", answer, made.ID)
		}
		all, err := f.Node(0).Invitations.List(f.Context(), owner.Caller, invite.Filter{State: "PENDING"}, doorward.Window{Limit: 10})
		f.NoError(err)
		if len(all.Items) != 1 {
			f.Errorf("%d invitations are pending, want one", len(all.Items))
		}
	})
}

// TestSweepSparesAnAnswer: a mark has expired before the commit that keeps the answer, and the
// answer is still there after a sweep that found the mark and waited for that commit.
func TestSweepSparesAnAnswer(t *testing.T) {
	t.Parallel()
	clock := apptest.NewMovedClock()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, clock.Now)
	call := doorward.IdempotentCall{ID: []byte("a call"), Body: []byte("a body"), Attempt: "slow"}
	f.NoError(apptest.ErrorOf(f.Node(0).Access.BeginCall(f.Context(), &call)))
	clock.Move(5 * time.Second) // a mark expires after four
	var swept error
	done := make(chan struct{})
	f.WhileLocked(func(tx *store.Tx) error {
		return apptest.ErrorOf(tx.KeepAnswer(f.Context(), call, []byte("an answer")))
	}, func(waitFor func(int, <-chan struct{})) {
		go func() {
			defer close(done)
			swept = f.Node(0).Access.SweepCalls(f.Context())
		}()
		waitFor(1, done)
	})
	<-done
	f.NoError(swept)
	again := call
	again.Attempt = "again"
	if answer, err := f.Node(1).Access.BeginCall(f.Context(), &again); string(answer) != "an answer" {
		t.Errorf("the next attempt gets %q, %v", answer, err)
	}
}
