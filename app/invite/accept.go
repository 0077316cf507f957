package invite

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Complete makes the account of an invited person who has none, with its first
// password, and the membership. An account without a password, of somebody who was
// in a tenant before or was imported, gets one: like a reset that takes the mail to
// the address. Errors, in this order: invitation_not_found,
// invitation_expired, invitation_revoked, invitation_used, tenant_frozen,
// account_exists, validation_failed (the token stays usable).
func (i *Invitations) Complete(ctx context.Context, by doorward.Caller, token, password, confirm string) (doorward.User, error) {
	if token == "" {
		faults := i.rules.CheckNew(password, confirm, "")
		return doorward.User{}, doorward.InvalidFields(append([]doorward.FieldError{noToken}, faults...)...)
	}
	inv, tenant, err := i.open(ctx, token)
	if err != nil {
		return doorward.User{}, i.refused(ctx, by, inv, err)
	}
	known, err := i.noPassword(ctx, inv.Email)
	if err != nil {
		return doorward.User{}, i.stillOpen(ctx, token, err)
	}
	if faults := i.rules.CheckNew(password, confirm, inv.Email, inv.Name, tenant.Name); len(faults) > 0 {
		return doorward.User{}, doorward.InvalidFields(faults...)
	}
	hash, err := i.verifier.Hash(ctx, password)
	if err != nil {
		return doorward.User{}, err
	}
	if known.ID != "" {
		return i.join(ctx, by, token, inv, known, func(tx *access.Tx) error { return revive(ctx, tx, known, hash) })
	}
	account := doorward.Account{ID: doorward.NewID(doorward.PrefixUser), Email: inv.Email, PasswordHash: hash, Locale: inv.Locale}
	return i.join(ctx, by, token, inv, account, func(tx *access.Tx) error { return create(ctx, tx, account) })
}

var noToken = doorward.FieldError{Pointer: "/token", Code: "required", Message: "Send the code of the invitation mail."}

// noPassword returns the account of the address, which has no password, or the
// zero one when there is none. An account with a password is account_exists.
func (i *Invitations) noPassword(ctx context.Context, email string) (doorward.Account, error) {
	account, err := i.db.Read().AccountByEmail(ctx, email)
	switch {
	case errors.Is(err, store.ErrNone):
		return doorward.Account{}, nil
	case err == nil && account.PasswordHash != "":
		return doorward.Account{}, doorward.Fail(doorward.CodeAccountExists, "")
	}
	return account, err
}

// stillOpen returns the reason only if the invitation can be accepted still: the
// account that is in the way may have come of this very invitation, a moment
// ago.
func (i *Invitations) stillOpen(ctx context.Context, token string, reason error) error {
	if _, _, err := i.open(ctx, token); err != nil {
		return err
	}
	return reason
}

func create(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	account.CreatedAt = tx.Now
	added, err := tx.InsertAccount(ctx, account)
	if err == nil && !added {
		err = doorward.Fail(doorward.CodeAccountExists, "")
	}
	return err
}

// revive gives the account its password, unless it has one by now or is gone.
func revive(ctx context.Context, tx *access.Tx, account doorward.Account, hash string) error {
	set, err := tx.SetPassword(ctx, account.ID, "", hash)
	if err == nil && !set {
		err = doorward.Fail(doorward.CodeAccountExists, "")
	}
	if err != nil {
		return err
	}
	return tx.RaiseGeneration(ctx, account.ID, nil)
}

// Joined is somebody who has accepted, and what is left of the allowance that the
// password counted in; see credential.Proof.Allowance.
type Joined struct {
	doorward.User
	Allowance *doorward.Allowance
}

