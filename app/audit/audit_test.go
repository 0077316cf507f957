package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/storetest"
)

// fixture is an audit trail. raw is a connection that bypasses the store, like that of an attacker who
// has the password of the database.
type fixture struct {
	*testing.T
	*audit.Trail
	db  *store.DB
	raw *sql.DB
	dsn string
}

// onSQLite runs a test with a new trail on SQLite.
func onSQLite(t *testing.T, test func(*fixture)) {
	t.Helper()
	t.Parallel()
	dsn := dbtest.SQLite(t)
	test(newFixture(t, dsn, "sqlite", strings.TrimPrefix(dsn, "sqlite:")))
}

// onBoth runs a test with a new trail on each database.
func onBoth(t *testing.T, test func(*fixture)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { onSQLite(t, test) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := dbtest.Postgres(t)
		test(newFixture(t, dsn, "pgx", dsn))
	})
}

func newFixture(t *testing.T, dsn, driver, source string) *fixture {
	t.Helper()
	r := &fixture{T: t, dsn: dsn}
	r.db = r.open()
	r.Trail = audit.New(r.db, func(context.Context) {})
	var err error
	r.raw, err = sql.Open(driver, source)
	r.noError(err)
	t.Cleanup(func() { r.raw.Close() })
	return r
}

func (r *fixture) open() *store.DB {
	r.Helper()
	db, err := store.Open(r.Context(), r.dsn, time.Now)
	r.noError(err)
	r.Cleanup(func() { db.Close() })
	return db
}

func (r *fixture) noError(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// event returns an event whose ids contain the number n, in the trail of the tenant.
func event(tenantID string, n int) doorward.Event {
	return doorward.Event{
		ID: fmt.Sprintf("evt_%s%04d", tenantID, n), Action: doorward.UserRole, Outcome: doorward.Done,
		ActorType: doorward.ByUser, ActorID: "usr_ann", ActorEmail: "ann@acme.example",
		Target: doorward.Object{Type: "user", ID: fmt.Sprintf("usr_%04d", n), TenantID: tenantID},
		IP:     "192.0.2.7", RequestID: fmt.Sprintf("req_%04d", n),
		Changes: []doorward.Change{{Field: "role", From: "USER", To: "ADMIN"}},
	}
}

// writeEvents writes the events with these numbers, each in its own transaction.
func (r *fixture) writeEvents(tenantID string, from, to int) {
	r.Helper()
	for n := from; n <= to; n++ {
		_, err := r.db.Write(r.Context(), func(tx *store.Tx) error { return tx.InsertEvent(r.Context(), event(tenantID, n)) })
		r.noError(err)
	}
}

// tamper runs statements that bypass Doorward.
func (r *fixture) tamper(statements ...string) {
	r.Helper()
	for _, s := range statements {
		res, err := r.raw.Exec(s)
		r.noError(err)
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			r.Fatalf("%s: %d rows, %v: the statement changed nothing", s, n, err)
		}
	}
}

// verdict returns the faults that Verify finds, such as "edited 3".
func (r *fixture) verdict(tenantID string) (all []string) {
	r.Helper()
	_, faults, err := r.Verify(r.Context(), tenantID)
	r.noError(err)
	for _, f := range faults {
		all = append(all, fmt.Sprintf("%s %d", f.Kind, f.Seq))
	}
	return all
}

// mark returns the end of the chain. It fails the test if Verify finds a fault.
func (r *fixture) mark(tenantID string) audit.Mark {
	r.Helper()
	m, faults, err := r.Verify(r.Context(), tenantID)
	r.noError(err)
	if len(faults) > 0 {
		r.Fatalf("the chain has faults: %v", faults)
	}
	return m
}

