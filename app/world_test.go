package app_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/store"
)

// The features on a real database, with many callers at once.

// engine is a database to run on. PostgreSQL serves two nodes, and the callers
// spread over both.
type engine struct {
	name  string
	nodes int
	dsn   func(testing.TB) string
}

var engines = []engine{
	{"sqlite", 1, func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "doorward.db") }},
	{"postgres", 2, func(t testing.TB) string { return pgtest.DSN(t) }},
}

// world is an installation.
type world struct {
	*testing.T
	dsn   string
	db    *store.DB
	nodes []*app.App
	stop  []func()
	mail  *mailbox
	made  int
	log   logtest.Journal // of all nodes

	observer *sql.DB // see observe
}

// noLimits lets everybody try as many passwords as he likes.
var noLimits credential.Limits

// onEach runs a test in a new installation on each database.
func onEach(t *testing.T, test func(*world)) {
	t.Helper()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, e, noLimits, time.Now))
		})
	}
}

func newWorld(t *testing.T, e engine, limits credential.Limits, now doorward.Clock) *world {
	t.Helper()
	w := &world{T: t, mail: &mailbox{}, dsn: e.dsn(t)}
	for range e.nodes {
		db, err := store.Open(t.Context(), w.dsn, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.db = db
		w.nodes = append(w.nodes, w.node(db, limits))
	}
	return w
}

// hold is how long a closed tenant can be restored.
const hold = 14 * 24 * time.Hour

// node is one process. It answers checks from memory, as in production.
func (w *world) node(db *store.DB, limits credential.Limits) *app.App {
	a := app.New(db, app.Settings{
		BaseURL:  "http://localhost:8080",
		Sessions: doorward.SessionLimits{Idle: time.Hour, Absolute: 24 * time.Hour, PerUser: 10}, SessionsInMemory: 10000, Lease: store.MinLease,
		TenantHold: hold, Attempts: limits, PasswordMinLength: 12, Common: commonpw.Bundled(),
		Hash:      argon.Params{MemoryKiB: 1024, Time: 1, Parallelism: 1},
		Transport: w.mail, Log: slog.New(slog.NewJSONHandler(&w.log, nil)),
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Watch.Run(ctx) })
	w.stop = append(w.stop, sync.OnceFunc(func() { stop(); running.Wait(); db.Close() }))
	w.Cleanup(w.stop[len(w.stop)-1])
	return a
}

// deadlocks ends the nodes, since connections report when they close, and
// returns how many deadlocks PostgreSQL has found.
func (w *world) deadlocks() (n int) {
	w.Helper()
	w.unobserved()
	for _, stop := range w.stop {
		stop()
	}
	observer, err := sql.Open("pgx", w.dsn)
	w.ok(err)
	defer observer.Close()
	for others := 1; others > 0; {
		w.ok(observer.QueryRowContext(w.Context(), `SELECT numbackends - 1, deadlocks FROM pg_stat_database
			WHERE datname = current_database()`).Scan(&others, &n))
	}
	return n
}

// on is the node that the caller with the number comes to.
func (w *world) on(i int) *app.App { return w.nodes[i%len(w.nodes)] }

var operator = doorward.OperatorAtTerminal()

// stranger is a caller from an address of its own.
func stranger(i int) doorward.Caller {
	return doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: fmt.Sprintf("192.0.%d.%d", i/250, i%250)}
}

// password is the one with the number.
func password(i int) string { return fmt.Sprintf("quiet green llama %03d", i) }

// first is the password that everybody begins with.
var first = password(0)

// person is a member, signed in.
type person struct {
	doorward.Caller
	User  doorward.User
	token secret.Token
}

// tenant makes a tenant with its first OWNER.
func (w *world) tenant() (doorward.Tenant, person) {
	w.Helper()
	w.made++
	email := fmt.Sprintf("owner%d@example.com", w.made)
	c, err := w.on(0).Tenants.Create(w.Context(), operator, fmt.Sprintf("Company %d", w.made), email)
	w.ok(err)
	_, err = w.on(0).Invitations.Complete(w.Context(), stranger(0), c.Token.Reveal(), first, first)
	w.ok(err)
	return c.Tenant, w.signIn(email, first)
}

// join makes somebody new a member.
func (w *world) join(by person, role doorward.Role) person {
	w.Helper()
	w.made++
	email := fmt.Sprintf("person%d@example.com", w.made)
	_, token := w.invite(by, email, role)
	_, err := w.on(0).Invitations.Complete(w.Context(), stranger(0), token, first, first)
	w.ok(err)
	return w.signIn(email, first)
}

