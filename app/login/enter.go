package login

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
)

// entry is a proof of identity on its way into a tenant: a sign-in, or a switch from a session.
type entry struct {
	by       doorward.Caller // as the request came
	proof    proof.Proof
	tenantID string
	// sessionID is the session to switch from; empty for a sign-in.
	sessionID string
	// bySession reports whether that session is all that proves the identity: the account is read from it.
	bySession bool
	// methods are those of a second factor, or of a passkey, that was just proved.
	methods  []string
	remember bool // the browser is to stand in for the factor
	// use, unless nil, uses up what proved the methods: the challenge and the answer.
	use func(context.Context, *access.Tx) error
	// memberships are the account's, if they have been read.
	memberships []doorward.User
	// before, unless nil, runs first in the transaction; see Within.
	before func(context.Context, *access.Tx) error
	// changed is the error if the account has changed since it was proved.
	changed error
}

// enter asks Next what comes after the proof and does it, in one transaction: it opens the session, or
// makes a challenge for what is missing. Errors: those of Next and of session.Sessions.Open; entry.changed.
func (l *Login) enter(ctx context.Context, e entry) (Outcome, error) {
	draft, device := l.sessions.Draft(e.by, e.proof.Account.ID, e.tenantID), secret.New()
	on := doorward.Object{Type: "session", ID: draft.Session.ID, TenantID: e.tenantID}
	var outcome Outcome
	revocation, err := l.writer.Do(ctx, e.caller(), doorward.SessionOpen, on, func(tx *access.Tx) (err error) {
		outcome, err = l.admit(ctx, tx, e, draft, device)
		return err
	})
	if err != nil {
		return nil, err
	}
	done, isOpen := outcome.(SignedIn)
	if !isOpen {
		l.factors.Tally(factor.Asked)
		return outcome, nil
	}
	done.Revocation = revocation
	l.sessions.Keep(done.Opened)
	return done, nil
}

// Enter signs in by a proof that another feature has checked, such as the answer of a tenant's own
// sign-on. What follows it is decided as for a password. Errors: those of WithPassword about the tenant.
func (l *Login) Enter(ctx context.Context, by doorward.Caller, proved proof.Proof, tenantID string) (Outcome, error) {
	outcome, err := l.enter(ctx, entry{by: by, proof: proved, tenantID: tenantID, changed: doorward.Fail(doorward.CodeInvalidCredentials, "")})
	return outcome, proved.FailIfRefused(ctx, err)
}

// caller acts as the account: at a sign-in the proof is all that it has, at a switch the session. By the
// word of another issuer it is the member of that one's tenant, and no more.
func (e entry) caller() doorward.Caller {
	if e.sessionID != "" && e.by.SessionID == e.sessionID {
		return e.by
	}
	by := e.by.As(doorward.User{ID: e.proof.Account.ID, Email: e.proof.Account.Email})
	by.SessionID, by.Issuer = e.sessionID, e.proof.Issuer
	if by.Issuer != doorward.OwnIssuer {
		by.TenantID = e.proof.TenantID
	}
	return by
}

func (l *Login) admit(ctx context.Context, tx *access.Tx, e entry, draft session.Opened, device secret.Token) (Outcome, error) {
	if e.before != nil {
		if err := e.before(ctx, tx); err != nil {
			return nil, err
		}
	}
	if err := e.lockTenant(ctx, tx); err != nil {
		return nil, err
	}
	if e.bySession {
		account, err := access.OwnAccount(ctx, tx.Reader, e.by)
		if err != nil {
			return nil, err
		}
		e.proof.Account = account
		if err := tx.CountChange(ctx); err != nil { // when the switch begins; its completion doesn't count
			return nil, err
		}
	}
	if err := e.proof.Lock(ctx, tx, e.changed); err != nil {
		return nil, err
	}
	if err := e.checkEnded(ctx, tx); err != nil {
		return nil, err
	}
	if e.use != nil {
		if err := e.use(ctx, tx); err != nil {
			return nil, err
		}
	}
	assurance, old, err := e.assurance(ctx, tx, &draft)
	if err != nil {
		return nil, err
	}
	next, err := Next(ctx, tx, e.proof.Account.ID, e.tenantID, assurance)
	if err != nil {
		return nil, err
	}
	if next.Step != Open {
		return l.ask(ctx, tx, e, next.Step)
	}
	draft.Admit(next.User, next.Settings, next.Assurance, tx.Now)
	if next.Bypasses {
		if err := recordBypass(ctx, tx, next.User); err != nil {
			return nil, err
		}
	}
	return l.open(ctx, tx, e, draft, old, device)
}

// lockTenant locks the tenant for a switch: else a statement that ends all sessions in the tenant would wait
// for the old session, and not see the new one. For a sign-in it locks only one that has connections: once a
// change of its demand for sign-on is answered, no sign-in goes on by what was before.
func (e entry) lockTenant(ctx context.Context, tx *access.Tx) error {
	if e.sessionID != "" {
		return tx.LockTenant(ctx, e.tenantID)
	}
	return tx.LockTenantOfSignOn(ctx, e.tenantID)
}

