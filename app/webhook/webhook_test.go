package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// receiver is an endpoint that remembers the ids of the messages it has received.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	ids []string
}

// newReceiver returns a receiver that answers the n-th message, from 1, with the status that
// answer returns; for 0 it never answers.
func newReceiver(t *testing.T, answer func(n int) (status int)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		r.mu.Lock()
		r.ids = append(r.ids, req.Header.Get("Webhook-Id"))
		n := len(r.ids)
		r.mu.Unlock()
		status := answer(n)
		if status == 0 {
			<-req.Context().Done()
			return
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ids...)
}

func always(status int) func(int) int { return func(int) int { return status } }

// createHook creates a webhook.
func createHook(f *apptest.Fixture, by doorward.Caller, url string, events ...string) doorward.Webhook {
	f.Helper()
	f.UseMasterKey()
	made, err := f.Node(0).Webhooks.Create(f.Context(), by, webhook.Draft{URL: &url, Events: &events})
	f.NoError(err)
	return made.Webhook
}

func deliveries(f *apptest.Fixture, w doorward.Webhook) []doorward.WebhookDelivery {
	f.Helper()
	page, err := f.DB.Read().DeliveryPage(f.Context(), w.ID, "", doorward.Window{Limit: 200})
	f.NoError(err)
	return page.Items
}

// TestSchedule: the pauses between attempts are those of docs/webhooks.md, within a tenth;
// after the last one the delivery is given up.
func TestSchedule(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		to := newReceiver(t, always(500))
		w := createHook(f, owner.Caller, to.URL, "user.*")
		f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
		for i, want := range []time.Duration{
			5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour, 0,
		} {
			f.NoError(f.Node(i).Webhooks.Deliver(f.Context()))
			d := deliveries(f, w)[0]
			if len(d.Attempts) != i+1 {
				t.Fatalf("there were %d attempts, want %d", len(d.Attempts), i+1)
			}
			if want == 0 {
				if d.State != doorward.DeliveryGivenUp || d.NextAt != nil {
					t.Errorf("after the last attempt the delivery is %s", d.State)
				}
				break
			}
			pause := d.NextAt.Sub(clock.Now())
			if pause < want*9/10-time.Second || pause > want*11/10 {
				t.Errorf("after attempt %d it waits for %v, want %v", i+1, pause, want)
			}
			clock.Move(pause)
		}
	})
}

// TestRetryAfter: if an endpoint asks for a longer pause than that of the schedule, in either
// form, the pause is that long, up to a day.
func TestRetryAfter(t *testing.T) {
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	_, owner := f.Tenant()
	header := ""
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", header)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer to.Close()
	w := createHook(f, owner.Caller, to.URL, "user.*")
	for text, want := range map[string]time.Duration{
		"1": 5 * time.Second, "3600": time.Hour, "108000": 24 * time.Hour, "99999999999999999999999": 24 * time.Hour,
		clock.Now().Add(2 * time.Hour).Format(http.TimeFormat): 2 * time.Hour, clock.Now().Add(40 * time.Hour).Format(http.TimeFormat): 24 * time.Hour,
		clock.Now().Add(-time.Hour).Format(http.TimeFormat): 5 * time.Second, "-5": 5 * time.Second, "soon": 5 * time.Second,
	} {
		header = text
		clock.Move(time.Millisecond) // sorts the deliveries
		f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
		f.NoError(f.Node(0).Webhooks.Deliver(f.Context()))
		pause := deliveries(f, w)[0].NextAt.Sub(clock.Now())
		if pause < want*9/10-time.Second || pause > want*11/10 {
			t.Errorf("with %q it waits for %v, want %v", text, pause, want)
		}
	}
}

// TestUsage: each attempt is counted once, by its outcome, in the hour of its end; counts end after 30 days.
func TestUsage(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		to := newReceiver(t, func(n int) int { return []int{204, 500, 204}[min(n, 3)-1] })
		w := createHook(f, owner.Caller, to.URL, "user.*")
		counted := func() map[doorward.UsageOutcome]int64 {
			all := map[doorward.UsageOutcome]int64{}
			counts, err := f.Node(0).Webhooks.UsageOfAll(f.Context(), owner.Caller, clock.Now().Add(-25*time.Hour))
			f.NoError(err)
			for _, c := range counts {
				if c.SubjectID != w.ID || !c.At.Equal(c.At.Truncate(time.Hour)) {
					t.Errorf("counted: %+v", c)
				}
				all[c.Outcome] += c.Times
			}
			return all
		}
		deliver := func() {
			f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
			f.NoError(f.Node(0).Webhooks.Deliver(f.Context()))
			clock.Move(time.Minute)
		}
		for range 3 { // delivered, refused, and both: the refused one is due again
			deliver()
		}
		to.Close()
		deliver()
		if diff := cmp.Diff(map[doorward.UsageOutcome]int64{doorward.UsageDelivered: 3, doorward.UsageRefused: 1, doorward.UsageSilent: 1}, counted()); diff != "" {
			t.Error(diff)
		}
		_, stranger := f.Tenant()
		if _, err := f.Node(0).Webhooks.Usage(f.Context(), stranger.Caller, w.ID, clock.Now()); apptest.Code(err) != doorward.CodeNotFound {
			t.Errorf("another tenant is told: %v", err)
		}
		clock.Move(doorward.UsageKept + time.Hour)
		f.NoError(f.Node(0).Overviews.Sweep(f.Context()))
		if n := f.Int(`SELECT count(*) FROM usage_counts`); n != 0 {
			t.Errorf("%d old counts are left", n)
		}
	})
}

