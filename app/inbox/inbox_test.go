package inbox_test

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
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
)

// While another transaction locks the chains of the tenant and of the
// installation, refused requests and requests for a reset don't wait, and are answered as
// usual.
func TestRaceRefusalsDoNotWaitForChains(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	acme, owner := f.Tenant()
	viewer := f.Join(owner, doorward.RoleViewer)
	f.RecordPending()
	f.NoError(f.Node(0).Access.Upkeep(t.Context(), func(tx *store.Tx) error { // so that the chain exists
		return tx.InsertEvent(t.Context(), doorward.Event{ID: "evt_1", Action: doorward.KeyCreate, Outcome: doorward.Done})
	}))
	db, err := sql.Open("pgx", f.DSN)
	f.NoError(err)
	defer db.Close()
	locking, err := db.BeginTx(t.Context(), nil)
	f.NoError(err)
	defer locking.Rollback() //nolint:errcheck // it has written nothing
	var chains int
	f.NoError(locking.QueryRowContext(t.Context(), `SELECT count(*) FROM (SELECT 1 FROM audit_chains WHERE tenant_id IN ('', $1) FOR UPDATE) c`, acme.ID).Scan(&chains))
	if chains != 2 {
		t.Fatalf("%d chains are locked, want 2", chains)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	refuse := func(n int) {
		err := f.Node(n).Access.Require(ctx, viewer.Caller, doorward.AuditRead, doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID})
		if apptest.Code(err) != doorward.CodeForbidden {
			t.Errorf("a member is refused with %v", err)
		}
	}
	refuse(0)
	working, stop := context.WithCancel(t.Context())
	var worker sync.WaitGroup
	worker.Go(func() { f.Node(0).Inbox.Run(working) })
	defer worker.Wait()
	defer stop()
	for waiting := 0; waiting == 0; { // until the worker waits for a lock
		f.NoError(db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
	}
	for n := range 5 {
		for _, email := range []string{owner.User.Email, "nobody@example.com"} {
			_, err := f.Node(n).Login.WithPassword(ctx, apptest.Anonymous(n), email, "not the password", "")
			if apptest.Code(err) != doorward.CodeInvalidCredentials {
				t.Errorf("a login of %s: %v", email, err)
			}
			if err := f.Node(n).Passwords.Forgot(ctx, apptest.Anonymous(n), fmt.Sprint(n, email), ""); err != nil {
				t.Errorf("a reset for %s: %v", email, err)
			}
		}
		refuse(n)
	}
	f.NoError(locking.Rollback())
}

// Each refusal is recorded once, even if workers overlap or are killed.
func TestRaceRecordedOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		f.RecordPending()
		const refusals = 300
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		f.WantCodes(apptest.Concurrently(10, func(i int) error {
			for n := range refusals / 10 {
				by := owner.Caller
				by.ID = fmt.Sprintf("usr_%d_%d", i, n)
				err := f.Node(n).Access.Refuse(f.Context(), by, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
				if apptest.Code(err) != doorward.CodeForbidden {
					return err
				}
			}
			return nil
		}), apptest.Codes{"": 10})
		var workers sync.WaitGroup
		for i := range 6 {
			workers.Go(func() {
				for n := range 20 { // each run is killed after 0 to 95 ms
					ctx, kill := waittest.Interrupt(f.Context(), time.Duration(n*i)*time.Millisecond)
					_ = f.Node(i).Inbox.RecordDue(ctx)
					kill()
				}
			})
		}
		workers.Wait()
		f.RecordDue()
		if got := f.Int(`SELECT count(DISTINCT actor_id) FROM events WHERE action = 'settings.manage' AND outcome = 'refused'`); got != refusals {
			f.Errorf("%d of %d refusals are recorded", got, refusals)
		}
		if got := f.Int(`SELECT count(*) FROM events WHERE action = 'settings.manage' AND outcome = 'refused'`); got != refusals {
			f.Errorf("%d events of %d refusals", got, refusals)
		}
		_, faults, err := f.Node(0).Audit.Verify(f.Context(), acme.ID)
		f.NoError(err)
		if len(faults) > 0 {
			f.Errorf("the chain has faults: %v", faults)
		}
	})
}

