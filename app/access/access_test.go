package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// fixture is a tenant with an OWNER, and a Writer to its database.
type fixture struct {
	*testing.T
	*Writer
	owner doorward.Caller
}

const tenantID = "tnt_acme"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, dbtest.SQLite(t))
}

func newFixtureOn(t *testing.T, dsn string) *fixture {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	h := &fixture{T: t, Writer: New(db, lease.New(db, time.Second))}
	h.prepare(func(tx *store.Tx) error {
		return tx.InsertTenant(t.Context(), doorward.Tenant{ID: tenantID, Name: "Acme", Status: doorward.TenantActive})
	})
	h.owner = h.join("owner", doorward.RoleOwner)
	return h
}

func (h *fixture) prepare(fn func(*store.Tx) error) {
	h.Helper()
	if err := h.Upkeep(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// join makes somebody a member, signs them in and returns the caller that a
// request would have.
func (h *fixture) join(name string, role doorward.Role) doorward.Caller {
	h.Helper()
	user := doorward.User{
		ID: "usr_" + name, Email: name + "@acme.example", Role: role, Status: doorward.UserActive,
		TenantID: tenantID, TenantName: "Acme", TenantStatus: doorward.TenantActive,
	}
	session := doorward.Session{ID: "ses_" + name, UserID: user.ID, TenantID: tenantID}
	h.prepare(func(tx *store.Tx) error {
		_, err := tx.InsertAccount(h.Context(), doorward.Account{ID: user.ID, Email: user.Email})
		if err == nil {
			_, err = tx.InsertMembership(h.Context(), user)
		}
		if err == nil {
			err = tx.InsertSession(h.Context(), session, []byte(name))
		}
		return err
	})
	return doorward.Caller{IP: "192.0.2.1", RequestID: "req_test", Principal: doorward.PrincipalOf(user, session)}
}

// staleRole returns the caller's principal with a role that is out of date.
func staleRole(by doorward.Caller, role doorward.Role) doorward.Principal {
	u := doorward.User{ID: by.ID, Email: by.Email, TenantID: by.TenantID, TenantStatus: by.TenantStatus, Role: role, Status: doorward.UserActive}
	return doorward.PrincipalOf(u, doorward.Session{ID: by.SessionID})
}

// do calls Do and returns only the error.
func (h *fixture) do(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object, fn func(*Tx) error) error {
	_, err := h.Do(ctx, by, action, on, fn)
	return err
}

// home is the callers' tenant.
var home = doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}

// mark writes a row that marked can find.
func (h *fixture) mark(tx *Tx, hash byte) error {
	return tx.InsertLinkToken(h.Context(), []byte{hash}, tenantID)
}

// marked reports whether the row of mark with the hash was committed.
func (h *fixture) marked(hash byte) bool {
	h.Helper()
	var exists bool
	err := h.Upkeep(h.Context(), func(tx *store.Tx) error {
		exists = tx.InsertLinkToken(h.Context(), []byte{hash}, "x") != nil // hashes are unique
		return errRollback
	})
	if !errors.Is(err, errRollback) && !exists {
		h.Fatal(err)
	}
	return exists
}

var errRollback = errors.New("roll back")

// events returns the tenant's trail, the oldest first.
func (h *fixture) events() []doorward.Event {
	h.Helper()
	all, err := storetest.Events(h.Context(), h.db.Read(), tenantID)
	if err != nil {
		h.Fatal(err)
	}
	return all
}

func wantCode(t *testing.T, err error, want doorward.Code) {
	t.Helper()
	if !doorward.HasCode(err, want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestDoRecordsWhatWasDone(t *testing.T) {
	h := newFixture(t)
	by, before := h.owner, len(h.events())
	_, err := h.Do(t.Context(), by, doorward.SettingsManage, home, func(tx *Tx) error {
		tx.Changed("name", "old", "new")
		return h.mark(tx, 1)
	})
	if err != nil || !h.marked(1) {
		t.Fatalf("written: %v, error %v", h.marked(1), err)
	}
	got := h.events()[before:]
	want := []doorward.Event{{
		Seq: int64(before) + 1, Action: doorward.SettingsManage, Outcome: doorward.Done, ActorType: doorward.ByUser, ActorID: "usr_owner",
		ActorEmail: "owner@acme.example", Target: home, IP: "192.0.2.1", RequestID: "req_test",
		Changes: []doorward.Change{{Field: "name", From: "old", To: "new"}},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(doorward.Event{}, "ID", "At")); diff != "" {
		t.Errorf("recorded:\n%s", diff)
	}
}

// refusals returns the events of the inbox, the oldest first.
func (h *fixture) refusals() []doorward.Event {
	h.Helper()
	rows, err := h.db.Read().PendingInbox(h.Context(), 1000)
	if err != nil {
		h.Fatal(err)
	}
	var all []doorward.Event
	for _, r := range rows {
		all = append(all, r.Event)
	}
	return all
}

// A refusal leaves a record in the inbox and nothing else, from each method.
func TestRefusalsAreRecorded(t *testing.T) {
	h := newFixture(t)
	viewer := h.join("viewer", doorward.RoleViewer)
	owner := h.owner
	before := len(h.events())
	wantCode(t, h.do(t.Context(), viewer, doorward.SettingsManage, home, func(tx *Tx) error { return h.mark(tx, 1) }), doorward.CodeForbidden)
	wantCode(t, h.Require(t.Context(), viewer, doorward.AuditRead, home), doorward.CodeForbidden)
	wantCode(t, h.do(t.Context(), owner, doorward.SettingsManage, home, func(tx *Tx) error {
		return errors.Join(h.mark(tx, 2), doorward.Fail(doorward.CodeTenantFrozen, ""))
	}), doorward.CodeTenantFrozen)
	wantCode(t, h.Refuse(t.Context(), viewer, doorward.SessionRefuse, home, doorward.Fail(doorward.CodeInvalidCredentials, "")), doorward.CodeInvalidCredentials)
	if h.marked(1) || h.marked(2) {
		t.Error("a refused write was committed")
	}
	if n := len(h.events()); n != before {
		t.Errorf("%d events were added to the chain", n-before)
	}
	var got []string
	for _, e := range h.refusals() {
		got = append(got, strings.Join([]string{string(e.Action), string(e.Outcome), e.ActorEmail, e.Changes[0].To}, " "))
	}
	want := []string{
		"settings.manage refused viewer@acme.example forbidden", "audit.read refused viewer@acme.example forbidden",
		"settings.manage refused owner@acme.example tenant_frozen", "session.refuse refused viewer@acme.example invalid_credentials",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded:\n%s", diff)
	}
}

// A write that fails for a reason other than a refusal records nothing.
func TestFailuresLeaveNothing(t *testing.T) {
	h := newFixture(t)
	by, before := h.owner, len(h.events())
	failure := errors.New("some fault")
	for _, fails := range []error{failure, doorward.Fail(doorward.CodeAlreadyMember, ""), doorward.Fail(doorward.CodeNotFound, ""), store.ErrNone} {
		_, err := h.Do(t.Context(), by, doorward.SettingsManage, home, func(tx *Tx) error {
			return errors.Join(h.mark(tx, 1), fails)
		})
		if !errors.Is(err, fails) {
			t.Errorf("the error is %v, want %v", err, fails)
		}
	}
	elsewhere := doorward.Object{Type: "tenant", ID: "tnt_other", TenantID: "tnt_other"}
	wantCode(t, h.do(t.Context(), by, doorward.SettingsManage, elsewhere, func(tx *Tx) error { return h.mark(tx, 1) }), doorward.CodeNotFound)
	wantCode(t, h.Require(t.Context(), by, doorward.SettingsManage, elsewhere), doorward.CodeNotFound)
	if h.marked(1) || len(h.events()) != before {
		t.Errorf("written: %v, events %v", h.marked(1), h.events()[before:])
	}
}

// The request is refused if the caller has lost the role, the membership or the
// session since it arrived.
func TestDecidedAgainInTheTransaction(t *testing.T) {
	h := newFixture(t)
	stale := h.join("viewer", doorward.RoleViewer)
	stale.Principal = staleRole(stale, doorward.RoleOwner)
	write := func(tx *Tx) error { return h.mark(tx, 1) }
	wantCode(t, h.do(t.Context(), stale, doorward.SettingsManage, home, write), doorward.CodeForbidden)

	gone := h.join("second", doorward.RoleOwner)
	h.prepare(func(tx *store.Tx) error {
		_, err := tx.DeleteSession(t.Context(), gone.SessionID)
		return err
	})
	wantCode(t, h.do(t.Context(), gone, doorward.SettingsManage, home, write), doorward.CodeUnauthenticated)
	if h.marked(1) {
		t.Error("the write was committed")
	}
}

// While an answer not_found is confirmed, the session of the caller may end. The answer is then
// that, and not a fault of the server.
func TestRefusedWhileNotFoundIsConfirmed(t *testing.T) {
	h := newFixtureOn(t, dbtest.Postgres(t))
	tries := 0
	err := h.do(t.Context(), h.owner, doorward.SettingsManage, home, func(*Tx) error {
		if tries++; tries == 1 {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		return doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	})
	wantCode(t, err, doorward.CodeUnauthenticated)
	if tries != 2 {
		t.Errorf("%d tries, want 2", tries)
	}
}

// In the transaction the caller has the current role of the membership.
func TestTheCallerInTheTransaction(t *testing.T) {
	h := newFixture(t)
	stale := h.owner
	stale.Principal = staleRole(stale, doorward.RoleAdmin)
	_, err := h.Do(t.Context(), stale, doorward.SettingsManage, home, func(tx *Tx) error {
		if tx.By.Role != doorward.RoleOwner {
			t.Errorf("the caller is %s in the transaction, want OWNER", tx.By.Role)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A notice names the event of its action. An action that fails leaves no notice and no event. One
// that changes nothing queues a notice without an event, which is never sent.
func TestNotify(t *testing.T) {
	h := newFixture(t)
	notify := func(end func(*Tx) error) error {
		return h.do(t.Context(), h.owner, doorward.SettingsManage, home, func(tx *Tx) error {
			tx.RecordUserAgent()
			return errors.Join(tx.Notify(t.Context(), store.MailRoleChanged, "ann@acme.example"), end(tx))
		})
	}
	notices := func() (about []string) {
		all, err := h.db.Read().DueMails(t.Context(), store.Mail{}, h.db.Now(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			about = append(about, m.SubjectID)
		}
		return about
	}
	h.owner.UserAgent = "a browser"
	wantCode(t, notify(func(*Tx) error { return doorward.Fail(doorward.CodeForbidden, "") }), doorward.CodeForbidden)
	if got := notices(); len(got) > 0 {
		t.Errorf("a failed action sent the notices %q", got)
	}
	if err := notify(func(*Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	about := notices()
	if len(about) != 1 {
		t.Fatalf("the notices are %q, want one", about)
	}
	if all, err := h.db.Read().DueMails(t.Context(), store.Mail{}, h.db.Now(), 100); err != nil || all[0].Share != tenantID {
		t.Errorf("the notice counts in the share of %q, %v; want the tenant", all[0].Share, err)
	}
	event, err := h.db.Read().Event(t.Context(), about[0])
	if want := []doorward.Change{{Field: doorward.FieldUserAgent, To: "a browser"}}; err != nil || event.Action != doorward.SettingsManage || !slices.Equal(event.Changes, want) {
		t.Errorf("the notice is about %+v, %v", event, err)
	}
	if err := notify(func(tx *Tx) error { tx.SkipEvent(); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, id := range notices() {
		if _, err := h.db.Read().Event(t.Context(), id); id != about[0] && !errors.Is(err, store.ErrNone) {
			t.Errorf("an action that changes nothing recorded the event %s, %v", id, err)
		}
	}
}

// TestEventsOfCommandsSayWhoAndWhy: not only the event of the action, also those beside it and refusals.
func TestEventsOfCommandsSayWhoAndWhy(t *testing.T) {
	h := newFixture(t)
	operator := doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1", Reason: "ticket 4711"})
	want := []doorward.Change{{Field: doorward.FieldOperatorReason, To: "ticket 4711"}, {Field: doorward.FieldSystemUser, To: "root@db1"}}
	note := doorward.Change{Field: "status", To: "frozen"}
	err := h.do(t.Context(), operator, doorward.TenantFreeze, home, func(tx *Tx) error {
		tx.Changed(note.Field, note.From, note.To)
		return errors.Join(
			tx.RecordAlso(t.Context(), doorward.SessionEnd, home, note),
			tx.NotifyAlso(t.Context(), store.MailRoleChanged, nil, doorward.UserSuspend, home, note),
			tx.RecordAlsoBy(t.Context(), operator, doorward.UserResume, home, note),
			tx.NotifyAlsoBy(t.Context(), doorward.Caller{}, store.MailRoleChanged, nil, doorward.UserRemove, home, note))
	})
	if err != nil {
		t.Fatal(err)
	}
	events, err := h.db.Read().EventsAfter(t.Context(), tenantID, 0, 10)
	if err != nil || len(events) != 5 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, e := range events {
		want := append([]doorward.Change{note}, want...)
		if e.Action == doorward.UserRemove { // by somebody else, who is at no terminal
			want = want[:1]
		}
		if diff := cmp.Diff(want, e.Changes); diff != "" {
			t.Errorf("%s: %s", e.Action, diff)
		}
	}
}

// TestSystemUserOutlivesTheTarget: what a command says about who ran it is erased with the operator's
// data, which never is, and not with those of the person it was done to. The reason may be about the person.
func TestSystemUserOutlivesTheTarget(t *testing.T) {
	e := doorward.Event{}
	e.AddTerminal(doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1", Reason: "Ann asked"}))
	personal, values := e.SplitChanges()
	if len(personal) != 1 || personal[0].Field != doorward.FieldSystemUser || len(values) != 1 || values[0].Field != doorward.FieldOperatorReason {
		t.Errorf("about the actor %v, about the target %v", personal, values)
	}
}