// assurance returns how the user was authenticated: by the proof, after what the session to switch from
// had proved. It returns that session.
func (e entry) assurance(ctx context.Context, tx *access.Tx, draft *session.Opened) (doorward.Assurance, doorward.Session, error) {
	a := e.proof.Assurance(tx.Now)
	var old doorward.Session
	if e.sessionID != "" {
		var err error
		if old, err = draft.Resume(ctx, tx, e.sessionID); err != nil {
			return a, old, err
		}
		a = draft.Session.Assurance
	}
	if len(e.methods) > 0 {
		a = e.withFactor(a, tx.Now)
	}
	return a, old, nil
}

// withFactor returns the assurance after the proof by a second factor or a passkey. For a session that a
// connection vouches for, that is a new proof only if its tenant manages the account; see
// session.ProvedByFactor.
func (e entry) withFactor(a doorward.Assurance, now time.Time) doorward.Assurance {
	if a.Issuer != doorward.OwnIssuer && e.proof.Account.ManagedBy != e.tenantID {
		return a.WithFactor(now, e.methods...)
	}
	return a.WithProof(now, e.methods...)
}

// open writes the session. The attempt succeeds, and the browser becomes a known one.
func (l *Login) open(ctx context.Context, tx *access.Tx, e entry, opened session.Opened, old doorward.Session, device secret.Token) (Outcome, error) {
	if err := e.proof.Succeed(ctx, tx.Tx); err != nil {
		return nil, err
	}
	done := SignedIn{Opened: opened, Allowance: e.proof.Allowance()}
	if e.sessionID != "" {
		if err := l.sessions.Replace(ctx, tx, opened, old); err != nil {
			return nil, err
		}
		return done, l.sessions.Open(ctx, tx, opened)
	}
	if e.proof.Issuer != doorward.OwnIssuer {
		return done, l.openByConnection(ctx, tx, opened)
	}
	browser, err := e.storeBrowser(ctx, tx, opened.Session.Tenant.SecondFactor, device.Hash())
	if err != nil {
		return nil, err
	}
	if browser.isStored {
		done.Device = &device
	}
	done.Opened.Session.NewBrowser = browser.isNew
	if e.memberships == nil { // before the commit: a fault after it would lose the session's token
		if e.memberships, err = tx.Memberships(ctx, opened.User.ID); err != nil {
			return nil, err
		}
	}
	done.CanSwitch = hasOther(e.memberships, e.tenantID)
	return done, l.sessions.Open(ctx, tx, done.Opened)
}

// openByConnection writes a session that a connection vouches for. It leads to no other tenant, and the
// browser becomes no known one: that belongs to the account.
func (l *Login) openByConnection(ctx context.Context, tx *access.Tx, opened session.Opened) error {
	if _, err := tx.EndManagedUntil(ctx, opened.User.ID, opened.Session.TenantID); err != nil {
		return err
	}
	return l.sessions.Open(ctx, tx, opened)
}

// ask makes a challenge for the step that is missing, instead of a session. The attempt then counts
// neither as a failure nor as a success; see proof.Proof.Pause. To set up the account's first
// factor, the session to switch from must have been proved recently: no password is asked for, and a
// thief of an old session could set up a factor of their own.
func (l *Login) ask(ctx context.Context, tx *access.Tx, e entry, step Step) (Outcome, error) {
	purpose := factor.ForLogin
	if step == Enrol {
		purpose = factor.ForEnrolment
		if err := tx.NeedProof(); err != nil {
			return nil, err
		}
	}
	if err := e.proof.Pause(ctx, tx.Tx); err != nil {
		return nil, err
	}
	if e.sessionID != "" { // a login's challenges count in its own limits
		if err := tx.CountChallenge(ctx); err != nil {
			return nil, err
		}
	}
	tx.RecordAs(doorward.MFAChallenge, doorward.Object{Type: "user", ID: e.proof.Account.ID, TenantID: e.tenantID})
	begun, err := l.factors.BeginChallenge(ctx, tx, purpose, e.proof.Account, e.tenantID, e.sessionID, e.proof.State())
	if err != nil {
		return nil, err
	}
	if step == Enrol {
		return EnrolmentNeeded{begun}, nil
	}
	return SecondNeeded{begun}, nil
}

// storeBrowser is rememberBrowser, after a challenge for a browser that is also to stand in for the
// factor, if the tenant allows it. A browser that was known already then gets a new cookie: somebody
// who has the password may have made the old one, and have planted it here.
func (e entry) storeBrowser(ctx context.Context, tx *access.Tx, demand doorward.SecondFactor, hash secret.Hash) (browser, error) {
	b, err := rememberBrowser(ctx, tx, e.by, e.proof.Account, hash)
	if err != nil || !e.remember || b.device == nil || demand.RememberDays == 0 {
		return b, err
	}
	if !b.isStored {
		if err := tx.RenewDevice(ctx, b.device, hash[:]); err != nil {
			return b, err
		}
	}
	b.device, b.isStored = hash[:], true
	return b, tx.RememberBrowser(ctx, hash[:], e.by.IP, e.by.UserAgent)
}
