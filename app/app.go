// Package app builds the features. Each is in a package of its own; they write
// through app/access.
package app

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/assertion"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/demand"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/app/domain"
	"github.com/doorward/doorward/app/evaluation"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/inbox"
	"github.com/doorward/doorward/app/incident"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/app/leak"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/mail"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/model"
	"github.com/doorward/doorward/app/overview"
	"github.com/doorward/doorward/app/password"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/queue"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/testrun"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// Settings configure the features. Those that an operator can choose are described
// in node/settings.go.
type Settings struct {
	Sessions          doorward.SessionLimits
	SessionsInMemory  int
	Lease             time.Duration // how long a node may answer from memory, lease.MinLease to lease.MaxLease
	Attempts          proof.Limits
	InviteResendWait  time.Duration // between two mails of one invitation
	KeyMaxDays        int           // the longest validity of an API key
	KeepEvents        time.Duration // in audit trails; 0: for ever
	KeepDecisions     time.Duration // how long refusals and some permits are kept; 0: none are
	TenantHold        time.Duration // between the closing of a tenant and its destruction
	PasswordMinLength int
	CommonPasswords   *commonpw.List // rejected for new passwords
	Hash              argon.Params
	HashWait          time.Duration    // how long a caller waits for its hash to begin; 0: two seconds
	HashChild         func() *exec.Cmd // a process for hashes, see argon.Options; nil: none
	MasterKey         masterkey.File
	Webhooks          webhook.Settings
	Connections       provider.Settings
	DNSServer         string   // that is asked for records of domains, HOST:PORT; empty: those of the system
	Audiences         []string // of assertions, as assertion.CheckAudience accepts them; the first is the default

	// Published are the settings that must be the same on all nodes, with this node's
	// values. ChangeShared lets the node start beside nodes with different values.
	Published    []lease.Setting
	ChangeShared bool

	// OperatorAddress gets the mails to the operator; empty: none are sent.
	OperatorAddress string

	// LinkURL is the base of links in mails, the issuer of assertions and the origin of passkeys.
	// It has no slash at the end.
	LinkURL   string
	MailBrand doorward.Brand // of the installation
	Texts     *texts.File    // the operator's own, as mail.CheckTexts accepts them; nil for none
	Name      string         // of the installation, in authenticator apps
	Transport smtp.Transport // of mails
	Log       *slog.Logger
}

// App is the list of features.
type App struct {
	Access        *access.Writer
	Login         *login.Login
	SignOn        *signon.SignOn
	SignOff       *signoff.SignOff
	Factors       *factor.Factors
	Sessions      *session.Sessions
	Invitations   *invite.Invitations
	Passwords     *password.Passwords
	Users         *user.Users
	Accounts      *account.Accounts
	Tenants       *tenant.Tenants
	Keys          *key.Keys
	MasterKey     *masterkey.Keys
	APIKeys       *apikey.Keys
	Roles         *role.Roles
	Evaluations   *evaluation.Evaluations
	Assertions    *assertion.Assertions
	Leaks         *leak.Reports
	Mail          *mail.Mail
	Webhooks      *webhook.Webhooks
	Connections   *connection.Connections
	ClientSecrets *clientsecret.Secrets
	Tests         *testrun.Tests // of connections
	Directories   *directory.Directories
	DirectoryRuns *directoryrun.Runs
	SetupLinks    *setuplink.Links
	Domains       *domain.Domains
	Inbox         *inbox.Inbox
	Audit         *audit.Trail
	Overviews     *overview.Overviews
	// Installation handles backup, restore and move.
	Installation *installation.Installation
	Incidents    *incident.Incidents
	Queues       *queue.Queues
	Models       *model.Models
	Policies     *policy.Policies
	Demands      *demand.Demands
	Lease        *lease.Lease
	// PasswordRules are the rules in force, for pages that explain them.
	PasswordRules *atomic.Pointer[proof.Rules]

	db       *store.DB
	verifier *proof.Verifier
	pool     *argon.Pool
	log      *slog.Logger

	futureClamp    futureClamp   // the state of clampFuture
	clockCorrected chan struct{} // gets a value when a wrong clock is right again
}