// Verify finds each tampering and names its kind.
func TestTampering(t *testing.T) {
	const where = " WHERE tenant_id = 'tnt_a' AND seq = "
	moveUp := "UPDATE events SET seq = seq + 1 WHERE tenant_id = 'tnt_a' AND seq > 2"
	cases := map[string]struct {
		statements []string
		want       []string
	}{
		"id":              {[]string{"UPDATE events SET id = 'evt_x'" + where + "3"}, []string{"edited 3"}},
		"time":            {[]string{"UPDATE events SET at = at + 1" + where + "3"}, []string{"edited 3"}},
		"action":          {[]string{"UPDATE events SET action = 'user.remove'" + where + "3"}, []string{"edited 3"}},
		"outcome":         {[]string{"UPDATE events SET outcome = 'refused'" + where + "3"}, []string{"edited 3"}},
		"kind of actor":   {[]string{"UPDATE events SET actor_type = 'operator'" + where + "3"}, []string{"edited 3"}},
		"actor":           {[]string{"UPDATE events SET actor_id = 'usr_bob'" + where + "3"}, []string{"edited 3"}},
		"actor's address": {[]string{"UPDATE events SET actor_email = 'bob@acme.example'" + where + "3"}, []string{"edited 3"}},
		"kind of target":  {[]string{"UPDATE events SET target_type = 'key'" + where + "3"}, []string{"edited 3"}},
		"target":          {[]string{"UPDATE events SET target_id = 'usr_x'" + where + "3"}, []string{"edited 3"}},
		"address":         {[]string{"UPDATE events SET ip = '192.0.2.8'" + where + "3"}, []string{"edited 3"}},
		"request":         {[]string{"UPDATE events SET request_id = 'req_x'" + where + "3"}, []string{"edited 3"}},
		"changes":         {[]string{"UPDATE events SET changes = '[]'" + where + "3"}, []string{"edited 3"}},
		"bytes moved":     {[]string{"UPDATE events SET target_type = 'use', target_id = 'r' || target_id" + where + "3"}, []string{"edited 3"}},
		"salt":            {[]string{"UPDATE events SET salt = digest" + where + "3"}, []string{"edited 3"}},
		"digest":          {[]string{"UPDATE events SET digest = salt" + where + "3"}, []string{"edited 3"}},
		"hash":            {[]string{"UPDATE events SET hash = digest" + where + "3"}, []string{"edited 3"}},
		"no hash":         {[]string{"UPDATE events SET hash = NULL" + where + "3"}, []string{"edited 3"}},
		"first":           {[]string{"UPDATE events SET action = 'user.remove'" + where + "1"}, []string{"edited 1"}},
		"last":            {[]string{"UPDATE events SET action = 'user.remove'" + where + "6"}, []string{"edited 6"}},
		"blanked":         {[]string{"UPDATE events SET salt = NULL, actor_email = '', ip = '', changes = ''" + where + "3"}, []string{"edited 3"}},
		"salt removed":    {[]string{"UPDATE events SET salt = NULL" + where + "3"}, []string{"edited 3"}},

		"deleted first": {[]string{"DELETE FROM events" + where + "1"}, []string{"deleted 1"}},
		"deleted":       {[]string{"DELETE FROM events" + where + "3"}, []string{"deleted 3"}},
		"deleted two":   {[]string{"DELETE FROM events" + where + "3", "DELETE FROM events" + where + "4"}, []string{"deleted 3"}},
		"deleted last":  {[]string{"DELETE FROM events" + where + "6"}, []string{"cut off 6"}},
		"deleted all":   {[]string{"DELETE FROM events WHERE tenant_id = 'tnt_a'"}, []string{"cut off 1"}},
		"gap closed":    {[]string{"DELETE FROM events" + where + "3", "UPDATE events SET seq = seq - 1 WHERE tenant_id = 'tnt_a' AND seq > 3"}, []string{"edited 3", "reordered 4", "reordered 5", "cut off 6"}},
		"other tenant":  {[]string{"UPDATE events SET tenant_id = 'tnt_b'" + where + "3"}, []string{"deleted 3"}},

		"neighbours swapped":     {[]string{"UPDATE events SET seq = 7 - seq WHERE tenant_id = 'tnt_a' AND seq IN (3, 4)"}, []string{"reordered 3", "reordered 4"}},
		"swapped":                {[]string{"UPDATE events SET seq = 7 - seq WHERE tenant_id = 'tnt_a' AND seq IN (2, 5)"}, []string{"reordered 2", "reordered 5"}},
		"first and last swapped": {[]string{"UPDATE events SET seq = 7 - seq WHERE tenant_id = 'tnt_a' AND seq IN (1, 6)"}, []string{"reordered 1", "reordered 6"}},
		"contents swapped":       {[]string{swap(3, 4)}, []string{"edited 3", "edited 4"}},

		"inserted at a taken number": {[]string{insert(3)}, []string{"inserted 3"}},
		"inserted behind the end":    {[]string{insert(7)}, []string{"inserted 7"}},
		"inserted before the start":  {[]string{insert(0)}, []string{"inserted 0"}},
		"inserted in between":        {[]string{moveUp, insert(3)}, []string{"edited 3", "reordered 4", "reordered 5", "reordered 6", "inserted 7"}},
		"a later number":             {[]string{"UPDATE events SET seq = 9" + where + "6"}, []string{"deleted 6", "inserted 7"}},

		"head":             {[]string{"UPDATE audit_chains SET head = (SELECT hash FROM events" + where + "5) WHERE tenant_id = 'tnt_a'"}, []string{"cut off 6"}},
		"no head":          {[]string{"UPDATE audit_chains SET head = NULL WHERE tenant_id = 'tnt_a'"}, []string{"cut off 6"}},
		"end moved back":   {[]string{"UPDATE audit_chains SET last = 5 WHERE tenant_id = 'tnt_a'"}, []string{"inserted 6"}},
		"end moved on":     {[]string{"UPDATE audit_chains SET last = 9 WHERE tenant_id = 'tnt_a'"}, []string{"cut off 7"}},
		"the chain's row":  {[]string{"DELETE FROM audit_chains WHERE tenant_id = 'tnt_a'"}, []string{"cut off 1"}},
		"two in one chain": {[]string{"UPDATE events SET action = 'x'" + where + "2", "UPDATE events SET ip = 'x'" + where + "5"}, []string{"edited 2", "edited 5"}},
	}
	onSQLite(t, func(r *fixture) {
		tampered := 0
		for name, c := range cases {
			tampered++
			tenantID := fmt.Sprintf("tnt_%02d", tampered) // one chain per case
			r.writeEvents(tenantID, 1, 6)
			r.mark(tenantID)
			for _, statement := range c.statements {
				r.tamper(strings.NewReplacer("tnt_a", tenantID, "evt_x", "evt_x"+tenantID).Replace(statement))
			}
			got := r.verdict(tenantID)
			slices.Sort(got)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, got); diff != "" {
				r.Errorf("%s: found (-want +got):\n%s", name, diff)
			}
		}
		r.writeEvents("tnt_untouched", 1, 2)
		r.mark("tnt_untouched")
	})
}

