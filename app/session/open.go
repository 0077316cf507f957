package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Open opens a session in the tenant for an account whose password was verified against
// account.PasswordHash. Password, membership and tenant are checked again under locks, so
// that no session outlives what allowed it. The zero assurance is a password alone. prepare runs
// first in the same transaction, and sees the account as it was before this login.
//
// Errors: those of a login; mfa_required, mfa_enrolment_required if the assurance lacks a second
// factor that the account has or the tenant demands.
func (s *Sessions) Open(ctx context.Context, by doorward.Caller, account doorward.Account, tenantID string, assurance doorward.Assurance, prepare func(*access.Tx) error) (Opened, error) {
	mark := s.registry.Mark()
	opened, hash := s.draft(by, account.ID, tenantID)
	opened.Session.Assurance = assurance
	user := doorward.User{ID: account.ID, Email: account.Email}
	revocation, err := s.writer.Do(ctx, by.As(user), doorward.SessionOpen, object(opened.Session), func(tx *access.Tx) error {
		if err := lockUnchanged(ctx, tx, account, doorward.Fail(doorward.CodeInvalidCredentials, "")); err != nil {
			return err
		}
		if err := prepare(tx); err != nil {
			return err
		}
		if err := opened.admit(ctx, tx); err != nil {
			return err
		}
		if err := endReplaced(ctx, tx, account.ID, by.Replaced); err != nil {
			return err
		}
		tx.RecordUserAgent()
		return s.insert(ctx, tx, opened.Session, hash)
	})
	opened.Revocation = revocation
	return opened, s.keep(opened, hash, mark, err)
}

