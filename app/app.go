// Package app is what may happen: the features, each in a package of its own.
// This file is the list of them, built once.
package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/app/inbox"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/mail"
	"github.com/doorward/doorward/app/overview"
	"github.com/doorward/doorward/app/password"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// Settings are what the features go by. Those that an operator can choose are described
// in node/settings.go.
type Settings struct {
	Sessions          doorward.SessionLimits
	SessionsInMemory  int
	Lease             time.Duration // of the memory of sessions, lease.MinLease to lease.MaxLease
	Attempts          credential.Limits
	InviteResendWait  time.Duration // between two mails of one invitation
	TenantHold        time.Duration // between the closing of a tenant and its destruction
	PasswordMinLength int
	CommonPasswords   *commonpw.List // that nobody may choose
	Hash              argon.Params

	// Published are the settings that have to be the same on all nodes, with their
	// values here. ChangeShared starts beside nodes that have others.
	Published    []lease.Setting
	ChangeShared bool

	LinkURL   string         // of links in mails, without a slash at the end
	MailBrand doorward.Brand // of the installation
	Transport smtp.Transport // of mails
	Log       *slog.Logger
}

// App is the list of features.
type App struct {
	Access      *access.Door
	Login       *login.Login
	Sessions    *session.Sessions
	Invitations *invite.Invitations
	Passwords   *password.Passwords
	Users       *user.Users
	Tenants     *tenant.Tenants
	Keys        *key.Keys
	Mail        *mail.Mail
	Inbox       *inbox.Inbox
	Audit       *audit.Trail
	Overviews   *overview.Overviews
	// Installation is what happens to the installation at once.
	Installation *installation.Installation
	Lease        *lease.Lease
	// PasswordRules are the rules in force, to be told to people.
	PasswordRules credential.Rules

	db       *store.DB
	verifier *credential.Verifier
	pool     *argon.Pool
	log      *slog.Logger

	futures futures
	mended  chan struct{} // the clock is right again
}

// New builds the features over a database whose schema is up to date.
func New(db *store.DB, s Settings) *App {
	l := lease.New(db, s.Lease)
	l.Publish(s.Published, s.ChangeShared)
	lines, mended := newNoticeLog(s.Log), make(chan struct{}, 1)
	l.OnNotice(func(n lease.Notice) {
		lines.write(n)
		if n.Kind == lease.ClockRight {
			poke(mended)
		}
	})
	door := access.New(db, l)
	rules := credential.Rules{MinLength: s.PasswordMinLength, Common: s.CommonPasswords}
	sessions := session.New(door, db, l, s.Sessions, s.SessionsInMemory)
	life := session.Life(s.Sessions)
	pool := argon.NewPool(s.Hash, argon.Options{Yield: sessions.Busy, Phase: tracePhase})
	verifier := credential.New(door, db, pool, s.Attempts)
	waiting := inbox.New(door, db, s.Log)
	return &App{
		Access:       door,
		Login:        login.New(db, verifier, sessions),
		Sessions:     sessions,
		Invitations:  invite.New(door, db, verifier, rules, s.InviteResendWait),
		Passwords:    password.New(door, db, verifier, rules, life),
		Users:        user.New(door, db, life),
		Tenants:      tenant.New(door, db, life, s.TenantHold, s.Log),
		Keys:         key.New(door, db),
		Mail:         mail.New(door, db, s.Transport, s.LinkURL, s.MailBrand, s.Log),
		Inbox:        waiting,
		Audit:        audit.New(db, waiting.Settle),
		Overviews:    overview.New(door, db, life, waiting.Settle),
		Installation: installation.New(door, life),
		Lease:        l, PasswordRules: rules,
		db: db, verifier: verifier, pool: pool, log: s.Log, mended: mended,
	}
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tracePhase shows a phase of hashing in the trace of its request.
func tracePhase(ctx context.Context, phase string) (over func()) {
	_, span := trace.Start(ctx, phase)
	return span.End
}

// Ready returns nil when requests can be served: the database answers, has the
// schema that this binary needs, takes the node's lease, which one that only reads
// does not, and has about the same time as this machine. Else the error is
// unavailable and says which of them it is.
//
// A lease that is late is no reason: a node under load would be taken away, its
// load would go to the others, and one after the other would follow.
func (a *App) Ready(ctx context.Context) error {
	err := a.db.CheckSchema(ctx)
	switch {
	case errors.Is(err, store.ErrSchema):
		return unready(err, "The schema of the database is not one that this version works with.")
	case err != nil:
		return unready(err, "The database does not answer.")
	case a.Lease.Lost():
		return unready(errGone, "This node has not renewed its lease for so long that others take it for dead.")
	}
	return a.db.Clock().Err()
}

var errGone = errors.New("app: no lease for three leases")

func unready(err error, detail string) error {
	e := doorward.Unavailable(err)
	e.Detail = detail
	return e
}

// Now is the instant by the clock that everything goes by.
func (a *App) Now() time.Time { return a.db.Now() }

// Vitals is what the database knows of how all nodes are.
func (a *App) Vitals(ctx context.Context) (store.Vitals, error) { return a.db.Read().Vitals(ctx) }

// Hashing is the state of the pool that hashes passwords.
func (a *App) Hashing() argon.Stats { return a.pool.Stats() }

// sweepEvery bounds how long the data of a tenant outlives its hold. Besides that
// nothing depends on the sweep but the size of tables.
const sweepEvery = time.Minute

// Run does the upkeep (following changes, writing uses of sessions down,
// delivering mail, deleting what is over) until ctx ends. The lease ends last:
// until the last use is written down, other nodes have to ask this one before
// they call a session idle.
func (a *App) Run(ctx context.Context) {
	following, leave := context.WithCancel(context.WithoutCancel(ctx))
	var leased, work sync.WaitGroup
	leased.Go(func() { a.Lease.Run(following) })
	for _, run := range []func(context.Context){a.Sessions.Run, a.Inbox.Run, a.Mail.Run, a.sweepUntil} {
		work.Go(func() { run(ctx) })
	}
	work.Wait()
	leave()
	leased.Wait()
}

// sweepUntil begins at once: a node that is often started anew would never sweep.
func (a *App) sweepUntil(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := a.Sweep(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("sweep", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.mended: // nothing was swept while the clock was wrong
		}
	}
}

// Sweep deletes what is over, the data of tenants whose hold is over included.
// Nothing is, while the clock is wrong.
func (a *App) Sweep(ctx context.Context) error {
	if a.db.Clock().Wrong() {
		return nil
	}
	return errors.Join(a.cutFuture(ctx), a.Sessions.Sweep(ctx), a.Mail.Sweep(ctx), a.verifier.Sweep(ctx), a.verifier.SweepLeft(ctx), a.Lease.Sweep(ctx), a.Tenants.Sweep(ctx))
}