// insert is an attacker's statement that adds a copy of event 3, which moveUp may have moved
// to 4.
func insert(seq int) string {
	return fmt.Sprintf(`INSERT INTO events (id, at, action, outcome, actor_type, actor_id, actor_email, target_type, target_id, tenant_id, ip, request_id, changes, personal, seq, salt, digest, values_salt, values_digest, hash)
SELECT 'evt_x', at, 'user.remove', outcome, actor_type, actor_id, actor_email, target_type, target_id, tenant_id, ip, request_id, changes, personal, %d, salt, digest, values_salt, values_digest, hash
FROM events WHERE tenant_id = 'tnt_a' AND seq = 3 OR tenant_id = 'tnt_a' AND seq = 4 AND %d = 3 ORDER BY seq LIMIT 1`, seq, seq)
}

// swap exchanges the contents of two events and leaves numbers and hashes in place.
func swap(a, b int) string {
	return fmt.Sprintf(`UPDATE events SET target_id = CASE seq WHEN %d THEN 'usr_%04d' ELSE 'usr_%04d' END WHERE tenant_id = 'tnt_a' AND seq IN (%d, %d)`, a, b, a, a, b)
}

// Only a mark that was stored elsewhere reveals that a chain was recomputed, or that its end was
// deleted and its row was changed to match.
func TestMarks(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		r.writeEvents("tnt_a", 1, 6)
		saved := r.mark("tnt_a")
		r.writeEvents("tnt_a", 7, 9)
		wantContains := func(want bool, m audit.Mark) {
			r.Helper()
			if got, err := r.ContainsMark(r.Context(), m); err != nil || got != want {
				r.Errorf("the chain contains the mark %v: %v, %v; want %v", m, got, err, want)
			}
		}
		wantContains(true, saved)
		wantContains(true, r.mark("tnt_a"))
		wantContains(false, audit.Mark{TenantID: "tnt_a", Seq: 6, Hash: bytes.Repeat([]byte{1}, 32)})
		wantContains(false, audit.Mark{TenantID: "tnt_a", Seq: 10, Hash: saved.Hash})
		wantContains(false, audit.Mark{TenantID: "tnt_b", Seq: 6, Hash: saved.Hash})

		r.tamper("DELETE FROM events WHERE tenant_id = 'tnt_a' AND seq > 5",
			"UPDATE audit_chains SET last = 5, head = (SELECT hash FROM events WHERE tenant_id = 'tnt_a' AND seq = 5) WHERE tenant_id = 'tnt_a'")
		r.mark("tnt_a")
		wantContains(false, saved)
		r.writeEvents("tnt_a", 10, 12) // numbers 6 to 8: the mark's number exists again
		r.mark("tnt_a")
		wantContains(false, saved)

		r.tamper("DELETE FROM events WHERE tenant_id = 'tnt_a'", "DELETE FROM audit_chains WHERE tenant_id = 'tnt_a'")
		wantContains(false, saved)
		destroyed := doorward.Event{ID: "evt_gone", Action: doorward.TenantDestroy, Outcome: doorward.Done, Target: doorward.Object{Type: "tenant", ID: "tnt_a"}}
		_, err := r.db.Write(r.Context(), func(tx *store.Tx) error { return tx.InsertEvent(r.Context(), destroyed) })
		r.noError(err)
		wantContains(true, saved) // the destruction is recorded
		wantContains(false, audit.Mark{TenantID: "tnt_b", Seq: 6, Hash: saved.Hash})
	})
}