// New builds the features over a database whose schema is up to date.
func New(db *store.DB, s Settings) *App {
	db.SetCompiler(new(rules.Compiler).Compile)
	l, clockCorrected := newLease(db, s)
	writer := access.New(db, l)
	writer.Decisions().KeepFor(s.KeepDecisions)
	passwords := new(atomic.Pointer[proof.Rules])
	passwords.Store(s.passwordRules())
	sessions := session.New(writer, db, l, s.Sessions, s.SessionsInMemory)
	lifetime := session.Life(s.Sessions)
	pool := argon.NewPool(s.Hash, argon.Options{
		Wait:  s.HashWait,
		Yield: sessions.Busy, Phase: tracePhase,
		Child: s.HashChild, ChildFailed: lograte.Warnings(s.Log, "a process for password hashes failed"),
	})
	verifier := proof.New(writer, db, pool, s.Attempts)
	refusals := inbox.New(writer, db, s.Log)
	master := masterkey.New(writer, db, s.MasterKey)
	assertions := assertion.New(writer, db, l, master, s.LinkURL, s.Audiences, s.SessionsInMemory)
	l.Follow(assertions.Apply, assertions.Forget)
	factors := factor.New(writer, db, verifier, master, lifetime, s.Name, s.LinkURL)
	owners := member.Owners{Operator: s.OperatorAddress}
	keys, apiKeys := key.New(writer, db), apikey.New(writer, db, l, s.KeyMaxDays)
	logins := login.New(writer, db, verifier, sessions, factors)
	providers := provider.New(writer, db, master, s.LinkURL, s.Connections, s.Log)
	tests := testrun.New(writer, db, providers)
	directories := directory.New(writer, db, l, providers, lifetime, owners, s.LinkURL)
	return &App{
		Access:        writer,
		Login:         logins,
		SignOn:        signon.New(writer, db, providers, tests, logins, factors, verifier, sessions),
		SignOff:       signoff.New(writer, db, providers, lifetime),
		Factors:       factors,
		Sessions:      sessions,
		Invitations:   invite.New(writer, db, verifier, factors, passwords, s.InviteResendWait),
		Passwords:     password.New(writer, db, verifier, passwords, lifetime),
		Users:         user.New(writer, db, lifetime, owners),
		Accounts:      account.New(writer, db, verifier, lifetime, owners),
		Tenants:       tenant.New(writer, db, lifetime, tenant.Times{Hold: s.TenantHold, KeepEvents: s.KeepEvents}, master.Ready, s.Log),
		Keys:          keys,
		MasterKey:     master,
		APIKeys:       apiKeys,
		Roles:         role.New(writer, db),
		Evaluations:   evaluation.New(writer, db, sessions, apiKeys),
		Assertions:    assertions,
		Leaks:         leak.New(writer, reportableKeys(apiKeys, keys, directories, s)...),
		Mail:          mail.New(writer, db, s.Transport, s.LinkURL, s.Texts, s.MailBrand, s.Name, s.Log),
		Webhooks:      webhook.New(writer, db, master, s.webhooks(), s.Log),
		Connections:   connection.New(writer, db, providers, lifetime),
		ClientSecrets: clientsecret.New(writer, db, providers),
		Tests:         tests,
		Directories:   directories,
		DirectoryRuns: directoryrun.New(writer, db, lifetime, owners),
		SetupLinks:    setuplink.New(writer, db, s.LinkURL),
		Domains:       domain.New(writer, db, s.DNSServer, s.Log),
		Inbox:         refusals,
		Audit:         audit.New(db, refusals.RecordPending).WithRetention(writer, s.KeepEvents),
		Overviews:     overview.New(writer, db, lifetime, refusals.RecordPending),
		Installation:  installation.New(writer, db, lifetime),
		Incidents:     incident.New(writer, db, lifetime),
		Queues:        queue.New(writer, db),
		Models:        model.New(writer, db),
		Policies:      policy.New(writer, db, sessions),
		Demands:       demand.New(writer, db, lifetime),
		Lease:         l, PasswordRules: passwords,
		db: db, verifier: verifier, pool: pool, log: s.Log, clockCorrected: clockCorrected,
	}
}

// newLease returns the lease, and a channel that gets a value when a wrong clock is right again.
func newLease(db *store.DB, s Settings) (l *lease.Lease, clockCorrected chan struct{}) {
	l, clockCorrected = lease.New(db, s.Lease), make(chan struct{}, 1)
	l.Publish(append(slices.Clone(s.Published), lease.Setting{Name: MasterKeySetting, Value: masterkey.None}), s.ChangeShared)
	notices := newNoticeLog(s.Log)
	l.OnNotice(func(n lease.Notice) {
		notices.write(n)
		if n.Kind == lease.ClockRight {
			signal(clockCorrected)
		}
	})
	return l, clockCorrected
}

func (s Settings) passwordRules() *proof.Rules {
	return &proof.Rules{MinLength: s.PasswordMinLength, Common: s.CommonPasswords}
}

// Reload applies the settings that may change while the server runs. The others stay as they
// were in New.
func (a *App) Reload(s Settings) {
	a.PasswordRules.Store(s.passwordRules())
	a.verifier.SetLimits(s.Attempts)
	a.Invitations.SetWait(s.InviteResendWait)
	a.Mail.SetBrand(s.MailBrand, s.Name)
	a.Mail.SetTransport(s.Transport)
	a.Factors.SetIssuer(s.Name)
}

