package app_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
)

// raw asks the database past the store, for one number.
func (w *world) raw(query string, args ...any) (n int) {
	w.Helper()
	driver, source := "pgx", w.dsn
	if path, is := strings.CutPrefix(w.dsn, "sqlite:"); is {
		driver, source = "sqlite", path
	}
	db, err := sql.Open(driver, source)
	w.ok(err)
	defer db.Close()
	w.ok(db.QueryRowContext(w.Context(), query, args...).Scan(&n))
	return n
}

func (w *world) size(table string) int { w.Helper(); return w.raw(`SELECT count(*) FROM ` + table) }

// at is somebody unknown at the address.
func at(ip string) doorward.Caller {
	return doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: ip, RequestID: "req_test"}
}

// A flood of requests for resets, from many networks for many addresses, leaves a
// handful of rows, and after an hour nothing but the events.
func TestFloodOfForgotten(t *testing.T) {
	onEachLimited(t, newAhead, func(w *world, clock *ahead) {
		_, owner := w.tenant()
		w.settle()
		events, mails, throttles := w.size("events"), w.size("mails"), w.size("throttles")
		const networks, each = 60, 25
		w.ends(together(networks, func(i int) error {
			for n := range each {
				by := at(fmt.Sprintf("198.51.%d.%d", i/250, i%250))
				if err := w.on(i).Passwords.Forgot(w.Context(), by, fmt.Sprintf("a%d.%d@nowhere.example", i, n), ""); err != nil {
					return err
				}
			}
			return nil
		}), tally{"": networks})
		w.ok(w.on(0).Passwords.Forgot(w.Context(), stranger(1), owner.Email, ""))
		if got := w.size("events") - events; got != 0 {
			w.Errorf("the requests themselves made %d events", got)
		}
		w.drain()
		clock.move(time.Minute)
		w.drain()
		// One for the owner; for each minute that it took, ten networks and the rest.
		if got := w.size("events") - events; got < 2 || got > 1+3*11 {
			w.Errorf("%d events of %d requests", got, networks*each)
		}
		if got := w.raw(`SELECT CAST(sum(times) AS BIGINT) FROM events WHERE action = 'password.forgot'`); got != networks*each+1 {
			w.Errorf("the events tell of %d requests, want %d", got, networks*each+1)
		}
		if got := w.size("mails") - mails; got != 1 {
			w.Errorf("%d mails, want the owner's", got)
		}
		if got := w.size("inbox"); got != 0 {
			w.Errorf("%d rows stay in the inbox", got)
		}
		clock.move(time.Hour)
		w.ok(w.on(0).Sweep(w.Context()))
		if got := w.size("throttles"); got > throttles {
			w.Errorf("%d counters were %d before, an hour ago", got, throttles)
		}
	})
}

// drain has all that is due recorded.
func (w *world) drain() {
	w.Helper()
	for _, node := range w.nodes {
		w.ok(node.Access.Inbox().Flush(w.Context()))
		w.ok(node.Inbox.Due(w.Context()))
	}
}

// A network asks thirty times an hour, an address gets three, and what is more
// writes nothing.
func TestForgottenPerNetwork(t *testing.T) {
	onEachLimited(t, newAhead, func(w *world, clock *ahead) {
		_, owner := w.tenant()
		forgot := func(ip, email string) doorward.Code {
			return code(w.on(0).Passwords.Forgot(w.Context(), at(ip), email, ""))
		}
		for n := range 3 {
			for _, email := range []string{owner.Email, "nobody@example.com"} {
				if got := forgot(fmt.Sprintf("192.0.2.%d", n), email); got != "" {
					w.Errorf("%s for the mail %d to %s", got, n, email)
				}
			}
		}
		written := w.size("inbox") + w.size("throttles")
		for _, email := range []string{owner.Email, "nobody@example.com"} {
			if got := forgot("192.0.2.9", email); got != doorward.CodeTooManyAttempts {
				w.Errorf("%q for the fourth mail to %s", got, email)
			}
		}
		if got := w.size("inbox") + w.size("throttles"); got != written {
			w.Errorf("refusals wrote %d rows", got-written)
		}
		for _, ip := range []string{"203.0.113.1", "2001:db8:1:2:%x::1"} {
			for n := range 31 {
				from := ip
				if strings.Contains(ip, "%") {
					from = fmt.Sprintf(ip, n)
				}
				want := doorward.Code("")
				if n == 30 {
					want = doorward.CodeTooManyAttempts
				}
				if got := forgot(from, fmt.Sprintf("n%d@example.com", n)); got != want {
					w.Errorf("%q for request %d from %s, want %q", got, n, from, want)
				}
				clock.move(time.Second)
			}
		}
		clock.move(time.Hour)
		if got := forgot("203.0.113.1", "n1@example.com"); got != "" {
			w.Errorf("%s an hour later", got)
		}
	})
}

