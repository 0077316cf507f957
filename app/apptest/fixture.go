// Package apptest runs the features on real databases for their tests.
//
//	apptest.OnEach(t, func(f *apptest.Fixture) {
//		acme, owner := f.Tenant()
//		bob := f.Join(owner, doorward.RoleUser)
//		_, err := f.Node(0).Users.Suspend(f.Context(), owner.Caller, bob.User)
//		f.NoError(err)
//	})
//
// Password hashes are cheap, mail stays in memory, and logins have no limits unless
// requested. A method that fails ends the test of its fixture.
//
// Use OnEach where locks or races decide: it has one node on SQLite and two on
// PostgreSQL. Use OnSQLite, which has two nodes, for other rules, also for what
// nodes remember.
package apptest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/dnstest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
)

// Engine is a kind of database, and the number of nodes that use it.
type Engine struct {
	Name  string
	Nodes int
	DSN   func(testing.TB) string // of a new database with the schema
}

// The engines. For another number of nodes, a test changes Nodes in its copy.
var (
	SQLite   = Engine{"sqlite", 1, dbtest.SQLite}
	Postgres = Engine{"postgres", 2, dbtest.Postgres}
	Engines  = []Engine{SQLite, Postgres}

	// onTwoNodes has two nodes on one SQLite file, which a real installation can't have: what a
	// node wrongly remembers shows on the other one, without a PostgreSQL server.
	onTwoNodes = Engine{"sqlite", 2, dbtest.SQLite}
)

// Limits on logins.
var (
	NoLimits         proof.Limits
	HighLimits       = proof.Limits{PerAccount: 50, PerIP: 1000} // counters are kept, but never reach a limit
	ProductionLimits = proof.Limits{PerAccount: 5, PerIP: 30}
)

// TenantHold is how long a closed tenant can be restored.
const TenantHold = 14 * 24 * time.Hour

// Fixture is one installation.
type Fixture struct {
	*testing.T
	DSN   string
	DB    *store.DB // of the last node
	Nodes []*app.App
	Log   logtest.Journal // of all nodes
	DNS   *dnstest.Server // that all nodes ask for records of domains

	keyFolder string // of the master key
	stop      []func()
	mail      *mailbox
	emails    int // how many addresses NewEmail has returned
	observer
	statements statements
}

// OnEach runs a test in a new installation on each engine, without limits.
func OnEach(t *testing.T, test func(*Fixture)) {
	t.Helper()
	for _, e := range Engines {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			test(New(t, e, NoLimits, time.Now))
		})
	}
}

// OnSQLite runs a test in a new installation on SQLite with two nodes, without limits. It is for
// a rule that doesn't depend on the engine.
func OnSQLite(t *testing.T, test func(*Fixture)) {
	t.Helper()
	t.Parallel()
	test(New(t, onTwoNodes, NoLimits, time.Now))
}

// OnSQLiteClock is OnSQLite with limits and a clock that the test can move.
func OnSQLiteClock[C Clock](t *testing.T, limits proof.Limits, newClock func() C, test func(*Fixture, C)) {
	t.Helper()
	t.Parallel()
	clock := newClock()
	test(New(t, onTwoNodes, limits, clock.Now), clock)
}

// OnEachClock is OnEach with limits and a clock that the test can move.
func OnEachClock[C Clock](t *testing.T, limits proof.Limits, newClock func() C, test func(*Fixture, C)) {
	t.Helper()
	for _, e := range Engines {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			test(New(t, e, limits, clock.Now), clock)
		})
	}
}

// New returns an installation with the engine's nodes, which stop at the end of the test. All nodes
// have joined.
func New(t *testing.T, e Engine, limits proof.Limits, now doorward.Clock) *Fixture {
	t.Helper()
	f := &Fixture{T: t, mail: &mailbox{}, DSN: e.DSN(t), keyFolder: t.TempDir(), DNS: dnstest.New(t)}
	for range e.Nodes {
		f.AddNode(limits, now)
	}
	for _, node := range f.Nodes {
		f.Until("the node to join", node.Lease.Valid)
	}
	return f
}

// AddNode starts another node, which may have a clock of its own.
func (f *Fixture) AddNode(limits proof.Limits, now doorward.Clock) {
	f.Helper()
	db, err := store.Open(f.Context(), f.DSN, now)
	f.NoError(err)
	db.Watch(f.statements.note)
	f.DB = db
	f.Nodes = append(f.Nodes, f.start(db, limits))
}

