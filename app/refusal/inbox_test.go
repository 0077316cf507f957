package refusal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// fixture is an inbox, and a caller who is refused.
type fixture struct {
	*testing.T
	*Inbox
	owner doorward.Caller
}

const tenantID = "tnt_acme"

func newFixture(t *testing.T, dsn string) *fixture {
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
	inbox := New(db, func(ctx context.Context, _ doorward.Action, fn func(*store.Tx) error) error {
		_, err := db.Write(ctx, fn)
		return err
	})
	return &fixture{t, inbox, doorward.Caller{IP: "192.0.2.1", Principal: doorward.Principal{Kind: doorward.ByUser, ID: "usr_owner", TenantID: tenantID}}}
}

func wantCode(t *testing.T, err error, want doorward.Code) {
	t.Helper()
	if !doorward.HasCode(err, want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// refuse records a refusal of the caller for the user id.
func (h *fixture) refuse(by doorward.Caller, id string) error {
	on := doorward.Object{Type: "user", ID: id, TenantID: tenantID}
	return h.Refuse(h.Context(), by, doorward.UserManage, on, doorward.Fail(doorward.CodeForbidden, ""))
}

// hits returns the number of unrecorded refusals in the inbox, by subject.
func (h *fixture) hits() map[string]int {
	h.Helper()
	rows, err := h.db.Read().PendingInbox(h.Context(), 1000)
	if err != nil {
		h.Fatal(err)
	}
	all := map[string]int{}
	for _, r := range rows {
		all[r.Subject] += r.Hits - r.Recorded
	}
	return all
}

// The first refusal of a minute is written before the answer, repetitions by
// Flush.
func TestRepetitionsAreCountedInMemory(t *testing.T) {
	h := newFixture(t, dbtest.SQLite(t))
	for range 500 {
		wantCode(t, h.refuse(h.owner, "usr_x"), doorward.CodeForbidden)
	}
	if got := h.hits(); len(got) != 1 || got[tenantID+" user usr_x  "] != 1 {
		t.Fatalf("written before the flush: %v", got)
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.hits()[tenantID+" user usr_x  "]; got != 500 {
		t.Errorf("%d refusals are counted, want 500", got)
	}
}

// One source can't fill the table with many subjects.
func TestSubjectsOfASourceAreBounded(t *testing.T) {
	h := newFixture(t, dbtest.SQLite(t))
	minute := func() time.Time { return h.db.Now().Truncate(store.InboxMinute) }
	before := minute()
	for n := range 10 * inboxSubjects {
		wantCode(t, h.refuse(h.owner, fmt.Sprint("usr_", n)), doorward.CodeForbidden)
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, sum := h.hits(), 0
	for _, n := range got {
		sum += n
	}
	most := inboxSubjects + 1
	if !minute().Equal(before) { // another minute has rows of its own
		most *= 2
	}
	if len(got) > most || sum != 10*inboxSubjects || got[inboxOthers] == 0 {
		t.Errorf("%d rows with %d hits", len(got), sum)
	}
}

// A refusal that can't be recorded is answered as a fault. Repetitions counted in
// memory are kept for the next flush.
func TestRefusalsWithoutDatabase(t *testing.T) {
	h := newFixture(t, dbtest.SQLite(t))
	wantCode(t, h.refuse(h.owner, "usr_x"), doorward.CodeForbidden)
	wantCode(t, h.refuse(h.owner, "usr_x"), doorward.CodeForbidden)
	broken := errors.New("the disk is gone")
	write := h.write
	h.write = func(context.Context, doorward.Action, func(*store.Tx) error) error {
		return doorward.Unavailable(broken)
	}
	wantCode(t, h.refuse(h.owner, "usr_y"), doorward.CodeUnavailable)
	wantCode(t, h.refuse(h.owner, "usr_y"), doorward.CodeUnavailable)
	if err := h.Flush(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("the flush ends with %v", err)
	}
	h.write = write
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.hits(); got[tenantID+" user usr_x  "] != 2 || len(got) != 1 {
		t.Errorf("the counts are %v", got)
	}
}

// A full inbox drops refusals and counts them; callers get the same answer.
func TestFullInbox(t *testing.T) {
	h := newFixture(t, dbtest.SQLite(t))
	h.rows.Store(inboxRows)
	wantCode(t, h.refuse(h.owner, "usr_x"), doorward.CodeForbidden)
	wantCode(t, h.refuse(h.owner, "usr_x"), doorward.CodeForbidden)
	if h.Dropped() != 2 || !h.IsFull() || len(h.hits()) != 0 {
		t.Errorf("%d dropped, full %v, written %v", h.Dropped(), h.IsFull(), h.hits())
	}
	if _, err := h.Count(t.Context()); err != nil || h.IsFull() {
		t.Errorf("after another count, full is %v, error %v", h.IsFull(), err)
	}
	wantCode(t, h.refuse(h.owner, "usr_x"), doorward.CodeForbidden)
	if len(h.hits()) != 1 {
		t.Errorf("the rows are %v", h.hits())
	}
}

// A refused view of a page is not recorded.
func TestViewsAreNotRecorded(t *testing.T) {
	h := newFixture(t, dbtest.SQLite(t))
	by := h.owner
	by.ViewOnly = true
	wantCode(t, h.refuse(by, "usr_x"), doorward.CodeForbidden)
	if got := h.hits(); len(got) != 0 {
		t.Errorf("the rows are %v", got)
	}
}

// When PostgreSQL refuses a value, only its row is lost.
func TestRefusedValuesHoldNothingBack(t *testing.T) {
	h := newFixture(t, dbtest.Postgres(t))
	long := "d" + manyDigits()
	wantCode(t, h.refuse(h.owner, "usr_a"), doorward.CodeForbidden)
	for _, subject := range []string{long, "c"} {
		h.earlier = append(h.earlier, store.InboxRow{Source: "s", Subject: subject, Minute: h.db.Now().Truncate(store.InboxMinute), Hits: 2})
	}
	if err := h.Flush(h.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.hits(); got["c"] != 2 || len(got) != 2 || h.Dropped() != 2 {
		t.Errorf("written %v, %d dropped", got, h.Dropped())
	}
}

// manyDigits returns a text that is too long for an index, however it is compressed.
func manyDigits() string {
	var b strings.Builder
	for range 10_000 {
		b.WriteByte('0' + byte(rand.IntN(10)))
	}
	return b.String()
}