func (s Settings) webhooks() webhook.Settings {
	hooks := s.Webhooks
	hooks.Operator = s.OperatorAddress
	return hooks
}

// reportableKeys returns the kinds of keys that anybody can report as leaked. A report revokes
// the key.
func reportableKeys(apiKeys *apikey.Keys, keys *key.Keys, directories *directory.Directories, s Settings) []leak.Kind {
	endOperator := func(ctx context.Context, by doorward.Caller, hash secret.Hash) error {
		leaked, found, err := keys.EndLeaked(ctx, by, hash, s.OperatorAddress)
		if found {
			s.Log.Error("an operator key was reported as leaked and has been revoked", "key", leaked.ID, "name", leaked.Name, "requestId", by.RequestID)
		}
		return err
	}
	endService := func(ctx context.Context, by doorward.Caller, hash secret.Hash) error {
		leaked, found, err := keys.EndLeakedService(ctx, by, hash, s.OperatorAddress)
		if found {
			s.Log.Error("a service key was reported as leaked and has been revoked", "key", leaked.ID, "name", leaked.Name, "requestId", by.RequestID)
		}
		return err
	}
	return []leak.Kind{
		{Prefix: apikey.Prefix, Hash: apikey.HashOf, End: apiKeys.EndLeaked},
		{Prefix: key.ServicePrefix, Hash: key.HashOfService, End: endService},
		{Prefix: key.OperatorPrefix, Hash: key.HashOf, End: endOperator},
		{Prefix: directory.Prefix, Hash: directory.HashOf, End: directories.EndLeaked},
	}
}

// signal sends a value unless one is waiting already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tracePhase adds a span for a phase of hashing.
func tracePhase(ctx context.Context, phase string) (end func()) {
	_, span := trace.Start(ctx, phase)
	return span.End
}

// Ready returns nil when requests can be served: the database answers, has the schema that
// this binary needs, has taken a heartbeat of this node within three times the length of a lease
// (a full disk of a single server is ignored, see lease.Lost), and its clock agrees with this
// machine's. Else the error is unavailable with the cause.
//
// A lease that has only just run out doesn't make the node unready: a load balancer would move
// the load of an overloaded node to the others, and overload them in turn.
func (a *App) Ready(ctx context.Context) error {
	err := a.db.CheckSchema(ctx)
	switch {
	case errors.Is(err, store.ErrSchema):
		return unready(err, "This version does not support the schema of the database.")
	case err != nil:
		return unready(err, "The database does not answer.")
	case a.Lease.Lost():
		return unready(errLeaseLost, "This node has not renewed its lease for so long that other nodes consider it dead.")
	}
	return a.db.Clock().Err()
}

var errLeaseLost = errors.New("app: the lease was not renewed for three times its length")

func unready(err error, detail string) error {
	e := doorward.Unavailable(err)
	e.Detail = detail
	return e
}

// Now returns the time by the installation's clock.
func (a *App) Now() time.Time { return a.db.Now() }

// Vitals returns the figures of all nodes for metrics.
func (a *App) Vitals(ctx context.Context) (store.Vitals, error) {
	return a.db.Read().Vitals(ctx, a.db.Now())
}

// Hashing returns the state of the password hashing pool.
func (a *App) Hashing() argon.Stats { return a.pool.Stats() }

// HashProcesses returns what the processes for password hashes use.
func (a *App) HashProcesses() argon.Processes { return a.pool.Processes() }

// Run does the background work until ctx ends: it renews the lease, writes last uses,
// refusals and decisions, delivers mail and webhooks, looks at domains, and sweeps. The lease ends last: until
// the last use is written, other nodes must ask this one before they end a session as idle.
func (a *App) Run(ctx context.Context) {
	leaseCtx, endLease := context.WithCancel(context.WithoutCancel(ctx))
	var leaseRun, work sync.WaitGroup
	leaseRun.Go(func() { a.Lease.Run(leaseCtx) })
	for _, run := range []func(context.Context){a.Sessions.Run, a.APIKeys.Run, a.Directories.Run, a.runUndos, a.Inbox.Run, a.Access.Decisions().Run, a.Mail.Run, a.Webhooks.Run, a.Connections.Run, a.Domains.Run, a.runNodeSweeps, a.runTurns} {
		work.Go(func() { run(ctx) })
	}
	work.Wait()
	endLease()
	leaseRun.Wait()
}

// Model returns the current list of actions of the installation. Errors: unavailable.
func (a *App) Model(ctx context.Context) (*doorward.Model, error) {
	rules, err := a.db.Read().Rules(ctx, "")
	return rules.Model(), err
}
