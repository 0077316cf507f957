package app_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
)

// ahead is a clock that a test can move.
type ahead struct{ by atomic.Int64 }

func (a *ahead) now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

func (a *ahead) move(d time.Duration) { a.by.Add(int64(d)) }

// rows are all rows of all tables, as text, with the table in front.
func (w *world) rows() (all []string) {
	w.Helper()
	driver, dsn := "pgx", w.dsn
	tables := `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
	if path, ok := strings.CutPrefix(w.dsn, "sqlite:"); ok {
		driver, dsn, tables = "sqlite", path, `SELECT name FROM sqlite_master WHERE type = 'table'`
	}
	db, err := sql.Open(driver, dsn)
	w.ok(err)
	defer db.Close()
	for _, table := range w.read(db, tables) {
		for _, row := range w.read(db, `SELECT * FROM "`+table+`"`) {
			all = append(all, table+": "+row)
		}
	}
	return all
}

// exec runs a statement past the store, as another version might.
func (w *world) exec(query string, args ...any) {
	w.Helper()
	driver, dsn := "pgx", w.dsn
	if path, ok := strings.CutPrefix(w.dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	w.ok(err)
	defer db.Close()
	_, err = db.ExecContext(w.Context(), query, args...)
	w.ok(err)
}

// read returns each row as text, bytes as what they would be read as.
func (w *world) read(db *sql.DB, query string) (all []string) {
	w.Helper()
	rows, err := db.QueryContext(w.Context(), query)
	w.ok(err)
	defer rows.Close()
	names, err := rows.Columns()
	w.ok(err)
	for rows.Next() {
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(any)
		}
		w.ok(rows.Scan(values...))
		var text []string
		for _, v := range values {
			switch v := (*v.(*any)).(type) {
			case []byte:
				text = append(text, string(v))
			default:
				text = append(text, fmt.Sprint(v))
			}
		}
		all = append(all, strings.Join(text, " "))
	}
	w.ok(rows.Err())
	return all
}

// dot is the smallest logo.
func dot(w *world) []byte {
	w.Helper()
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression} // as logos are kept
	w.ok(encoder.Encode(&out, image.NewNRGBA(image.Rect(0, 0, 2, 1))))
	return out.Bytes()
}

// holding are the rows that have one of the words.
func holding(rows []string, words ...string) (found []string) {
	for _, row := range rows {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(row), strings.ToLower(word)) }) {
			found = append(found, row)
		}
	}
	return found
}

// someLimits leave counters behind and stop nobody here.
var someLimits = credential.Limits{PerAccount: 50, PerIP: 1000}

// leaveTraces has the person guess wrong, forget the password, and set the same
// one again.
func (w *world) leaveTraces(p person) {
	w.Helper()
	if got := w.tries(p.Email, "not the password"); got != doorward.CodeInvalidCredentials {
		w.Fatalf("a wrong password: %s", got)
	}
	for range 2 {
		w.ok(w.on(0).Passwords.Forgot(w.Context(), stranger(0), p.Email, ""))
		w.ok(failure(w.on(0).Passwords.Reset(w.Context(), stranger(0), w.letter(p.Email), first, first)))
	}
	w.ok(w.on(0).Passwords.Forgot(w.Context(), stranger(0), p.Email, ""))
	w.letter(p.Email)
}

// soundTrail wants the chain of the installation to hold.
func (w *world) soundTrail() {
	w.Helper()
	_, faults, err := w.on(0).Audit.Verify(w.Context(), "")
	w.ok(err)
	if len(faults) > 0 {
		w.Errorf("the trail of the installation is broken: %v", faults)
	}
}

// TestClosedTenantIsGone: until the hold is over a closed tenant can be
// restored whole; then no table knows its people any more, while those who are
// members elsewhere too stay there, and the trail says that it happened.
func TestClosedTenantIsGone(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			clock := &ahead{}
			w := newWorld(t, e, someLimits, clock.now)
			staying, stayer := w.tenant()
			gone, owner := w.tenant()
			names := []string{"Vanishing Ltd", "Vera Vanish"}
			_, err := w.on(0).Tenants.Edit(t.Context(), owner.Caller, tenant.Edit{Name: &names[0]})
			w.ok(err)
			logo := dot(w)
			_, err = w.on(0).Tenants.SetLogo(t.Context(), owner.Caller, logo, nil)
			w.ok(err)
			alone := w.join(owner, doorward.RoleAdmin)
			_, _, err = w.on(0).Users.Edit(t.Context(), owner.Caller, alone.User, user.Edit{Name: &names[1]})
			w.ok(err)
			both := w.join(owner, doorward.RoleUser)
			_, token := w.invite(stayer, both.Email, doorward.RoleViewer)
			_, err = w.on(0).Invitations.Accept(t.Context(), both.Caller, token, "")
			w.ok(err)
			w.invite(alone, "pending.vanish@example.com", doorward.RoleUser)
			w.leaveTraces(alone)

			for range 2 { // closed, restored, closed
				_, _, err = w.on(0).Tenants.Close(t.Context(), owner.Caller, names[0])
				w.ok(err)
				clock.move(hold - time.Minute)
				w.ok(w.on(1).Tenants.Sweep(t.Context()))
				owner = w.signIn(owner.Email, first)
				_, err = w.on(0).Tenants.Restore(t.Context(), owner.Caller)
				w.ok(err)
			}
			w.signIn(alone.Email, first)
			_, _, err = w.on(0).Tenants.Close(t.Context(), owner.Caller, names[0])
			w.ok(err)
			owner = w.signIn(owner.Email, first)
			clock.move(hold)
			_, err = w.on(0).Tenants.Restore(t.Context(), owner.Caller)
			if code(err) != doorward.CodeTenantNotClosing {
				t.Errorf("a restoration after the hold: %v", err)
			}

			names = append(names, string(logo))
			people := []string{owner.Email, alone.Email, "pending.vanish@example.com"}
			ids := []string{owner.ID, alone.ID, gone.ID}
			if before := w.rows(); len(holding(before, names...)) == 0 || len(holding(before, people...)) < 10 || len(holding(before, ids...)) < 10 {
				t.Fatal("the search finds too little before the destruction to say anything after it")
			}
			for i := range 2 {
				w.ok(w.on(i).Tenants.Sweep(t.Context()))
			}
			after := w.rows()
			if _, err := w.on(0).Tenants.Logo(t.Context(), doorward.HashLogo(logo)); code(err) != doorward.CodeNotFound {
				t.Errorf("the logo: %v", err)
			}
			if left := holding(after, append(names, people...)...); len(left) > 0 {
				t.Errorf("there is left:\n%s", strings.Join(left, "\n"))
			}
			// The log of changes is followed by nodes and swept by the hour; in the
			// trail of the installation ids stand for those whose data is blanked.
			about := slices.DeleteFunc(holding(after, ids...), func(row string) bool {
				return strings.HasPrefix(row, "changes: ") || strings.HasPrefix(row, "events: ") && !strings.Contains(row, gone.ID)
			})
			if len(about) != 1 || !strings.Contains(about[0], string(doorward.TenantDestroy)) {
				t.Errorf("of the tenant there is left, besides one event:\n%s", strings.Join(about, "\n"))
			}
			w.soundTrail()
			if again := w.signIn(both.Email, first); again.TenantID != staying.ID {
				t.Errorf("the member of both is in %s, want the tenant that stays", again.TenantID)
			}
			w.signIn(stayer.Email, first)
			if got := w.tries(alone.Email, first); got != doorward.CodeInvalidCredentials {
				t.Errorf("somebody who is gone gets %s", got)
			}
		})
	}
}