// Accept makes the membership of an invited person who has an account, proved
// by a session (by) of that address or by the account's password. Errors:
// unauthenticated with neither, invitation_not_found and its like,
// wrong_account, invalid_credentials, too_many_attempts.
func (i *Invitations) Accept(ctx context.Context, by doorward.Caller, token, password string) (Joined, error) {
	if by.Kind != doorward.ByUser && password == "" {
		return Joined{}, doorward.Fail(doorward.CodeUnauthenticated, "Sign in as the invited person, or send the password of that account.")
	}
	if token == "" {
		return Joined{}, doorward.InvalidFields(noToken)
	}
	inv, _, err := i.open(ctx, token)
	if err != nil {
		return Joined{}, i.refused(ctx, by, inv, err)
	}
	proof, err := i.prove(ctx, by, inv, password)
	if err != nil {
		return Joined{}, i.refused(ctx, by, inv, err)
	}
	user, err := i.join(ctx, by, token, inv, proof.Account, func(tx *access.Tx) error {
		if err := unchanged(ctx, tx, proof.Account); err != nil {
			return err
		}
		if bySession(by, inv) {
			return stillSignedIn(ctx, tx, by)
		}
		return proof.Settle(ctx, tx.Tx)
	})
	return Joined{user, proof.Allowance()}, proof.End(ctx, err)
}

// refused records what stands against the acceptance of a real invitation.
func (i *Invitations) refused(ctx context.Context, by doorward.Caller, inv doorward.Invitation, err error) error {
	return i.door.Refused(ctx, by, doorward.InvitationAccept, object(inv), err)
}

// prove returns the invited account when the session or the password is its
// own.
func (i *Invitations) prove(ctx context.Context, by doorward.Caller, inv doorward.Invitation, password string) (credential.Proof, error) {
	if bySession(by, inv) {
		account, err := i.db.Read().Account(ctx, by.ID)
		return credential.Proof{Account: account}, err
	}
	if password == "" {
		return credential.Proof{}, doorward.Fail(doorward.CodeWrongAccount, "")
	}
	return i.verifier.Check(ctx, by, inv.Email, password)
}

func bySession(by doorward.Caller, inv doorward.Invitation) bool {
	return by.Kind == doorward.ByUser && by.Email == inv.Email
}

// stillSignedIn refuses when the session that is the proof has ended since it was
// looked at: with the last membership the account has lost its password, too.
func stillSignedIn(ctx context.Context, tx *access.Tx, by doorward.Caller) error {
	_, err := tx.Session(ctx, by.SessionID)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	return err
}

// unchanged holds the account and refuses when its password has been changed
// since it was verified.
func unchanged(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	same, err := tx.LockAccount(ctx, account.ID, account.PasswordHash)
	if err == nil && !same {
		err = doorward.Fail(doorward.CodeInvalidCredentials, "")
	}
	return err
}

// open returns the invitation of a token, and its tenant, if it can be
// accepted now.
func (i *Invitations) open(ctx context.Context, token string) (doorward.Invitation, doorward.Tenant, error) {
	read := i.db.Read()
	inv, err := byToken(ctx, read, token)
	if err != nil {
		return inv, doorward.Tenant{}, err
	}
	if err := acceptable(ctx, read, inv, i.db.Now()); err != nil {
		return inv, doorward.Tenant{}, err
	}
	tenant, err := read.Tenant(ctx, inv.TenantID)
	return inv, tenant, err
}

func byToken(ctx context.Context, read store.Reader, token string) (doorward.Invitation, error) {
	parsed, err := secret.Parse(token)
	if err != nil {
		return doorward.Invitation{}, doorward.Fail(doorward.CodeInvitationNotFound, "")
	}
	hash := parsed.Hash()
	inv, err := read.InvitationByToken(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return inv, doorward.Fail(doorward.CodeInvitationNotFound, "")
	}
	if err != nil || inv.State != doorward.InvitationPending {
		return inv, err
	}
	retired, err := read.TokenRetired(ctx, hash[:])
	if err == nil && retired {
		err = doorward.Fail(doorward.CodeInvitationRevoked, "A newer mail has replaced this one.")
	}
	return inv, err
}