// While somebody holds the chains of the tenant and of the installation, strangers
// are answered, and equally: what they do waits for neither.
func TestStrangersWaitForNoChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, engines[1], noLimits, time.Now)
	acme, owner := w.tenant()
	viewer := w.join(owner, doorward.RoleViewer)
	w.settle()
	w.ok(w.on(0).Access.Upkeep(t.Context(), func(tx *store.Tx) error { // so that there is one
		return tx.InsertEvent(t.Context(), doorward.Event{ID: "evt_1", Action: doorward.KeyCreate, Outcome: doorward.Done})
	}))
	db, err := sql.Open("pgx", w.dsn)
	w.ok(err)
	defer db.Close()
	held, err := db.BeginTx(t.Context(), nil)
	w.ok(err)
	defer held.Rollback() //nolint:errcheck // it has written nothing
	var chains int
	w.ok(held.QueryRowContext(t.Context(), `SELECT count(*) FROM (SELECT 1 FROM audit_chains WHERE tenant_id IN ('', $1) FOR UPDATE) c`, acme.ID).Scan(&chains))
	if chains != 2 {
		t.Fatalf("%d chains are held, want 2", chains)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	refuse := func(n int) {
		err := w.on(n).Access.Require(ctx, viewer.Caller, doorward.AuditRead, doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID})
		if code(err) != doorward.CodeForbidden {
			t.Errorf("a member is refused with %v", err)
		}
	}
	refuse(0)
	working, stop := context.WithCancel(t.Context())
	var worker sync.WaitGroup
	worker.Go(func() { w.on(0).Inbox.Run(working) })
	defer worker.Wait()
	defer stop()
	for waiting := 0; waiting == 0; { // until the worker has claimed that refusal
		w.ok(db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
	}
	for n := range 5 {
		for _, email := range []string{owner.Email, "nobody@example.com"} {
			_, err := w.on(n).Login.WithPassword(ctx, stranger(n), email, "not the password", "")
			if code(err) != doorward.CodeInvalidCredentials {
				t.Errorf("a login of %s: %v", email, err)
			}
			if err := w.on(n).Passwords.Forgot(ctx, stranger(n), fmt.Sprint(n, email), ""); err != nil {
				t.Errorf("forgotten of %s: %v", email, err)
			}
		}
		refuse(n)
	}
	w.ok(held.Rollback())
}

// Each refusal is recorded once, whichever workers meet, and wherever one ends.
func TestRecordedOnce(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		w.settle()
		const refusals = 300
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		w.ends(together(10, func(i int) error {
			for n := range refusals / 10 {
				by := owner.Caller
				by.ID = fmt.Sprintf("usr_%d_%d", i, n)
				err := w.on(n).Access.Refuse(w.Context(), by, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
				if code(err) != doorward.CodeForbidden {
					return err
				}
			}
			return nil
		}), tally{"": 10})
		var workers sync.WaitGroup
		for i := range 6 {
			workers.Go(func() {
				for n := range 20 { // killed somewhere, all but the last time
					ctx, kill := context.WithTimeout(w.Context(), time.Duration(n*i)*time.Millisecond)
					_ = w.on(i).Inbox.Due(ctx)
					kill()
				}
			})
		}
		workers.Wait()
		w.drain()
		if got := w.raw(`SELECT count(DISTINCT actor_id) FROM events WHERE action = 'settings.manage' AND outcome = 'refused'`); got != refusals {
			w.Errorf("%d of %d refusals are recorded", got, refusals)
		}
		if got := w.raw(`SELECT count(*) FROM events WHERE action = 'settings.manage' AND outcome = 'refused'`); got != refusals {
			w.Errorf("%d events of %d refusals", got, refusals)
		}
		_, faults, err := w.on(0).Audit.Verify(w.Context(), acme.ID)
		w.ok(err)
		if len(faults) > 0 {
			w.Errorf("the chain is at fault: %v", faults)
		}
	})
}