// Refusals that several nodes count in one minute are all recorded, in few events, even if
// some are recorded before the minute is over.
func TestCountedOverNodes(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		refuse := func(n int) {
			err := f.Node(n).Access.Refuse(f.Context(), owner.Caller, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
			if apptest.Code(err) != doorward.CodeForbidden {
				f.Fatal(err)
			}
		}
		for n := range 200 {
			refuse(n)
			if n%50 == 0 {
				f.RecordDue()
			}
		}
		clock.Move(time.Minute)
		f.RecordDue()
		events := f.Int(`SELECT count(*) FROM events WHERE action = 'settings.manage'`)
		if sum := f.Int(`SELECT CAST(sum(times) AS BIGINT) FROM events WHERE action = 'settings.manage'`); sum != 200 || events > 4 {
			f.Errorf("%d refusals in %d events, want 200 in two for each minute", sum, events)
		}
		if got := f.CountRows("inbox"); got != 0 {
			f.Errorf("%d rows are left", got)
		}
	})
}

// Refusals counted in memory are recorded after another node has closed the minute.
func TestRepetitionsThatComeLate(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		for range 5 {
			_ = f.Node(0).Access.Refuse(f.Context(), owner.Caller, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
			if got := f.TryLogin("nobody@example.com", "not the password"); got != doorward.CodeInvalidCredentials && got != doorward.CodeTooManyAttempts {
				f.Fatal(got)
			}
		}
		f.NoError(f.Node(0).Inbox.RecordDue(f.Context()))
		clock.Move(time.Minute)
		f.NoError(f.Node(0).Inbox.RecordDue(f.Context()))
		f.NoError(f.Node(0).Inbox.RecordDue(f.Context()))
		clock.Move(time.Minute)
		f.RecordDue()
		clock.Move(time.Minute)
		f.RecordDue()
		if sum := f.Int(`SELECT CAST(sum(times) AS BIGINT) FROM events WHERE outcome = 'refused'`); sum != 10 {
			f.Errorf("%d refusals are recorded, want 10", sum)
		}
	})
}

// The mail for an existing account doesn't wait for earlier requests of others.
func TestRaceResetWhileJunkWaits(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		f.RecordPending()
		const junk = 3000
		now := f.DB.Now()
		f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
			for n := range junk {
				email := fmt.Sprintf("n%d@nowhere.example", n)
				row := store.InboxRow{
					Source: fmt.Sprint("net", n), Action: doorward.PasswordForgot, Subject: "1 " + email, Minute: now.Truncate(store.InboxMinute), Email: email, Hits: 1,
					Event: doorward.Event{ID: "evt_x", At: now, Action: doorward.PasswordForgot, Outcome: doorward.Done, ActorType: doorward.Anonymous, Target: doorward.Object{Type: "user"}, IP: fmt.Sprintf("10.0.%d.%d", n/250, n%250)},
				}
				if err := tx.FileInbox(f.Context(), row); err != nil {
					return err
				}
			}
			return nil
		}))
		f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(0), owner.User.Email, ""))
		select {
		case <-f.DB.MailQueued(): // signals of earlier mails
		default:
		}
		remaining := make(chan int, 1)
		ctx, stop := context.WithCancel(f.Context())
		defer stop()
		go func() {
			<-f.DB.MailQueued()
			remaining <- f.CountRows("inbox")
			stop()
		}()
		_ = f.Nodes[len(f.Nodes)-1].Inbox.RecordDue(ctx)
		if n := <-remaining; n < junk/2 {
			f.Errorf("%d of %d other requests are left when the mail is queued", n, junk)
		}
	})
}

// A refusal about a destroyed tenant leaves no trail.
func TestRefusalsAfterDestruction(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		refuse := func() {
			err := f.Node(0).Access.Refuse(f.Context(), owner.Caller, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
			if apptest.Code(err) != doorward.CodeForbidden {
				f.Fatal(err)
			}
		}
		_, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
		f.NoError(err)
		refuse()
		clock.Move(apptest.TenantHold + time.Hour)
		f.NoError(f.Node(0).Sweep(f.Context()))
		refuse()
		f.RecordDue()
		f.RecordPending()
		if n := f.Int(`SELECT count(*) FROM audit_chains WHERE tenant_id = $1`, acme.ID) + f.Int(`SELECT count(*) FROM events WHERE tenant_id = $1`, acme.ID); n != 0 {
			f.Errorf("the trail has %d rows", n)
		}
	})
}

