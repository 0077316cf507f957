package session

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Draft returns a session of the user in the tenant that is still to be opened, with its token. Call
// it before the transaction in which Open writes it, and Keep after the commit.
func (s *Sessions) Draft(by doorward.Caller, userID, tenantID string) Opened {
	return Opened{Token: secret.New(), mark: s.registry.Mark(), Session: doorward.Session{
		ID: doorward.NewID(doorward.PrefixSession), UserID: userID, TenantID: tenantID,
		IP: by.IP, UserAgent: by.UserAgent,
	}}
}

// Admit fills in the member whom login.Next has let in, and how they were authenticated. A draft
// that was not resumed from another session begins at now.
func (o *Opened) Admit(user doorward.User, settings doorward.TenantSettings, a doorward.Assurance, now time.Time) {
	o.User, o.User.LastLoginAt = user, &now
	o.Session.Assurance, o.Session.LastSeenAt = a, now
	o.Session.Role, o.Session.JoinedAt, o.Session.Tenant = user.Role, user.CreatedAt, settings
	if o.Session.CreatedAt.IsZero() {
		o.Session.CreatedAt = now
	}
}

// Open writes an admitted session, in the transaction that has decided to open it and has locked the
// account. It ends the sessions that the new one replaces in the browser, and the user's oldest ones
// beyond the limit. Errors: membership_suspended, unavailable.
func (s *Sessions) Open(ctx context.Context, tx *access.Tx, o Opened) error {
	active, err := tx.RecordLogin(ctx, o.Session.TenantID, o.Session.UserID)
	if err == nil && !active {
		err = doorward.Fail(doorward.CodeMembershipSuspended, "")
	}
	if err != nil {
		return err
	}
	if err := endReplaced(ctx, tx, o.Session.UserID, tx.By.Replaced); err != nil {
		return err
	}
	tx.RecordUserAgent()
	if o.Session.Issuer != doorward.OwnIssuer {
		tx.Changed(doorward.FieldConnection, "", string(o.Session.Issuer))
	}
	if err := tx.DeleteOverdueUserSessions(ctx, Life(s.limits), o.Session.UserID); err != nil {
		return err
	}
	hash := o.Token.Hash()
	if err := tx.InsertSession(ctx, o.Session, hash[:]); err != nil {
		return err
	}
	return s.endOldest(ctx, tx, o.Session)
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

// Keep puts an opened session in memory after the commit, since it will be used next. One that a connection
// vouches for is read then: how long it is accepted depends on the tenant's demand for sign-on.
func (s *Sessions) Keep(o Opened) {
	if o.Session.Issuer != doorward.OwnIssuer {
		return
	}
	s.registry.Put(o.Token.Hash(), entryOf(store.Credential{Session: o.Session, User: o.User}, s.limits, o.mark))
}

// Resume gives the draft the login of an old session of the same user: its time, its proofs (OWASP ASVS 5.0,
// 7.3.2: at its absolute limit a session needs a new authentication) and whether it came from a new browser. It returns the old
// session. Errors: unauthenticated if that has ended.
func (o *Opened) Resume(ctx context.Context, tx *access.Tx, id string) (doorward.Session, error) {
	old, err := tx.Session(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && old.Session.UserID != o.Session.UserID {
		return old.Session, Ended()
	}
	o.Session.CreatedAt, o.Session.Assurance, o.Session.NewBrowser = old.Session.CreatedAt, old.Session.Assurance, old.Session.NewBrowser
	return old.Session, err
}

// Replace ends the old session in favour of an admitted one. It runs before Open, so that a user at the
// limit of sessions loses only the old one. Errors: login_too_old if the limit of the new session's
// tenant has passed since the login; unauthenticated.
func (s *Sessions) Replace(ctx context.Context, tx *access.Tx, o Opened, old doorward.Session) error {
	if !tx.Now.Before(o.Session.ExpiresAt(s.limits)) {
		return doorward.Fail(doorward.CodeLoginTooOld, "")
	}
	deleted, err := tx.DeleteSession(ctx, old.ID)
	if err == nil && !deleted { // another call ended it while this one waited for the row
		err = Ended()
	}
	if err != nil {
		return err
	}
	return tx.RecordAlso(ctx, doorward.SessionEnd, object(old))
}

// Ended returns the error for an ended session, also for one that a change of the password has ended.
func Ended() *doorward.Error {
	return doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
}

// CheckUsable returns nil when a session may be opened in the membership; see
// decide.SignIn.
func CheckUsable(u doorward.User) error { return decide.SignIn(u).Err() }

// endOldest ends the user's oldest sessions beyond the limit: those that Doorward itself vouches for, or those
// of the same connection.
func (s *Sessions) endOldest(ctx context.Context, tx *access.Tx, opened doorward.Session) error {
	limit := s.limits.PerUser
	if opened.Issuer != doorward.OwnIssuer {
		limit = doorward.ConnectionSessionsMax
	}
	if limit == 0 {
		return nil
	}
	n, err := tx.DeleteOldestSessions(ctx, opened.UserID, opened.Issuer, opened.ID, limit)
	if err != nil {
		return err
	}
	return tx.RecordEndedByTenant(ctx, opened.UserID, n)
}