// TestFailingForDays: notices after an hour and a day, and the disabling after five days, once
// each.
func TestFailingForDays(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		w := createHook(f, owner.Caller, newReceiver(t, always(500)).URL, "user.*")
		f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
		f.NoError(f.Node(0).Webhooks.Deliver(f.Context()))
		sweep := func() (kinds map[doorward.Action]int) {
			for i := range 2 {
				f.NoError(f.Node(i).Webhooks.Sweep(f.Context()))
			}
			kinds = map[doorward.Action]int{}
			page, err := f.DB.Read().EventPage(f.Context(), w.TenantID, store.EventFilter{Target: w.ID}, doorward.Window{Limit: 100})
			f.NoError(err)
			for _, e := range page.Items {
				kinds[e.Action]++
			}
			return kinds
		}
		for _, step := range []struct {
			after             time.Duration
			failing, disabled int
		}{{59 * time.Minute, 0, 0}, {time.Minute, 1, 0}, {22 * time.Hour, 1, 0}, {time.Hour, 2, 0}, {95 * time.Hour, 2, 0}, {time.Hour, 2, 1}, {time.Hour, 2, 1}} {
			clock.Move(step.after)
			if got := sweep(); got[doorward.WebhookFailing] != step.failing || got[doorward.WebhookDisable] != step.disabled {
				t.Errorf("%v later the events are %v", step.after, got)
			}
		}
		current, err := f.DB.Read().Webhook(f.Context(), w.ID)
		f.NoError(err)
		if current.Enabled || current.DisabledReason != doorward.DisabledFailing || deliveries(f, w)[0].State != doorward.DeliveryDropped {
			t.Errorf("the webhook is %+v, with the deliveries %+v", current, deliveries(f, w))
		}
	})
}

// TestSweepPassesFailingWebhooks: a sweep that can't record the notice about one webhook sends those about
// the others, and its error names that webhook.
func TestSweepPassesFailingWebhooks(t *testing.T) {
	t.Parallel()
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	_, owner := f.Tenant()
	to := newReceiver(t, always(500)).URL
	for range 3 {
		createHook(f, owner.Caller, to, "user.*")
	}
	var failing string
	f.NoError(f.SQL().QueryRow(`SELECT min(id) FROM webhooks`).Scan(&failing))
	f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
	f.NoError(f.Node(0).Webhooks.Deliver(f.Context()))
	clock.Move(time.Hour)
	f.Exec(fmt.Sprintf(`CREATE TRIGGER fail BEFORE UPDATE ON webhooks WHEN old.id = '%s' BEGIN SELECT RAISE(ABORT, 'this row is broken'); END`, failing))
	if err := f.Node(0).Webhooks.Sweep(f.Context()); err == nil || !strings.Contains(err.Error(), failing) {
		t.Errorf("the sweep ends with %v, want the error of %s", err, failing)
	}
	if n := f.Int(`SELECT count(*) FROM webhooks WHERE notices = 1`); n != 2 {
		t.Errorf("the notices about %d webhooks are recorded, want 2", n)
	}
}

// TestRaceTakenOver: if a node dies during an attempt, another node repeats it with the same id once
// the claim is over, and not before.
func TestRaceTakenOver(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		f.AddNode(apptest.NoLimits, clock.Now)
		_, owner := f.Tenant()
		to := newReceiver(t, func(n int) int { return []int{0, 204}[min(n, 2)-1] }) // answers all messages but the first
		w := createHook(f, owner.Caller, to.URL, "user.*")
		f.NoError(f.Nodes[len(f.Nodes)-1].MasterKey.Load(f.Context()))
		f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
		ctx, die := context.WithCancel(f.Context())
		died := make(chan struct{})
		go func() { f.Node(0).Webhooks.Run(ctx); close(died) }()
		f.Until("the first attempt is under way", func() bool { return len(to.got()) == 1 })
		die()
		<-died
		other := f.Nodes[len(f.Nodes)-1].Webhooks
		f.NoError(other.Deliver(f.Context()))
		if n := len(to.got()); n != 1 {
			t.Fatalf("%d messages came before the claim was over", n)
		}
		clock.Move(31 * time.Second) // a claim lasts 30 s
		f.NoError(other.Deliver(f.Context()))
		if got := to.got(); len(got) != 2 || got[0] != got[1] {
			t.Errorf("the messages that came have the ids %v", got)
		}
		if d := deliveries(f, w)[0]; d.State != doorward.DeliveryDone {
			t.Errorf("the delivery is %s", d.State)
		}
	})
}

