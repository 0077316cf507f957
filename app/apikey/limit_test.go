package apikey_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/waittest"
)

// TestRaceLimitHoldsOverNodes: both secrets of a key together, at all nodes together, get at
// most the limit × (t + 1) in t seconds. Reading the key again from the database doesn't
// raise that.
func TestRaceLimitHoldsOverNodes(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const limit = 20
		c := newKey(f)
		perSecond := int64(limit)
		_, _, err := f.Node(0).APIKeys.Edit(f.Context(), c.tenantOwner.Caller, c.key.ID, apikey.Edit{PerSecond: &perSecond})
		f.NoError(err)
		rotated, err := f.Node(0).APIKeys.Rotate(f.Context(), c.tenantOwner.Caller, c.key.ID, nil)
		f.NoError(err)
		secrets := []string{c.secret.Reveal(), rotated.Secret.Reveal()}
		f.Until("every node knows its share", func() bool {
			for i := range f.Nodes {
				if _, known := f.Node(i).Lease.Share(limit); !known {
					return false
				}
			}
			return true
		})
		var granted, refused atomic.Int64
		began := time.Now()
		running, stop := waittest.Interrupt(f.Context(), 1500*time.Millisecond)
		defer stop()
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() {
				for n := 0; running.Err() == nil || granted.Load() < limit || refused.Load() == 0; n++ {
					_, err := f.Node(i).APIKeys.Check(f.Context(), anonymousAt(serverAddress), secrets[(i+n)%2])
					switch apptest.Code(err) {
					case "":
						granted.Add(1)
					case doorward.CodeRateLimited:
						refused.Add(1)
					case doorward.CodeUnavailable: // the lease has ended on a busy machine
					default:
						f.Errorf("a check ends with %v", err)
						return
					}
					if i == 0 && n%1000 == 0 { // every node reads the key again
						_, err := f.Node(0).Users.SignOut(f.Context(), c.tenantOwner.Caller, c.owner.User)
						f.NoError(err)
					}
				}
			})
		}
		callers.Wait()
		took := time.Since(began).Seconds()
		if n := float64(granted.Load()); n > limit*(took+1) || n < limit || refused.Load() == 0 {
			f.Errorf("%v checks are granted in %.2f s, and %d refused; want %d to %.0f", n, took, refused.Load(), limit, limit*(took+1))
		}
	})
}

// TestLimitError: the error says when to ask again, and what the limit is.
func TestLimitError(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		c := newKey(f)
		perSecond := int64(1)
		_, _, err := f.Node(0).APIKeys.Edit(f.Context(), c.tenantOwner.Caller, c.key.ID, apikey.Edit{PerSecond: &perSecond})
		f.NoError(err)
		var limited error
		f.Until("a node refuses", func() bool {
			_, limited = f.Node(0).APIKeys.Check(f.Context(), anonymousAt(serverAddress), c.secret.Reveal())
			return apptest.Code(limited) == doorward.CodeRateLimited
		})
		a := doorward.AllowanceOf(limited)
		if a == nil || a.Name != "key" || a.Quota != 1 || a.Window != time.Second || a.Remaining != 0 || a.Reset <= 0 {
			f.Errorf("the allowance is %+v", a)
		}
		var e *doorward.Error
		if !errors.As(limited, &e) || e.RetryAfter < time.Second || a != nil && e.RetryAfter < a.Reset {
			f.Errorf("the error is %+v, and the allowance %+v", e, a)
		}
	})
}

// TestRefusedRequestIsNoUse: a request over the limit isn't recorded as a use, even if the
// key must be read first.
func TestRefusedRequestIsNoUse(t *testing.T) {
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	c, keys, ctx := newKey(f), f.Node(0).APIKeys, f.Context()
	var used time.Time
	perSecond := int64(1)
	f.Until("a refusal", func() bool {
		clock.Move(time.Minute)
		name := clock.Now().Format(time.RFC3339)
		_, _, err := keys.Edit(ctx, c.tenantOwner.Caller, c.key.ID, apikey.Edit{Name: &name, PerSecond: &perSecond}) // removes the key from memory
		f.NoError(err)
		_, err = keys.Check(ctx, anonymousAt(serverAddress), c.secret.Reveal())
		if err == nil {
			used = clock.Now()
		}
		return apptest.Code(err) == doorward.CodeRateLimited
	})
	f.NoError(keys.Flush(ctx))
	key, err := keys.Get(ctx, c.tenantOwner.Caller, c.key.ID)
	f.NoError(err)
	if key.LastUsedAt == nil || !key.LastUsedAt.Equal(doorward.Instant(used)) {
		t.Errorf("last used at %v, want %v: the next request was refused", key.LastUsedAt, used)
	}
}