// endReplaced ends the sessions that the new one replaces in a browser (OWASP,
// Session Management Cheat Sheet, "Renew the Session ID After Any Privilege Level
// Change"). Sessions of other users continue.
func endReplaced(ctx context.Context, tx *access.Tx, userID string, hashes [][]byte) error {
	all, err := tx.SessionsByTokens(ctx, hashes)
	if err != nil {
		return err
	}
	for _, old := range all {
		if old.Session.UserID != userID {
			continue
		}
		deleted, err := tx.DeleteSession(ctx, old.Session.ID)
		if err == nil && deleted { // else another call ended it while this one waited for the row
			err = tx.RecordAlso(ctx, doorward.SessionEnd, object(old.Session))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep puts an opened session in memory, since it will be used next, unless err is set. It
// returns err.
func (s *Sessions) keep(o Opened, hash secret.Hash, mark uint64, err error) error {
	if err == nil {
		s.registry.Put(hash, entryOf(store.Credential{Session: o.Session, User: o.User}, s.limits, mark))
	}
	return err
}

// Switch ends the caller's session and opens one in another tenant, with the time and the
// proofs of the same login, since switching takes no password. proved are the methods of a
// second factor that was just proved, if any; prepare is as with Open. Errors: those of Open;
// not_found without an active membership in that tenant; login_too_old if that tenant's limit
// has passed since the login; unauthenticated if the session has ended.
func (s *Sessions) Switch(ctx context.Context, by doorward.Caller, tenantID string, proved []string, prepare func(*access.Tx) error) (Opened, error) {
	mark := s.registry.Mark()
	opened, hash := s.draft(by, by.ID, tenantID)
	revocation, err := s.writer.Do(ctx, by, doorward.SessionOpen, object(opened.Session), func(tx *access.Tx) error {
		// Without this lock, a statement that ends all sessions in the tenant would wait for the
		// old one, and not see the new one.
		if err := tx.LockTenant(ctx, tenantID); err != nil {
			return err
		}
		account, err := access.OwnAccount(ctx, tx.Reader, by)
		if err != nil {
			return err
		}
		if err := lockUnchanged(ctx, tx, account, endedError()); err != nil {
			return hideMembership(err)
		}
		if err := prepare(tx); err != nil {
			return err
		}
		old, err := opened.resume(ctx, tx, by.SessionID, proved)
		if err != nil {
			return err
		}
		if err := opened.admit(ctx, tx); err != nil {
			return hideMembership(err)
		}
		tx.RecordUserAgent()
		if err := s.replace(ctx, tx, opened.Session, old); err != nil {
			return err
		}
		return s.insert(ctx, tx, opened.Session, hash)
	})
	opened.Revocation = revocation
	return opened, s.keep(opened, hash, mark, err)
}

// hideMembership hides the difference between a suspended membership and none: to the
// caller both are an absent tenant.
func hideMembership(err error) error {
	if doorward.HasCode(err, doorward.CodeInvalidCredentials) || doorward.HasCode(err, doorward.CodeMembershipSuspended) {
		return doorward.Fail(doorward.CodeNotFound, "")
	}
	return err
}

// resume gives the new session the login of an old one: its time, and its proofs (OWASP ASVS
// 5.0, 7.3.2: at its absolute limit a session needs a new authentication). It returns the old
// session. Errors: unauthenticated if that has ended.
func (o *Opened) resume(ctx context.Context, tx *access.Tx, id string, proved []string) (doorward.Session, error) {
	old, err := tx.Session(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && old.Session.UserID != o.Session.UserID {
		return old.Session, endedError()
	}
	o.Session.CreatedAt, o.Session.Assurance = old.Session.CreatedAt, old.Session.Assurance
	if len(proved) > 0 {
		o.Session.Assurance = o.Session.WithProof(tx.Now, proved...)
	}
	return old.Session, err
}

// replace ends the old session. It runs before the insertion, so that a user at the limit of
// sessions loses only the old one. Errors: login_too_old, unauthenticated.
func (s *Sessions) replace(ctx context.Context, tx *access.Tx, opened, old doorward.Session) error {
	if !tx.Now.Before(opened.ExpiresAt(s.limits)) {
		return doorward.Fail(doorward.CodeLoginTooOld, "")
	}
	deleted, err := tx.DeleteSession(ctx, old.ID)
	if err == nil && !deleted { // another call ended it while this one waited for the row
		err = endedError()
	}
	if err != nil {
		return err
	}
	return tx.RecordAlso(ctx, doorward.SessionEnd, object(old))
}

// endedError returns the error for an ended session, also for one that a change of the
// password has ended.
func endedError() error {
	return doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
}

// draft makes the session and its token, and returns them with the hash to be stored.
func (s *Sessions) draft(by doorward.Caller, userID, tenantID string) (Opened, secret.Hash) {
	token := secret.New()
	return Opened{Token: token, Session: doorward.Session{
		ID: doorward.NewID(doorward.PrefixSession), UserID: userID, TenantID: tenantID,
		IP: by.IP, UserAgent: by.UserAgent,
	}}, token.Hash()
}

// lockUnchanged locks the account if it still has the password; otherwise it returns the
// error changed. Every action that ends sessions locks in this order: account, membership.
func lockUnchanged(ctx context.Context, tx *access.Tx, account doorward.Account, changed error) error {
	same, err := tx.LockAccountIfSamePassword(ctx, account)
	if err == nil && !same {
		err = changed
	}
	return err
}

// admit fills in the times, the user and the tenant's settings, if the session may be opened.
// The account must be locked. Errors: those of recordLogin and requireFactor.
func (o *Opened) admit(ctx context.Context, tx *access.Tx) (err error) {
	if o.Session.LastSeenAt = tx.Now; o.Session.CreatedAt.IsZero() {
		o.begin(tx.Now)
	}
	if o.User, err = recordLogin(ctx, tx, o.Session); err != nil {
		return err
	}
	o.Session.Role, o.Session.JoinedAt = o.User.Role, o.User.CreatedAt
	tenant, err := tx.Tenant(ctx, o.Session.TenantID)
	o.Session.Tenant = tenant.Settings
	if err != nil {
		return err
	}
	return o.requireFactor(ctx, tx)
}

// begin sets the time of the login and of its proofs to now. Without other proofs, the login is
// one by a password alone.
func (o *Opened) begin(now time.Time) {
	s := &o.Session
	s.CreatedAt, s.ProvedAt = now, now
	if s.AAL = max(1, s.AAL); s.AAL > 1 {
		s.FactorAt = now
	}
	if len(s.AMR) == 0 {
		s.AMR = []string{doorward.MethodPassword}
	}
}

// requireFactor refuses a session without a second factor if the account has one, or if the
// tenant demands one and the days of grace are over. A browser in which a factor was proved
// stands in for it, for as long as the tenant allows. Errors: mfa_required,
// mfa_enrolment_required.
func (o *Opened) requireFactor(ctx context.Context, tx *access.Tx) (err error) {
	if o.Session.Remembered = false; o.Session.AAL > 1 {
		return nil
	}
	if o.User.Factors > 0 {
		if o.Session.Remembered, err = o.isRemembered(ctx, tx); err == nil && !o.Session.Remembered {
			err = doorward.Fail(doorward.CodeMFARequired, "")
		}
		return err
	}
	deadline, demanded := o.Session.Tenant.SecondFactor.DueFrom(o.User.Role, o.User.CreatedAt)
	if demanded && !tx.Now.Before(deadline) {
		return doorward.Fail(doorward.CodeMFAEnrolmentRequired, "")
	}
	return nil
}

// isRemembered reports whether the caller's browser stands in for the second factor in the session's
// tenant.
func (o *Opened) isRemembered(ctx context.Context, tx *access.Tx) (bool, error) {
	demand := o.Session.Tenant.SecondFactor
	// Of several cookies another host has set one, and can't have the right one decide.
	if demand.RememberDays == 0 || len(tx.By.Devices) != 1 {
		return false, nil
	}
	known, err := credential.KnownDevices(ctx, tx.Reader, tx.By, o.User.Email, tx.Now)
	if err != nil {
		return false, err
	}
	forgotten, err := tx.BrowsersForgotten(ctx, o.Session.TenantID, o.User.ID)
	return slices.ContainsFunc(known, func(d store.KnownDevice) bool {
		return d.SecondAt.After(forgotten) && demand.Remembers(d.SecondAt, tx.Now)
	}), err
}

// recordLogin records the login, and returns the user as a member of the session's tenant.
// Errors: invalid_credentials if there is no membership; those of CheckUsable.
func recordLogin(ctx context.Context, tx *access.Tx, session doorward.Session) (doorward.User, error) {
	active, err := tx.RecordLogin(ctx, session.TenantID, session.UserID)
	if err != nil {
		return doorward.User{}, err
	}
	user, err := tx.User(ctx, session.TenantID, session.UserID)
	if errors.Is(err, store.ErrNone) {
		return user, doorward.Fail(doorward.CodeInvalidCredentials, "")
	}
	if err != nil {
		return user, err
	}
	if !active { // if it was resumed since RecordLogin, it isn't locked: refuse it, too
		user.Status = doorward.UserSuspended
	}
	return user, CheckUsable(user)
}

// insert writes the session and enforces the limit of sessions per user.
func (s *Sessions) insert(ctx context.Context, tx *access.Tx, session doorward.Session, hash secret.Hash) error {
	if err := tx.DeleteOverdueUserSessions(ctx, Life(s.limits), session.UserID); err != nil {
		return err
	}
	if err := tx.InsertSession(ctx, session, hash[:]); err != nil {
		return err
	}
	return s.endOldest(ctx, tx, session)
}

// CheckUsable returns nil when a session may be opened in the membership; see
// access.CanSignIn.
func CheckUsable(u doorward.User) error { return access.CanSignIn(u).Err() }

// endOldest ends the user's oldest sessions beyond the limit.
func (s *Sessions) endOldest(ctx context.Context, tx *access.Tx, opened doorward.Session) error {
	if s.limits.PerUser == 0 {
		return nil
	}
	n, err := tx.DeleteOldestSessions(ctx, opened.UserID, opened.ID, s.limits.PerUser)
	if err != nil {
		return err
	}
	return tx.RecordEndedByTenant(ctx, opened.UserID, n)
}