// invite sends an invitation and reads the token in the mail.
func (w *world) invite(by person, email string, role doorward.Role) (inv doorward.Invitation, token string) {
	w.Helper()
	inv, err := w.on(0).Invitations.Send(w.Context(), by.Caller, offer(email, role))
	w.ok(err)
	return inv, w.letter(email)
}

// letter delivers what is queued and returns the token in the newest mail to
// the address.
func (w *world) letter(email string) string {
	w.Helper()
	w.settle()
	w.ok(w.on(0).Mail.Deliver(w.Context()))
	token := w.mail.newestToken(email)
	if token == "" {
		w.Fatalf("no mail with a token for %s", email)
	}
	return token
}

// settle records what was refused and asked for.
func (w *world) settle() {
	w.Helper()
	for _, node := range w.nodes {
		node.Inbox.Settle(w.Context())
	}
}

func (w *world) signIn(email, password string) person {
	w.Helper()
	r, err := w.on(0).Login.WithPassword(w.Context(), stranger(0), email, password, "")
	w.ok(err)
	by := stranger(0).As(r.User)
	by.SessionID = r.Session.ID
	return person{by, r.User, r.Token}
}

// tries returns how a login ends.
func (w *world) tries(email, password string) doorward.Code {
	_, err := w.on(0).Login.WithPassword(w.Context(), stranger(0), email, password, "")
	return code(err)
}

// passes says whether any node lets the token pass.
func (w *world) passes(token secret.Token) bool {
	w.Helper()
	passed := false
	for i := range w.nodes {
		_, err := w.on(i).Sessions.Check(w.Context(), token)
		if err != nil && code(err) != doorward.CodeUnauthenticated {
			w.Fatal(err)
		}
		passed = passed || err == nil
	}
	return passed
}

// account is the person's account as it is now.
func (w *world) account(p person) doorward.Account {
	w.Helper()
	a, err := w.db.Read().Account(w.Context(), p.ID)
	w.ok(err)
	return a
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// together calls fn n times at once and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	gate := make(chan struct{})
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-gate
			errs[i] = fn(i)
		})
	}
	ready.Wait()
	close(gate)
	done.Wait()
	return errs
}

// code is the code of an error, empty for none.
// failure is the error of what returns something with it.
func failure[T any](_ T, err error) error { return err }

func code(err error) doorward.Code {
	var e *doorward.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return doorward.Code(err.Error())
}

// tally counts outcomes.
type tally map[doorward.Code]int

func count(errs []error) tally {
	n := tally{}
	for _, err := range errs {
		n[code(err)]++
	}
	return n
}

// ends wants the calls to have ended so, success being the empty code, and
// returns the first that succeeded.
func (w *world) ends(errs []error, want tally) (winner int) {
	w.Helper()
	got := count(errs)
	if !maps.Equal(got, want) {
		w.Fatalf("the calls ended like this (-want +got):\n%s%v", cmp.Diff(want, got), unexpected(errs, want))
	}
	for i, err := range errs {
		if err == nil {
			return i
		}
	}
	return -1
}

// unexpected is the first error whose code nobody wanted.
func unexpected(errs []error, want tally) error {
	for _, err := range errs {
		if want[code(err)] == 0 {
			return err
		}
	}
	return nil
}

// opened are sessions that logins have answered with.
type opened struct {
	mu     sync.Mutex
	tokens []secret.Token
}

func (o *opened) add(s session.Opened, err error) error {
	if err == nil {
		o.mu.Lock()
		o.tokens = append(o.tokens, s.Token)
		o.mu.Unlock()
	}
	return err
}

// passing counts those that are let pass.
func (w *world) passing(o *opened) (n int) {
	w.Helper()
	for _, token := range o.tokens {
		if w.passes(token) {
			n++
		}
	}
	return n
}

// mailbox is a transport that keeps the mail.
type mailbox struct {
	mu   sync.Mutex
	mail []smtp.Message
}

func (m *mailbox) Send(_ context.Context, message smtp.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail = append(m.mail, message)
	return nil
}

func (m *mailbox) Check(context.Context) error { return nil }

var inLink = regexp.MustCompile(`#token=([A-Za-z0-9_-]{43})`)

// newestToken returns the token in the newest mail to the address that has one.
func (m *mailbox) newestToken(to string) (token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range m.mail {
		if found := inLink.FindStringSubmatch(message.Text); found != nil && message.To == to {
			token = found[1]
		}
	}
	return token
}