// TestRaceNodesShare: three nodes deliver many events, each once.
func TestRaceNodesShare(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	for len(f.Nodes) < 3 {
		f.AddNode(apptest.NoLimits, time.Now)
	}
	_, owner := f.Tenant()
	to := newReceiver(t, always(204))
	w := createHook(f, owner.Caller, to.URL, "user.*")
	if _, err := f.Node(0).Webhooks.Test(f.Context(), owner.Caller, w.ID); err != nil {
		t.Fatal(err)
	}
	const events = 60
	for range events {
		f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
	}
	ctx, stop := context.WithCancel(f.Context())
	var running sync.WaitGroup
	for i := range 3 {
		f.NoError(f.Node(i).MasterKey.Load(f.Context()))
		running.Go(func() { f.Node(i).Webhooks.Run(ctx) })
	}
	f.Until("all are delivered", func() bool {
		vitals, err := f.DB.Read().Vitals(f.Context(), f.DB.Now())
		return err == nil && vitals.Deliveries == 0
	})
	stop()
	running.Wait()
	seen := map[string]bool{}
	for _, id := range to.got() {
		seen[id] = true
	}
	if len(seen) != events+1 || len(to.got()) != events+1 { // with the message of Test
		t.Errorf("%d messages with %d ids came, want %d", len(to.got()), len(seen), events+1)
	}
}

// TestWithoutMasterKey: a node without the master key can't sign messages. It leaves deliveries, and
// their attempts, to a node that has the key, and makes them once it has the key itself.
func TestWithoutMasterKey(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	to := newReceiver(t, always(204))
	w := createHook(f, owner.Caller, to.URL, "user.*")
	f.AddNode(apptest.NoLimits, time.Now)
	keyless := f.Nodes[len(f.Nodes)-1]
	f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
	f.NoError(keyless.Webhooks.Deliver(f.Context()))
	if d := deliveries(f, w)[0]; d.State != doorward.DeliveryPending || len(d.Attempts) > 0 {
		t.Errorf("the node without the key has left the delivery %s with the attempts %v", d.State, d.Attempts)
	}
	f.NoError(f.Node(0).Webhooks.Deliver(f.Context()))
	f.NoError(keyless.MasterKey.Load(f.Context()))
	f.Invite(owner, f.NewEmail("y"), doorward.RoleUser)
	f.NoError(keyless.Webhooks.Deliver(f.Context()))
	for _, d := range deliveries(f, w) {
		if d.State != doorward.DeliveryDone || len(d.Attempts) != 1 {
			t.Errorf("a delivery is %s after the attempts %v", d.State, d.Attempts)
		}
	}
}