// acceptable returns why the invitation can't be accepted at the instant.
func acceptable(ctx context.Context, read store.Reader, inv doorward.Invitation, now time.Time) error {
	switch inv.StateAt(now) {
	case doorward.InvitationAccepted:
		return doorward.Fail(doorward.CodeInvitationUsed, "")
	case doorward.InvitationRevoked:
		return doorward.Fail(doorward.CodeInvitationRevoked, "")
	case doorward.InvitationExpired:
		return doorward.Fail(doorward.CodeInvitationExpired, "")
	}
	if err := stillAuthorised(ctx, read, inv); err != nil {
		return err
	}
	tenant, err := read.Tenant(ctx, inv.TenantID)
	if err != nil {
		return err
	}
	switch tenant.Status {
	case doorward.TenantActive:
		return nil
	case doorward.TenantClosing:
		return doorward.Fail(doorward.CodeTenantClosing, "")
	}
	return doorward.Fail(doorward.CodeTenantFrozen, "") // or a status of a newer version
}

// stillAuthorised judges by the inviter's present role: what somebody who may
// no longer invite has offered is no offer any more.
func stillAuthorised(ctx context.Context, read store.Reader, inv doorward.Invitation) error {
	if inv.InvitedBy == "" { // the operator
		return nil
	}
	inviter, err := read.User(ctx, inv.TenantID, inv.InvitedBy)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	on := doorward.Object{TenantID: inv.TenantID, Granted: inv.Role}
	by := doorward.PrincipalOf(inviter, doorward.Session{})
	// The state of the tenant isn't the inviter's: acceptable judges it by itself.
	if d := access.Can(&by, doorward.UserInvite, on); !d.Allowed && d.Reason != access.ReasonTenant {
		return doorward.Fail(doorward.CodeInvitationRevoked, "")
	}
	tenant, err := read.Tenant(ctx, inv.TenantID)
	if err == nil && !allowed(tenant.Settings, inv.Email) {
		err = doorward.Fail(doorward.CodeInvitationRevoked, "The tenant no longer takes addresses of this domain.")
	}
	return err
}

// join uses the invitation up and makes the account a member, as one act.
func (i *Invitations) join(ctx context.Context, by doorward.Caller, token string, inv doorward.Invitation, account doorward.Account, prepare func(*access.Tx) error) (doorward.User, error) {
	user := doorward.User{
		ID: account.ID, Email: account.Email, Name: inv.Name, Role: inv.Role, Status: doorward.UserActive, TenantID: inv.TenantID,
	}
	on := object(inv)
	_, err := i.door.Do(ctx, by.As(user), doorward.InvitationAccept, on, func(tx *access.Tx) error {
		if err := i.use(ctx, tx, token); err != nil {
			return err
		}
		if err := prepare(tx); err != nil {
			return err
		}
		tx.Changed("status", string(doorward.InvitationPending), string(doorward.InvitationAccepted))
		tx.Changed("role", "", string(user.Role))
		return enrol(ctx, tx, &user)
	})
	return user, err
}

// use: of many callers at once one gets past it. The lock on the tenant comes
// first, so that an inviter who is being demoted, a tenant that is being frozen
// or a token that is being replaced is seen as it will be.
func (i *Invitations) use(ctx context.Context, tx *access.Tx, token string) error {
	inv, err := byToken(ctx, tx.Reader, token)
	if err != nil {
		return err
	}
	if err := tx.LockTenant(ctx, inv.TenantID); err != nil {
		return err
	}
	if inv, err = byToken(ctx, tx.Reader, token); err != nil {
		return err
	}
	if err := acceptable(ctx, tx.Reader, inv, tx.Now); err != nil {
		return err
	}
	used, err := tx.AcceptInvitation(ctx, inv.ID)
	if err == nil && !used { // the lock excludes it; the row has the last word
		err = doorward.Fail(doorward.CodeInvitationUsed, "")
	}
	return err
}

func enrol(ctx context.Context, tx *access.Tx, user *doorward.User) error {
	user.CreatedAt = tx.Now
	added, err := tx.InsertMembership(ctx, *user)
	if err != nil {
		return err
	}
	if !added {
		return doorward.Fail(doorward.CodeAlreadyMember, "")
	}
	*user, err = tx.User(ctx, user.TenantID, user.ID)
	return err
}