// start starts a node, which answers checks from memory, as in production. Of its background work
// only the lease runs: tests call the rest themselves, such as Sweep, Flush and RecordPending.
func (f *Fixture) start(db *store.DB, limits proof.Limits) *app.App {
	a := app.New(db, app.Settings{
		LinkURL: "http://localhost:8080", Name: "Doorward", MasterKey: keyFile(f.keyFolder),
		Sessions: doorward.SessionLimits{Idle: time.Hour, Absolute: 24 * time.Hour, PerUser: 10}, SessionsInMemory: 10000, Lease: lease.MaxLease,
		TenantHold: TenantHold, KeepDecisions: 7 * 24 * time.Hour, KeyMaxDays: doorward.APIKeyDaysMax, Attempts: limits, PasswordMinLength: 12, CommonPasswords: commonpw.Bundled(),
		Hash:        argon.Params{MemoryKiB: 1024, Time: 1, Parallelism: 1},
		HashWait:    waittest.Limit, // many log in at once, however slow the machine is
		Connections: provider.Settings{Allow: oidctest.Addresses(), Authorities: oidctest.Authorities()},
		Webhooks:    webhook.Settings{Local: true, Keep: 30 * 24 * time.Hour},
		DNSServer:   f.DNS.Addr,
		Transport:   f.mail, Log: slog.New(slog.NewJSONHandler(&f.Log, nil)),
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Lease.Run(ctx) })
	f.stop = append(f.stop, sync.OnceFunc(func() { stop(); running.Wait(); db.Close() }))
	f.Cleanup(f.stop[len(f.stop)-1])
	return a
}

// Node returns the node for caller i.
func (f *Fixture) Node(i int) *app.App { return f.Nodes[i%len(f.Nodes)] }

// NoError ends the test on an error.
func (f *Fixture) NoError(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Until waits for a condition. The description is for the error.
func (f *Fixture) Until(description string, condition func() bool) {
	f.Helper()
	waittest.Until(f.T, description, condition)
}

// Operator is the caller at the command line.
var Operator = doorward.OperatorAtTerminal()

// Anonymous returns anonymous caller i, who has an address of its own.
func Anonymous(i int) doorward.Caller {
	return doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: fmt.Sprintf("192.0.%d.%d", i/250, i%250)}
}

// Password returns the valid password with number i.
func Password(i int) string { return fmt.Sprintf("quiet green llama %03d", i) }

// FirstPassword is the initial password of every account.
var FirstPassword = Password(0)

// Person is a signed-in member.
type Person struct {
	doorward.Caller
	User  doorward.User
	Token secret.Token
}

// NewEmail returns a new address.
func (f *Fixture) NewEmail(name string) string {
	f.emails++
	return fmt.Sprintf("%s%d@example.com", name, f.emails)
}

// Tenant makes a tenant with its first OWNER.
func (f *Fixture) Tenant() (doorward.Tenant, Person) {
	f.Helper()
	email := f.NewEmail("owner")
	c, err := f.Node(0).Tenants.Create(f.Context(), Operator, tenant.Draft{Name: fmt.Sprintf("Company %d", f.emails), OwnerEmail: email})
	f.NoError(err)
	_, err = f.Node(0).Invitations.Complete(f.Context(), Anonymous(0), c.Token.Reveal(), FirstPassword, FirstPassword)
	f.NoError(err)
	return c.Tenant, f.SignIn(email, FirstPassword)
}

// Join makes a new person a member.
func (f *Fixture) Join(by Person, role doorward.Role) Person {
	f.Helper()
	email := f.NewEmail("person")
	_, token := f.Invite(by, email, role)
	_, err := f.Node(0).Invitations.Complete(f.Context(), Anonymous(0), token, FirstPassword, FirstPassword)
	f.NoError(err)
	return f.SignIn(email, FirstPassword)
}

// Offer returns the offer of an invitation.
func Offer(email string, role doorward.Role) invite.Offer {
	return invite.Offer{Email: email, Role: string(role)}
}

// Invite sends an invitation and returns it with the token in the mail.
func (f *Fixture) Invite(by Person, email string, role doorward.Role) (inv doorward.Invitation, token string) {
	f.Helper()
	inv, err := f.Node(0).Invitations.Send(f.Context(), by.Caller, Offer(email, role))
	f.NoError(err)
	return inv, f.MailToken(email)
}

// SignIn opens a session from a browser that the account doesn't know.
func (f *Fixture) SignIn(email, password string) Person {
	f.Helper()
	r, err := SignedIn(f.Node(0).Login.WithPassword(f.Context(), Anonymous(0), email, password, ""))
	f.NoError(err)
	return PersonOf(r)
}

// PersonOf returns the person that a login has signed in.
func PersonOf(r login.SignedIn) Person {
	by := Anonymous(0)
	by.Principal = doorward.PrincipalOf(r.User, r.Session)
	return Person{by, r.User, r.Token}
}

// TryLogin returns the code of a login, empty for success.
func (f *Fixture) TryLogin(email, password string) doorward.Code {
	_, err := f.Node(0).Login.WithPassword(f.Context(), Anonymous(0), email, password, "")
	return Code(err)
}

// IsValid reports whether any node accepts the session.
func (f *Fixture) IsValid(token secret.Token) bool {
	f.Helper()
	valid := false
	for i := range f.Nodes {
		_, err := f.Node(i).Sessions.Check(f.Context(), token)
		if err != nil && Code(err) != doorward.CodeUnauthenticated {
			f.Fatal(err)
		}
		valid = valid || err == nil
	}
	return valid
}

// Account returns the person's current account.
func (f *Fixture) Account(p Person) doorward.Account {
	f.Helper()
	a, err := f.DB.Read().Account(f.Context(), p.User.ID)
	f.NoError(err)
	return a
}

// ErrorOf returns only the error of a call.
func ErrorOf[T any](_ T, err error) error { return err }