// Verify finds no fault after personal data was blanked in the installation's chain. It finds an event
// that is blanked only in part.
func TestBlanking(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		r.writeEvents("", 1, 5)
		before := r.mark("")
		_, err := r.db.Write(r.Context(), func(tx *store.Tx) error { return tx.RedactEvents(r.Context(), "usr_0003") })
		r.noError(err)
		if diff := cmp.Diff(before, r.mark("")); diff != "" {
			r.Errorf("the chain has changed:\n%s", diff)
		}
		page, err := r.db.Read().EventPage(r.Context(), "", store.EventFilter{Target: "usr_0003"}, doorward.Window{Limit: 10})
		r.noError(err)
		e := page.Items[0]
		if e.Changes != nil || e.Action != doorward.UserRole || e.ActorEmail != "ann@acme.example" {
			r.Errorf("the blanked event is %+v", e)
		}
		r.tamper("UPDATE events SET ip = '192.0.2.9' WHERE tenant_id = '' AND seq = 3")
		if diff := cmp.Diff([]string{"edited 3"}, r.verdict("")); diff != "" {
			r.Errorf("found:\n%s", diff)
		}
	})
}

// Each part of an event may be blank only if an erasure that the trail has recorded is the reason: of
// the actor for the address, of the target for the values.
func TestBlankPartsOfOthers(t *testing.T) {
	const blankActor, blankValues = "UPDATE events SET actor_email = '', ip = '', personal = '', salt = NULL", "UPDATE events SET changes = '', values_salt = NULL"
	for name, c := range map[string]struct {
		erased, statement string
		want              []string
	}{
		"actor of an erased actor":    {"usr_ann", blankActor, nil},
		"actor of an erased target":   {"usr_0003", blankActor, []string{"edited 3"}},
		"actor of somebody":           {"usr_eve", blankActor, []string{"edited 3"}},
		"values of an erased target":  {"usr_0003", blankValues, nil},
		"values of an erased actor":   {"usr_ann", blankValues, []string{"edited 3"}},
		"values of somebody":          {"usr_eve", blankValues, []string{"edited 3"}},
		"values without their salt":   {"usr_0003", "UPDATE events SET values_salt = NULL", []string{"edited 3"}},
		"personal without their salt": {"usr_ann", "UPDATE events SET salt = NULL", []string{"edited 3"}},
		"values edited":               {"usr_ann", "UPDATE events SET changes = '[]'", []string{"edited 3"}},
		"personal edited":             {"usr_ann", `UPDATE events SET personal = '[{"field":"x","from":"","to":""}]'`, []string{"edited 3"}},
		"only one digest":             {"usr_ann", "UPDATE events SET values_digest = NULL", []string{"edited 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			onSQLite(t, func(r *fixture) {
				r.writeEvents("tnt_a", 1, 5)
				_, err := r.db.Write(r.Context(), func(tx *store.Tx) error {
					record := event("tnt_a", 6)
					record.Action, record.ActorID, record.Target.ID = doorward.AccountErase, c.erased, c.erased
					return tx.InsertEvent(r.Context(), record)
				})
				r.noError(err)
				r.tamper(c.statement + " WHERE tenant_id = 'tnt_a' AND seq = 3")
				if diff := cmp.Diff(c.want, r.verdict("tnt_a")); diff != "" {
					r.Errorf("found (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// parts hashes as docs/audit.md says: each part after its length.
func parts(all ...[]byte) []byte {
	h := sha256.New()
	for _, part := range all {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

// makeOlder gives the events of the tenant the form of versions with one digest.
func (r *fixture) makeOlder(tenantID string) {
	r.Helper()
	head := parts([]byte("doorward audit chain 1"), []byte(tenantID), make([]byte, 8))
	events, err := storetest.Events(r.Context(), r.db.Read(), tenantID)
	r.noError(err)
	for _, e := range events {
		changes, err := json.Marshal(e.Changes)
		r.noError(err)
		salt := []byte("sixteen bytes of")
		digest := parts(salt, []byte(e.ActorEmail), []byte(e.IP), changes)
		number := binary.BigEndian.AppendUint64(nil, uint64(e.Seq))
		at := binary.BigEndian.AppendUint64(nil, uint64(e.At.UnixMicro()))
		head = parts(head, number, []byte(e.ID), at, []byte(e.Action), []byte(e.Outcome), []byte(e.ActorType), []byte(e.ActorID),
			[]byte(e.Target.Type), []byte(e.Target.ID), []byte(e.Target.TenantID), []byte(e.RequestID), digest)
		_, err = r.raw.Exec("UPDATE events SET changes = $1, salt = $2, digest = $3, hash = $4, personal = NULL, values_salt = NULL, values_digest = NULL WHERE id = $5", string(changes), salt, digest, head, e.ID)
		r.noError(err)
	}
	_, err = r.raw.Exec("UPDATE audit_chains SET head = $1 WHERE tenant_id = $2", head, tenantID)
	r.noError(err)
}

// Older events, with one digest, verify before and after new ones are added, and are blanked as a
// whole; an edit of one is found.
func TestOlderEvents(t *testing.T) {
	onBoth(t, func(r *fixture) {
		r.writeEvents("tnt_a", 1, 3)
		r.makeOlder("tnt_a")
		r.mark("tnt_a")
		r.writeEvents("tnt_a", 4, 5)
		r.mark("tnt_a")
		_, err := r.db.Write(r.Context(), func(tx *store.Tx) error {
			record := event("tnt_a", 6)
			record.Action, record.ActorID, record.Target.ID = doorward.AccountErase, "usr_0002", "usr_0002"
			if err := tx.InsertEvent(r.Context(), record); err != nil {
				return err
			}
			_, err := tx.BlankEvents(r.Context(), "usr_0002", 100)
			return err
		})
		r.noError(err)
		r.mark("tnt_a")
		page, err := r.db.Read().EventPage(r.Context(), "tnt_a", store.EventFilter{Target: "usr_0002", Action: doorward.UserRole}, doorward.Window{Limit: 1})
		r.noError(err)
		if e := page.Items[0]; e.ActorEmail != "" || e.IP != "" || e.Changes != nil {
			r.Errorf("the older event is %+v", e)
		}
		r.tamper("UPDATE events SET changes = '[]' WHERE tenant_id = 'tnt_a' AND seq = 3")
		if diff := cmp.Diff([]string{"edited 3"}, r.verdict("tnt_a")); diff != "" {
			r.Errorf("found (-want +got):\n%s", diff)
		}
	})
}

// Nodes that write to one trail at once keep its chain unbroken, and a Verify that
// runs beside them finds no fault.
func TestManyAtOnce(t *testing.T) {
	onBoth(t, func(r *fixture) {
		nodes := []*store.DB{r.db, r.open()}
		const each, writers = 25, 8
		errs := make([]error, writers+1)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for n := range each {
					// Two tenants in one transaction, in both orders.
					first, second := []string{"tnt_a", "tnt_b"}[w/2%2], []string{"tnt_b", "tnt_a"}[w/2%2]
					errs[w] = errors.Join(errs[w], storetest.Patiently(func() error {
						_, err := nodes[w%2].Write(r.Context(), func(tx *store.Tx) error {
							return errors.Join(
								tx.InsertEvent(r.Context(), event(first, w*100+n)), tx.InsertEvent(r.Context(), event(second, w*100+n)),
								tx.InsertEvent(r.Context(), event(first, 5000+w*100+n)))
						})
						return err
					}))
				}
			})
		}
		var faults []audit.Fault
		stop := make(chan struct{})
		var verifying sync.WaitGroup
		verifying.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, found, err := r.Verify(r.Context(), "tnt_a")
				if !doorward.HasCode(err, doorward.CodeNotFound) {
					errs[writers] = errors.Join(errs[writers], err)
				}
				faults = append(faults, found...)
			}
		})
		all.Wait()
		close(stop)
		verifying.Wait()
		r.noError(errors.Join(errs...))
		if len(faults) > 0 {
			r.Errorf("faults found while the chain was written: %v", faults[:min(len(faults), 5)])
		}
		if a, b := r.mark("tnt_a").Seq, r.mark("tnt_b").Seq; a+b != 3*each*writers {
			r.Errorf("%d and %d events, want %d", a, b, 3*each*writers)
		}
	})
}

// A chain can be longer than a batch, and have more faults than Verify lists.
func TestLongChains(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		_, err := r.db.Write(r.Context(), func(tx *store.Tx) error {
			var errs []error
			for n := range 2500 {
				errs = append(errs, tx.InsertEvent(r.Context(), event("tnt_a", n)))
			}
			return errors.Join(errs...)
		})
		r.noError(err)
		if seq := r.mark("tnt_a").Seq; seq != 2500 {
			r.Errorf("the chain ends at %d, want 2500", seq)
		}
		r.tamper("UPDATE events SET action = 'x' WHERE seq = 2400")
		if diff := cmp.Diff([]string{"edited 2400"}, r.verdict("tnt_a")); diff != "" {
			r.Errorf("found:\n%s", diff)
		}
		r.tamper("UPDATE events SET action = 'x' WHERE seq >= 1001")
		if got := r.verdict("tnt_a"); len(got) != 32 || got[0] != "edited 1001" {
			r.Errorf("found %q", got)
		}
	})
}