// A worker that is killed after the first of a minute lets the next one go on with
// the rest of the minute.
func TestCountedOverNodes(t *testing.T) {
	onEachLimited(t, newAhead, func(w *world, clock *ahead) {
		acme, owner := w.tenant()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		refuse := func(n int) {
			err := w.on(n).Access.Refuse(w.Context(), owner.Caller, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
			if code(err) != doorward.CodeForbidden {
				w.Fatal(err)
			}
		}
		for n := range 200 {
			refuse(n)
			if n%50 == 0 {
				w.drain()
			}
		}
		clock.move(time.Minute)
		w.drain()
		events := w.raw(`SELECT count(*) FROM events WHERE action = 'settings.manage'`)
		if sum := w.raw(`SELECT CAST(sum(times) AS BIGINT) FROM events WHERE action = 'settings.manage'`); sum != 200 || events > 4 {
			w.Errorf("%d refusals in %d events, want 200 in two for each minute", sum, events)
		}
		if got := w.size("inbox"); got != 0 {
			w.Errorf("%d rows stay", got)
		}
	})
}

// What a node counted in memory comes in when another one has closed the minute.
func TestRepetitionsThatComeLate(t *testing.T) {
	onEachLimited(t, newAhead, func(w *world, clock *ahead) {
		acme, owner := w.tenant()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		for range 5 {
			_ = w.on(0).Access.Refuse(w.Context(), owner.Caller, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
			if got := w.tries("nobody@example.com", "not the password"); got != doorward.CodeInvalidCredentials && got != doorward.CodeTooManyAttempts {
				w.Fatal(got)
			}
		}
		w.ok(w.on(0).Inbox.Due(w.Context()))
		clock.move(time.Minute)
		w.ok(w.on(0).Inbox.Due(w.Context()))
		w.ok(w.on(0).Inbox.Due(w.Context()))
		clock.move(time.Minute)
		w.drain()
		clock.move(time.Minute)
		w.drain()
		if sum := w.raw(`SELECT CAST(sum(times) AS BIGINT) FROM events WHERE outcome = 'refused'`); sum != 10 {
			w.Errorf("%d refusals are recorded, want 10", sum)
		}
	})
}

// The mail of somebody with an account doesn't wait for what others have asked
// before.
func TestResetWhileJunkWaits(t *testing.T) {
	onEach(t, func(w *world) {
		_, owner := w.tenant()
		w.settle()
		const junk = 3000
		now := w.db.Now()
		w.ok(w.on(0).Access.Upkeep(w.Context(), func(tx *store.Tx) error {
			for n := range junk {
				email := fmt.Sprintf("n%d@nowhere.example", n)
				row := store.InboxRow{
					Source: fmt.Sprint("net", n), Action: doorward.PasswordForgot, Subject: "1 " + email, Minute: now.Truncate(store.InboxMinute), Email: email, Hits: 1,
					Event: doorward.Event{ID: "evt_x", At: now, Action: doorward.PasswordForgot, Outcome: doorward.Done, ActorType: doorward.Anonymous, Target: doorward.Object{Type: "user"}, IP: fmt.Sprintf("10.0.%d.%d", n/250, n%250)},
				}
				if err := tx.FileInbox(w.Context(), row, false); err != nil {
					return err
				}
			}
			return nil
		}))
		w.ok(w.on(0).Passwords.Forgot(w.Context(), stranger(0), owner.Email, ""))
		select {
		case <-w.db.MailQueued(): // of the mails before
		default:
		}
		left := make(chan int, 1)
		ctx, stop := context.WithCancel(w.Context())
		defer stop()
		go func() {
			<-w.db.MailQueued()
			left <- w.size("inbox")
			stop()
		}()
		_ = w.nodes[len(w.nodes)-1].Inbox.Due(ctx)
		if n := <-left; n < junk/2 {
			w.Errorf("%d of %d others are left when the mail is queued", n, junk)
		}
	})
}

// What is refused about a tenant that is gone leaves no trail.
func TestRefusalsOfTheDestroyed(t *testing.T) {
	onEachLimited(t, newAhead, func(w *world, clock *ahead) {
		acme, owner := w.tenant()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		refuse := func() {
			err := w.on(0).Access.Refuse(w.Context(), owner.Caller, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
			if code(err) != doorward.CodeForbidden {
				w.Fatal(err)
			}
		}
		_, _, err := w.on(0).Tenants.Close(w.Context(), owner.Caller, acme.Name)
		w.ok(err)
		refuse()
		clock.move(hold + time.Hour)
		w.ok(w.on(0).Sweep(w.Context()))
		refuse()
		w.drain()
		w.settle()
		if n := w.raw(`SELECT count(*) FROM audit_chains WHERE tenant_id = $1`, acme.ID) + w.raw(`SELECT count(*) FROM events WHERE tenant_id = $1`, acme.ID); n != 0 {
			w.Errorf("%d rows of a trail are there", n)
		}
	})
}

// A full inbox is a fault to who asks for a reset, and no other answer to who is
// refused.
func TestFullInboxIsUnavailable(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	w := newWorld(t, engine{"postgres", 1, func(testing.TB) string { return dsn }}, noLimits, time.Now)
	_, owner := w.tenant()
	w.settle()
	db, err := sql.Open("pgx", dsn)
	w.ok(err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `INSERT INTO inbox SELECT 'net' || n, 'session.refuse', 'forbidden', '', 0, '', '', '{}', 1, 1, 9000000000000000 FROM generate_series(1, 100000) n`)
	w.ok(err)
	w.ok(w.on(0).Access.Inbox().Count(t.Context()))
	if got := code(w.on(0).Passwords.Forgot(t.Context(), stranger(0), owner.Email, "")); got != doorward.CodeUnavailable {
		t.Errorf("forgotten is %q", got)
	}
	if got := w.tries(owner.Email, "not the password"); got != doorward.CodeInvalidCredentials {
		t.Errorf("a wrong password is %q", got)
	}
	if n := w.on(0).Access.Inbox().Dropped(); n != 1 || w.size("inbox") != 100000 {
		t.Errorf("%d dropped, %d rows", n, w.size("inbox"))
	}
	_, err = db.ExecContext(t.Context(), `DELETE FROM inbox`)
	w.ok(err)
	w.ok(w.on(0).Access.Inbox().Count(t.Context()))
	w.ok(w.on(0).Passwords.Forgot(t.Context(), stranger(0), owner.Email, ""))
}

// A row that nobody can read, and one whose event can't be added, keep no other one
// from being recorded, nor from being seen by who looks.
func TestPoisonInTheInbox(t *testing.T) {
	onEachLimited(t, newAhead, func(w *world, clock *ahead) {
		acme, owner := w.tenant()
		w.settle()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		const refusals = 250
		for n := range refusals {
			by := owner.Caller
			by.ID = fmt.Sprintf("usr_%03d", n)
			_ = w.on(0).Access.Refuse(w.Context(), by, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
		}
		w.ok(w.on(0).Passwords.Forgot(w.Context(), stranger(1), owner.Email, ""))
		var taken, event string
		w.ok(w.observe().QueryRow(`SELECT id FROM events WHERE tenant_id = $1 LIMIT 1`, acme.ID).Scan(&taken))
		w.ok(w.observe().QueryRow(`SELECT event FROM inbox WHERE source = 'usr_013'`).Scan(&event))
		poison := func(source, event string) {
			_, err := w.observe().Exec(`UPDATE inbox SET event = $1 WHERE source = $2`, event, source)
			w.ok(err)
		}
		poison("usr_007", `{"At":`)
		poison("usr_013", regexp.MustCompile(`evt_[a-z0-9]+`).ReplaceAllString(event, taken))
		mails := w.size("mails")
		w.settle()
		w.drain()
		recorded := func() int {
			return w.raw(`SELECT count(*) FROM events WHERE action = 'settings.manage' AND outcome = 'refused'`)
		}
		if got := recorded(); got != refusals-2 || w.size("mails") != mails+1 {
			w.Errorf("%d refusals are recorded, want %d; %d mails, want 1", got, refusals-2, w.size("mails")-mails)
		}
		if got := strings.Count(w.log.String(), "is set aside"); got == 0 {
			w.Errorf("the log says nothing:\n%s", w.log.String())
		}
		v, err := w.on(0).Vitals(w.Context())
		w.ok(err)
		if v.InboxAside != 2 {
			w.Errorf("%d of %d rows are set aside, want 2", v.InboxAside, v.InboxRows)
		}
		poison("usr_013", event) // as it was
		clock.move(time.Minute)
		w.drain()
		if got := recorded(); got != refusals-1 || w.size("inbox") != 1 {
			w.Errorf("%d refusals are recorded and %d rows left, want %d and 1", got, w.size("inbox"), refusals-1)
		}
	})
}