// While the inbox is full, a request for a reset gets the error unavailable, and refused
// requests are answered as usual.
func TestFullInboxIsUnavailable(t *testing.T) {
	t.Parallel()
	e := apptest.Postgres
	e.Nodes = 1
	f := apptest.New(t, e, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	f.RecordPending()
	db, err := sql.Open("pgx", f.DSN)
	f.NoError(err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `INSERT INTO inbox SELECT 'net' || n, 'session.refuse', 'forbidden', '', 0, '', '', '{}', 1, 1, 9000000000000000 FROM generate_series(1, 100000) n`)
	f.NoError(err)
	_, err = f.Node(0).Access.Inbox.Count(t.Context())
	f.NoError(err)
	if got := apptest.Code(f.Node(0).Passwords.Forgot(t.Context(), apptest.Anonymous(0), owner.User.Email, "")); got != doorward.CodeUnavailable {
		t.Errorf("a request for a reset: %q", got)
	}
	if got := f.TryLogin(owner.User.Email, "not the password"); got != doorward.CodeInvalidCredentials {
		t.Errorf("a wrong password: %q", got)
	}
	if n := f.Node(0).Access.Inbox.Dropped(); n != 1 || f.CountRows("inbox") != 100000 {
		t.Errorf("%d dropped, %d rows", n, f.CountRows("inbox"))
	}
	_, err = db.ExecContext(t.Context(), `DELETE FROM inbox`)
	f.NoError(err)
	_, err = f.Node(0).Access.Inbox.Count(t.Context())
	f.NoError(err)
	f.NoError(f.Node(0).Passwords.Forgot(t.Context(), apptest.Anonymous(0), owner.User.Email, ""))
}

// A row that can't be decoded, and a row whose event can't be inserted, don't block
// other rows or the overview of the inbox.
func TestUndecodableRowsDoNotBlock(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		f.RecordPending()
		on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
		const refusals = 250
		for n := range refusals {
			by := owner.Caller
			by.ID = fmt.Sprintf("usr_%03d", n)
			_ = f.Node(0).Access.Refuse(f.Context(), by, doorward.SettingsManage, on, doorward.Fail(doorward.CodeForbidden, ""))
		}
		f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(1), owner.User.Email, ""))
		var usedID, event string
		f.NoError(f.SQL().QueryRow(`SELECT id FROM events WHERE tenant_id = $1 LIMIT 1`, acme.ID).Scan(&usedID))
		f.NoError(f.SQL().QueryRow(`SELECT event FROM inbox WHERE source = 'usr_013'`).Scan(&event))
		setEvent := func(source, event string) {
			_, err := f.SQL().Exec(`UPDATE inbox SET event = $1 WHERE source = $2`, event, source)
			f.NoError(err)
		}
		setEvent("usr_007", `{"At":`)
		setEvent("usr_013", regexp.MustCompile(`evt_[a-z0-9]+`).ReplaceAllString(event, usedID))
		mails := f.CountRows("mails")
		f.RecordPending()
		f.RecordDue()
		recorded := func() int {
			return f.Int(`SELECT count(*) FROM events WHERE action = 'settings.manage' AND outcome = 'refused'`)
		}
		if got := recorded(); got != refusals-2 || f.CountRows("mails") != mails+1 {
			f.Errorf("%d refusals are recorded, want %d; %d mails, want 1", got, refusals-2, f.CountRows("mails")-mails)
		}
		if got := strings.Count(f.Log.String(), "is set aside"); got == 0 {
			f.Errorf("the log doesn't report the rows:\n%s", f.Log.String())
		}
		v, err := f.Node(0).Vitals(f.Context())
		f.NoError(err)
		if v.InboxAside != 2 {
			f.Errorf("%d of %d rows are set aside, want 2", v.InboxAside, v.InboxRows)
		}
		setEvent("usr_013", event) // restored
		clock.Move(time.Minute)
		f.RecordDue()
		if got := recorded(); got != refusals-1 || f.CountRows("inbox") != 1 {
			f.Errorf("%d refusals are recorded and %d rows are left, want %d and 1", got, f.CountRows("inbox"), refusals-1)
		}
	})
}