// TestRaceManyDeadEndpoints: a live endpoint doesn't wait for thousands of others that hang or refuse,
// which cost little memory. At full size it waits for less than two seconds.
func TestRaceManyDeadEndpoints(t *testing.T) {
	dead := apptest.Rounds(1000, 10_000)
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	to := newReceiver(t, always(204))
	live := createHook(f, owner.Caller, to.URL, "user.*")
	if _, err := f.Node(0).Webhooks.Test(f.Context(), owner.Caller, live.ID); err != nil {
		t.Fatal(err)
	}
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	f.NoError(err)
	defer hanging.Close() //nolint:errcheck // the test is over
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	f.NoError(err)
	f.NoError(refusing.Close())
	for i := 0; i < dead; i += 500 {
		f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
			for n := range 500 {
				at := []net.Addr{hanging.Addr(), refusing.Addr()}[n%2]
				if err := insertDead(f, tx, fmt.Sprintf("http://%s/%d", at, n)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	_, err = f.Node(0).Access.Do(f.Context(), apptest.Operator, doorward.KeyCreate, doorward.Object{Type: "key"}, func(*access.Tx) error { return nil })
	f.NoError(err) // the event for all dead endpoints
	ctx, stop := context.WithCancel(f.Context())
	var running sync.WaitGroup
	running.Go(func() { f.Node(0).Webhooks.Run(ctx) })
	defer running.Wait()
	defer stop()
	f.Until("dead endpoints have all slots", func() bool { return f.Node(0).Webhooks.Sending().Slow > 0 && f.Node(0).Webhooks.Counts().Retried > 4 })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	longest := time.Duration(0)
	for i := range 5 {
		began := time.Now()
		f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
		f.Until("the live endpoint has its event", func() bool { return len(to.got()) == i+2 }) // with the message of Test
		longest = max(longest, time.Since(began))
		if s := f.Node(0).Webhooks.Sending(); s.Slow > 8 || s.Fast > 24 {
			t.Errorf("%d attempts at once to fast endpoints and %d to slow ones", s.Fast, s.Slow)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("beside %d dead endpoints the live one waits for %v at most; the heap has %d MiB", dead, longest, after.HeapAlloc>>20)
	if fulltest.On() && longest > 2*time.Second { // measured in make test-all only
		t.Errorf("the live endpoint waited for %v", longest)
	}
	if after.HeapAlloc > before.HeapAlloc+64<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
}

// insertDead adds a webhook of the installation, for an event that the live one doesn't get.
func insertDead(f *apptest.Fixture, tx *store.Tx, url string) error {
	w := doorward.Webhook{ID: doorward.NewID(doorward.PrefixWebhook), URL: url, Events: []string{"key.create"}, Enabled: true, CreatedAt: tx.Now}
	var s store.WebhookSecrets
	for column, to := range map[string]*[]byte{"secret_sealed": &s.Secret, "private_sealed": &s.Private} {
		sealed, err := f.Node(0).MasterKey.Seal(f.Context(), tx, seal.Place{Table: "webhooks", ID: w.ID, Column: column}, []byte(strings.Repeat("x", 32)))
		if err != nil {
			return err
		}
		*to = sealed
	}
	return tx.InsertWebhook(f.Context(), w, s)
}

// TestRaceAtMostTwenty: of 26 requests at once to create a webhook, for the installation or a
// tenant, twenty succeed.
func TestRaceAtMostTwenty(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	f.NoError(f.Node(0).MasterKey.Load(f.Context()))
	_, owner := f.Tenant()
	for _, by := range []doorward.Caller{apptest.Operator, owner.Caller} {
		var made atomic.Int64
		var all sync.WaitGroup
		for range 26 {
			all.Go(func() {
				url, events := "http://localhost:1/", []string{"user.*"}
				_, err := f.Node(0).Webhooks.Create(f.Context(), by, webhook.Draft{URL: &url, Events: &events})
				switch {
				case err == nil:
					made.Add(1)
				case !doorward.HasCode(err, doorward.CodeTooManyWebhooks):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if made.Load() != doorward.WebhooksMax {
			t.Errorf("%d were made", made.Load())
		}
	}
}

// TestDeliveriesGoInBatches: a sweep deletes the deliveries of a deleted webhook, and finished
// deliveries that are old, also when they don't fit into one batch. Other deliveries stay.
func TestDeliveriesGoInBatches(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		f.Invite(owner, f.NewEmail("x"), doorward.RoleUser)
		deleted, other := createHook(f, owner.Caller, "http://localhost:1/", "user.*"), createHook(f, owner.Caller, "http://localhost:1/", "user.*")
		queue := func(w doorward.Webhook, n int) {
			ids, err := f.DB.Read().EventsToReplay(f.Context(), store.Replay{TenantID: w.TenantID, Actions: []doorward.Action{doorward.UserInvite}, Limit: 1})
			f.NoError(err)
			f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
				for range n {
					if _, err := tx.QueueReplay(f.Context(), w.ID, ids); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		queue(deleted, 501)
		queue(other, 501)
		f.NoError(f.Node(0).Webhooks.Delete(f.Context(), owner.Caller, deleted.ID))
		if _, err := f.Node(1).Webhooks.Get(f.Context(), owner.Caller, deleted.ID); !doorward.HasCode(err, doorward.CodeNotFound) {
			t.Errorf("the deleted webhook is still there: %v", err)
		}
		f.NoError(f.Node(1).Webhooks.Sweep(f.Context()))
		if _, err := f.DB.Read().Webhook(f.Context(), deleted.ID); !errors.Is(err, store.ErrNone) || len(deliveries(f, deleted)) > 0 || len(deliveries(f, other)) != 200 { // a full page
			t.Errorf("after the sweep: %v, %d and %d deliveries", err, len(deliveries(f, deleted)), len(deliveries(f, other)))
		}
		f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
			_, err := tx.DropDeliveries(f.Context(), other.ID)
			return err
		}))
		clock.Move(31 * 24 * time.Hour)
		queue(other, 2)
		f.NoError(f.Node(1).Webhooks.Sweep(f.Context()))
		if remaining := deliveries(f, other); len(remaining) != 2 {
			t.Errorf("%d deliveries are left", len(remaining))
		}
	})
}
