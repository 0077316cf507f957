package apikey_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/secret"
)

// TestUsageIsCounted: requests on all nodes with both secrets of a key are added up by day. What could not be written
// is written later, once; a refused request doesn't count.
func TestUsageIsCounted(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		c, ctx := newKey(f), f.Context()
		use := func(node, times int, s secret.Key) {
			for range times {
				_, err := f.Node(node).APIKeys.Check(ctx, anonymousAt(serverAddress), s.Reveal())
				f.NoError(err)
			}
		}
		flush := func() {
			clock.Move(time.Minute)
			for node := range 2 {
				use(node, 1, c.secret) // what is used is written, about once a minute
				f.NoError(f.Node(node).APIKeys.Flush(ctx))
			}
		}
		first := clock.Now().UTC().Truncate(24 * time.Hour)
		use(0, 3, c.secret)
		use(1, 2, c.secret)
		if _, err := f.Node(0).APIKeys.Check(ctx, anonymousAt("198.51.100.9"), c.secret.Reveal()); err == nil {
			t.Fatal("a foreign address is accepted")
		}
		f.Exec(`CREATE TRIGGER fail BEFORE INSERT ON usage_counts BEGIN SELECT RAISE(ABORT, 'this table is broken'); END`)
		if err := f.Node(0).APIKeys.Flush(ctx); err == nil {
			t.Error("a write that failed has no error")
		}
		f.Exec(`DROP TRIGGER fail`)
		flush()
		grace := int64(24)
		r, err := f.Node(0).APIKeys.Rotate(ctx, c.tenantOwner.Caller, c.key.ID, &grace)
		f.NoError(err)
		clock.Move(23 * time.Hour)
		use(0, 4, r.Secret)
		flush()
		got, err := f.Node(0).APIKeys.Usage(ctx, c.tenantOwner.Caller, c.key.ID, first)
		f.NoError(err)
		sum := int64(0)
		for _, one := range got {
			sum += one.Times
		}
		if want := int64(3 + 2 + 2 + 4 + 2); sum != want || len(got) > 2 || !got[0].At.Equal(first) || got[0].Outcome != doorward.UsageUsed {
			t.Errorf("%+v, want %d uses from %v on", got, want, first)
		}
		_, stranger := f.Tenant()
		if _, err := f.Node(0).APIKeys.Usage(ctx, stranger.Caller, c.key.ID, first); apptest.Code(err) != doorward.CodeNotFound {
			t.Errorf("another tenant is told: %v", err)
		}
	})
}

// TestKeysEndingSoon: active keys that end by an instant, the earliest first, and nobody else's.
func TestKeysEndingSoon(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		c := newKey(f)
		names := func(by doorward.Caller, within time.Duration) (all []string) {
			found, err := f.Node(0).APIKeys.EndingSoon(f.Context(), by, clock.Now().Add(within), 9)
			f.NoError(err)
			for _, k := range found {
				all = append(all, k.Name)
			}
			return all
		}
		for days := int64(3); days >= 1; days-- {
			_, _, err := f.Node(0).APIKeys.Create(f.Context(), c.owner.Caller, apikey.Draft{Name: fmt.Sprint("ends ", days), Permissions: []string{"message.send"}, Days: &days})
			f.NoError(err)
		}
		if diff := cmp.Diff([]string{"ends 1", "ends 2"}, names(c.owner.Caller, 48*time.Hour)); diff != "" {
			t.Error(diff)
		}
		_, stranger := f.Tenant()
		if got := names(stranger.Caller, 48*time.Hour); got != nil {
			t.Errorf("another tenant is told of %v", got)
		}
	})
}

// TestRaceUsageIsCounted: uses while others are written are all counted.
func TestRaceUsageIsCounted(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		c, ctx, done := newKey(f), f.Context(), make(chan struct{})
		const each, users = 200, 4
		for range users {
			go func() {
				defer func() { done <- struct{}{} }()
				for range each {
					_, err := f.Node(0).APIKeys.Check(ctx, anonymousAt(serverAddress), c.secret.Reveal())
					f.NoError(err)
				}
			}()
		}
		for left := users; left > 0; {
			select {
			case <-done:
				left--
			default:
				f.NoError(f.Node(0).APIKeys.Flush(ctx))
			}
		}
		clock.Move(2 * time.Minute)
		_, err := f.Node(0).APIKeys.Check(ctx, anonymousAt(serverAddress), c.secret.Reveal())
		f.NoError(err)
		f.NoError(f.Node(0).APIKeys.Flush(ctx))
		counts, err := f.DB.Read().Usage(ctx, c.key.ID, time.UnixMicro(0))
		f.NoError(err)
		sum := int64(0)
		for _, one := range counts {
			sum += one.Times
		}
		if sum != each*users+1 {
			t.Errorf("%d of %d uses are counted", sum, each*users+1)
		}
	})
}
