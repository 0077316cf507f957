package installation_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestPauseHoldsOnEveryNode: once the pause is confirmed, no change that begins afterwards
// is carried out, on any node, while several callers keep trying.
func TestPauseHoldsOnEveryNode(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		var paused, stop atomic.Bool
		var offered atomic.Int64
		address := func() string { return fmt.Sprintf("guest%d@acme.example", offered.Add(1)) }
		var late, before atomic.Int64
		var writers sync.WaitGroup
		for i := range 8 {
			writers.Go(func() {
				for !stop.Load() {
					wasPaused := paused.Load()
					_, err := f.Node(i).Invitations.Send(f.Context(), ann.Caller, apptest.Offer(address(), doorward.RoleViewer))
					switch {
					case err == nil && wasPaused:
						late.Add(1)
					case err == nil:
						before.Add(1)
					case !doorward.HasCode(err, doorward.CodeMaintenance):
						f.Error(err)
						return
					}
				}
			})
		}
		f.Until("something is changed", func() bool { return before.Load() > 8 })
		f.NoError(f.Node(0).Installation.PauseChanges(f.Context(), apptest.Operator, "We move."))
		paused.Store(true)
		for i := range f.Nodes {
			_, err := f.Node(i).Invitations.Send(f.Context(), ann.Caller, apptest.Offer(address(), doorward.RoleViewer))
			if !doorward.HasCode(err, doorward.CodeMaintenance) {
				f.Errorf("node %d: %v", i, err)
			}
		}
		stop.Store(true)
		writers.Wait()
		if late.Load() > 0 {
			f.Errorf("%d changes began after the pause", late.Load())
		}
		f.NoError(f.Node(1).Installation.ResumeChanges(f.Context(), apptest.Operator))
		_, err := f.Node(0).Invitations.Send(context.Background(), ann.Caller, apptest.Offer(address(), doorward.RoleViewer))
		f.NoError(err)
	})
}

// TestReasonsCanBeShown: a reason that can't be shown in one line is refused.
func TestReasonsCanBeShown(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		for _, bad := range []string{"a\nb", "a\u202eb", "\u2800", string(make([]byte, 200))} {
			if err := f.Node(0).Installation.PauseChanges(f.Context(), apptest.Operator, bad); !doorward.HasCode(err, doorward.CodeValidationFailed) {
				f.Errorf("%q: %v", bad, err)
			}
		}
	})
}