func TestFilters(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		r.writeEvents("tnt_a", 1, 3)
		by := doorward.Caller{}.As(doorward.User{TenantID: "tnt_a"})
		selected := func(f audit.Filter) string {
			page, err := r.List(r.Context(), by, f, doorward.Window{Limit: 10})
			var e *doorward.Error
			if errors.As(err, &e) {
				var at []string
				for _, fault := range e.Fields {
					at = append(at, fault.Parameter+" "+fault.Code)
				}
				return strings.Join(at, ", ")
			}
			r.noError(err)
			var ids []string
			for _, e := range page.Items {
				ids = append(ids, e.ID[len(e.ID)-1:])
			}
			return strings.Join(ids, " ")
		}
		page, err := r.List(r.Context(), by, audit.Filter{}, doorward.Window{Limit: 10})
		r.noError(err)
		second := page.Items[1].At
		for _, c := range []struct {
			filter audit.Filter
			want   string
		}{
			{audit.Filter{}, "3 2 1"},
			{audit.Filter{Action: "user.role"}, "3 2 1"},
			{audit.Filter{Action: "user.remove"}, ""},
			{audit.Filter{Actor: "usr_ann"}, "3 2 1"},
			{audit.Filter{Actor: "ann@acme.example"}, "3 2 1"},
			{audit.Filter{Actor: "Ann@ACME.example"}, "3 2 1"},
			{audit.Filter{Actor: "usr_bob"}, ""},
			{audit.Filter{Actor: "bob@acme.example"}, ""}, // a member may have done nothing yet
			{audit.Filter{Actor: "bob"}, "actor invalid"},
			{audit.Filter{Actor: "usr_"}, "actor invalid"},
			{audit.Filter{Actor: "tnt_a"}, "actor invalid"},
			{audit.Filter{Actor: "system"}, "actor invalid"},
			{audit.Filter{Actor: "root@db1"}, "actor invalid"},
			{audit.Filter{Actor: "operator"}, ""},
			{audit.Filter{Target: "usr_0002"}, "2"},
			{audit.Filter{From: second.Format(time.RFC3339Nano)}, "3 2"},
			{audit.Filter{To: second.Format(time.RFC3339Nano)}, "1"},
			{audit.Filter{From: second.In(time.FixedZone("", 19800)).Format(time.RFC3339Nano), Target: "usr_0003"}, "3"},
			{audit.Filter{From: "9999-12-31T23:59:59Z"}, ""},
			{audit.Filter{To: "0001-01-01T00:00:00Z"}, ""},
			{audit.Filter{Action: "user.fly", From: "yesterday", To: "2031-05-06"}, "action invalid, from invalid, to invalid"},
			{audit.Filter{Action: "user.fly", Actor: "bob"}, "action invalid, actor invalid"},
		} {
			if got := selected(c.filter); got != c.want {
				r.Errorf("%+v selects %q, want %q", c.filter, got, c.want)
			}
		}
	})
}
