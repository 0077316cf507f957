package invite

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Complete creates the account of an invited person who has none, with its first
// password, and the membership. An account without a password, of somebody who was
// in a tenant before or was imported, gets one: the mail to the address is the proof,
// as it is for a reset. One that a tenant manages gets it by a reset only. Errors, in this order:
// invitation_not_found, invitation_expired, invitation_revoked, invitation_used, tenant_frozen or
// tenant_closing, account_exists, managed_account, validation_failed (the token stays usable).
func (i *Invitations) Complete(ctx context.Context, by doorward.Caller, token, password, confirm string) (doorward.User, error) {
	if token == "" {
		faults := i.rules.Load().CheckNew(password, confirm, "")
		return doorward.User{}, doorward.InvalidFields(append([]doorward.FieldError{noToken}, faults...)...)
	}
	inv, tenant, err := i.open(ctx, token)
	if err != nil {
		return doorward.User{}, i.recordRefusal(ctx, by, inv, err)
	}
	existing, err := i.accountWithoutPassword(ctx, inv.Email)
	if err != nil {
		return doorward.User{}, i.unlessUsed(ctx, token, err)
	}
	if faults := i.rules.Load().CheckNew(password, confirm, inv.Email, inv.Name, tenant.Name); len(faults) > 0 {
		return doorward.User{}, doorward.InvalidFields(faults...)
	}
	hash, err := i.verifier.Hash(ctx, password)
	if err != nil {
		return doorward.User{}, err
	}
	if existing.ID != "" {
		return i.join(ctx, by, token, inv, existing, func(tx *access.Tx) (bool, error) {
			return true, member.SetFirstPassword(ctx, tx, existing, hash)
		})
	}
	account := member.NewAccount(inv.Email, hash, inv.Locale)
	return i.join(ctx, by, token, inv, account, func(tx *access.Tx) (bool, error) { return true, member.Create(ctx, tx, account) })
}

var noToken = doorward.FieldError{Pointer: "/token", Code: "required", Message: "Send the code of the invitation mail."}

// accountWithoutPassword returns the account of the address, or the zero account if there is
// none. Errors: account_exists if the account has a password; managed_account.
func (i *Invitations) accountWithoutPassword(ctx context.Context, email string) (doorward.Account, error) {
	account, err := i.db.Read().AccountByEmail(ctx, email)
	switch {
	case errors.Is(err, store.ErrNone):
		return doorward.Account{}, nil
	case err == nil && account.PasswordHash != "":
		return doorward.Account{}, doorward.Fail(doorward.CodeAccountExists, "")
	case err == nil:
		err = member.CheckFirstPassword(ctx, i.db.Read(), account)
	}
	return account, err
}

// unlessUsed returns the reason if the invitation can still be accepted, else why it can't:
// the existing account may have been created with this invitation a moment ago.
func (i *Invitations) unlessUsed(ctx context.Context, token string, reason error) error {
	if _, _, err := i.open(ctx, token); err != nil {
		return err
	}
	return reason
}

// Acceptance is the result of a valid proof: a Joined or a SecondNeeded.
type Acceptance interface{ isAcceptance() }

// SecondNeeded means that the password is correct and the account has a second factor, which the
// challenge asks for. Nobody has joined; AcceptSecond completes it.
type SecondNeeded struct{ factor.NewChallenge }

func (Joined) isAcceptance()       {}
func (SecondNeeded) isAcceptance() {}

// Joined is somebody who has accepted, and how many attempts their known browser has left
// (nil for other browsers); see proof.Proof.Allowance.
type Joined struct {
	doorward.User
	Allowance *doorward.Allowance
}

// Accept creates the membership of an invited person who has an account, proved by a session (by) of
// that address or by the account's password, and by the account's second factor if it has one: the mail
// and the password alone would let the inviting tenant speak for an account that other tenants rely on.
// What the invited tenant demands is asked at the next sign-in or switch. Errors: unauthenticated with
// neither, those of Complete about the invitation, wrong_account, managed_account, step_up_required and sign_in_required
// for a session that isn't enough, invalid_credentials, too_many_attempts.
func (i *Invitations) Accept(ctx context.Context, by doorward.Caller, token, password string) (Acceptance, error) {
	if by.Kind != doorward.ByUser && password == "" {
		return nil, doorward.Fail(doorward.CodeUnauthenticated, "Sign in as the invited person, or send the password of that account.")
	}
	if token == "" {
		return nil, doorward.InvalidFields(noToken)
	}
	inv, _, err := i.open(ctx, token)
	if err != nil {
		return nil, i.recordRefusal(ctx, by, inv, err)
	}
	proved, err := i.prove(ctx, by, inv, password)
	if err != nil {
		return nil, i.recordRefusal(ctx, by, inv, err)
	}
	var asked *factor.NewChallenge
	user, err := i.join(ctx, by, token, inv, proved.Account, func(tx *access.Tx) (bool, error) {
		current, err := lockUnchanged(ctx, tx, proved, doorward.Fail(doorward.CodeInvalidCredentials, ""))
		if isBySession(by, inv) {
			return true, cmp.Or(checkSignedIn(ctx, tx, by, inv), err) // the end of the session is the better reason
		}
		if err != nil {
			return false, err
		}
		if asked, err = i.ask(ctx, tx, proved, current, inv); err != nil || asked != nil {
			return false, err
		}
		return true, proved.Succeed(ctx, tx.Tx)
	})
	if err != nil {
		return nil, proved.FailIfRefused(ctx, err)
	}
	if asked != nil {
		i.factors.Tally(factor.Asked)
		return SecondNeeded{*asked}, nil
	}
	return Joined{user, proved.Allowance()}, nil
}

// ask makes a challenge if the account has a second factor, which the password doesn't include; else it
// returns nil. The attempt then counts neither as a failure nor as a success. The person's own tenant
// has it in its trail, not the inviting one, which must not learn that the address has an account.
func (i *Invitations) ask(ctx context.Context, tx *access.Tx, proved proof.Proof, current doorward.Account, inv doorward.Invitation) (*factor.NewChallenge, error) {
	if !(doorward.Assurance{AAL: 1}).LacksFactor(current.Factors > 0) {
		return nil, nil
	}
	if err := proved.Pause(ctx, tx.Tx); err != nil {
		return nil, err
	}
	home, err := proof.HomeTenant(ctx, tx.Reader, current.ID, "")
	if err != nil {
		return nil, err
	}
	tx.RecordAs(doorward.MFAChallenge, doorward.Object{Type: "user", ID: current.ID, TenantID: home})
	asked, err := i.factors.BeginForInvitation(ctx, tx, proved.Account, home, inv.ID)
	return &asked, err
}

// AcceptSecond completes Accept by the answer to its challenge. Errors: those of Accept about the
// invitation; challenge_over, also for another invitation; invalid_code, too_many_attempts.
func (i *Invitations) AcceptSecond(ctx context.Context, by doorward.Caller, token, challenge string, answer factor.Answer) (Joined, error) {
	inv, _, err := i.open(ctx, token)
	if err != nil {
		return Joined{}, i.recordRefusal(ctx, by, inv, err)
	}
	c, account, err := i.factors.OpenForInvitation(ctx, challenge, inv.ID)
	if err == nil && account.Email != inv.Email {
		err = factor.ChallengeOver()
	}
	if err != nil {
		return Joined{}, err
	}
	answer, err = answer.Typed()
	if err != nil {
		return Joined{}, err
	}
	proved, err := i.verifier.Begin(ctx, by, account)
	if err != nil {
		return Joined{}, err
	}
	match, err := i.factors.Try(ctx, by, c, answer)
	if err != nil {
		return Joined{}, i.factors.Refuse(ctx, c, proved, err)
	}
	user, err := i.join(ctx, by, token, inv, account, func(tx *access.Tx) (bool, error) {
		if _, err := lockUnchanged(ctx, tx, proved, factor.ChallengeOver()); err != nil {
			return false, err
		}
		if err := i.factors.TakeChallenge(ctx, tx, c); err != nil {
			return false, err
		}
		if err := match.Use(ctx, tx, c.TenantID); err != nil {
			return false, err
		}
		return true, proved.Succeed(ctx, tx.Tx)
	})
	if err != nil {
		return Joined{}, i.factors.Refuse(ctx, c, proved, err)
	}
	i.factors.Tally(answer.Passed())
	return Joined{user, proved.Allowance()}, nil
}

// recordRefusal records the error if it is a refusal of the acceptance, and returns it.
func (i *Invitations) recordRefusal(ctx context.Context, by doorward.Caller, inv doorward.Invitation, err error) error {
	return i.writer.RecordIfRefusal(ctx, by, doorward.InvitationAccept, object(inv), err)
}

// prove returns the invited account if the session or the password proves that the caller
// owns it.
func (i *Invitations) prove(ctx context.Context, by doorward.Caller, inv doorward.Invitation, password string) (proof.Proof, error) {
	if isBySession(by, inv) {
		account, err := access.OwnAccount(ctx, i.db.Read(), by)
		return proof.Proof{Account: account}, err
	}
	if password == "" {
		return proof.Proof{}, doorward.Fail(doorward.CodeWrongAccount, "")
	}
	return i.verifier.Check(ctx, by, inv.Email, password)
}

func isBySession(by doorward.Caller, inv doorward.Invitation) bool {
	return by.Kind == doorward.ByUser && by.Email == inv.Email
}

// checkSignedIn returns an error if the session, which is the proof, has ended since it was read, if the
// account now has another address than the invitation, or if the session doesn't speak for the account or
// lacks its second factor. Errors: unauthenticated, wrong_account, managed_account, sign_in_required,
// step_up_required.
func checkSignedIn(ctx context.Context, tx *access.Tx, by doorward.Caller, inv doorward.Invitation) error {
	current, err := tx.Session(ctx, by.SessionID)
	if errors.Is(err, store.ErrNone) {
		return doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	if err != nil {
		return err
	}
	p := doorward.PrincipalOf(current.User, current.Session)
	switch {
	case p.Email != inv.Email:
		return doorward.Fail(doorward.CodeWrongAccount, "")
	case p.IsManaged:
		return doorward.Fail(doorward.CodeManagedAccount, "")
	case p.Issuer != doorward.OwnIssuer:
		_, err := tx.DecideNow(ctx, by, doorward.InvitationAccept, doorward.Object{TenantID: inv.TenantID})
		return err
	}
	if (doorward.Assurance{AAL: p.AAL}).LacksFactor(p.HasFactor) {
		return decide.NeedFactor(&p).Err()
	}
	return nil
}

// lockUnchanged locks the account and returns it as it is now, or changed if its password or its address
// has changed since they were verified.
func lockUnchanged(ctx context.Context, tx *access.Tx, proved proof.Proof, changed error) (doorward.Account, error) {
	if err := proved.Lock(ctx, tx, changed); err != nil {
		return doorward.Account{}, err
	}
	current, err := tx.Account(ctx, proved.Account.ID)
	if err == nil && current.Email != proved.Account.Email {
		err = changed
	}
	return current, err
}

// open returns the invitation of a token, and its tenant, if it can be
// accepted now.
func (i *Invitations) open(ctx context.Context, token string) (doorward.Invitation, doorward.Tenant, error) {
	return findAcceptable(ctx, i.db.Read(), token, i.db.Now())
}

// findAcceptable returns the invitation of a token and its tenant, or why it can't be
// accepted at the instant.
func findAcceptable(ctx context.Context, read store.Reader, token string, now time.Time) (doorward.Invitation, doorward.Tenant, error) {
	inv, err := byToken(ctx, read, token)
	if err == nil {
		err = checkPending(inv, now)
	}
	if err != nil {
		return inv, doorward.Tenant{}, err
	}
	tenant, err := read.Tenant(ctx, inv.TenantID)
	switch {
	case errors.Is(err, store.ErrNone): // deleted, with its invitations, since the invitation was read
		err = doorward.Fail(doorward.CodeInvitationNotFound, "")
	case err == nil:
		err = checkAuthorised(ctx, read, inv, tenant)
	}
	if err == nil {
		err = checkActive(tenant)
	}
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

// checkPending returns an error unless the invitation is pending at now.
func checkPending(inv doorward.Invitation, now time.Time) error {
	switch inv.StateAt(now) {
	case doorward.InvitationAccepted:
		return doorward.Fail(doorward.CodeInvitationUsed, "")
	case doorward.InvitationRevoked:
		return doorward.Fail(doorward.CodeInvitationRevoked, "")
	case doorward.InvitationExpired:
		return doorward.Fail(doorward.CodeInvitationExpired, "")
	}
	return nil
}

// checkActive returns an error unless the tenant is active.
func checkActive(tenant doorward.Tenant) error {
	switch tenant.Status {
	case doorward.TenantActive:
		return nil
	case doorward.TenantClosing:
		return doorward.Fail(doorward.CodeTenantClosing, "")
	}
	return doorward.Fail(doorward.CodeTenantFrozen, "") // or a status of a newer version
}

// checkAuthorised checks the inviter's current authority and the tenant's current settings. An
// invitation by the operator needs neither. Errors: invitation_revoked if one of them no longer
// permits the invitation, unavailable.
func checkAuthorised(ctx context.Context, read store.Reader, inv doorward.Invitation, tenant doorward.Tenant) error {
	switch {
	case isByDirectory(inv):
		if err := checkDirectory(ctx, read, inv, tenant); err != nil {
			return err
		}
	case inv.ServiceKeyID != "":
		if err := checkService(ctx, read, inv, tenant); err != nil {
			return err
		}
	case inv.InvitedBy == "": // the operator
		return nil
	default:
		if err := checkInviter(ctx, read, inv); err != nil {
			return err
		}
	}
	if !IsAllowed(tenant.Settings, inv.Email) {
		return doorward.Fail(doorward.CodeInvitationRevoked, "The tenant no longer takes addresses of this domain.")
	}
	return nil
}

// checkService checks what the service key that sent the invitation may do now in its tenant.
func checkService(ctx context.Context, read store.Reader, inv doorward.Invitation, tenant doorward.Tenant) error {
	key, err := read.ServiceKey(ctx, inv.ServiceKeyID)
	switch {
	case errors.Is(err, store.ErrNone), err == nil && (key.Disabled || !key.Covers(tenant.ID)):
		return doorward.Fail(doorward.CodeInvitationRevoked, "")
	case err != nil:
		return err
	}
	by := doorward.PrincipalOfService(key).InTenant(tenant)
	return checkAuthority(&by, inv)
}

// checkInviter checks the role of the member who sent the invitation, as it is now.
func checkInviter(ctx context.Context, read store.Reader, inv doorward.Invitation) error {
	inviter, err := read.User(ctx, inv.TenantID, inv.InvitedBy)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	by := doorward.PrincipalOf(inviter, doorward.Session{})
	return checkAuthority(&by, inv)
}

// checkAuthority returns nil if the principal could send the invitation now.
func checkAuthority(by *doorward.Principal, inv doorward.Invitation) error {
	d := decide.May(by, &decide.Question{Action: doorward.UserInvite, On: doorward.Object{TenantID: inv.TenantID, Granted: inv.Role}})
	switch {
	case d.Allowed, d.Reason == decide.ReasonTenant: // the state of the tenant is checked separately, by checkActive
		return nil
	case d.Reason == decide.ReasonPolicy && by.DependsOnRequest(doorward.UserInvite): // decided when it was sent
		return nil
	}
	return doorward.Fail(doorward.CodeInvitationRevoked, "")
}

// join makes the account a member and marks the invitation as accepted, in one transaction. Before
// that, prepare creates or locks the account, and says whether the person may join. If not, nobody does.
func (i *Invitations) join(ctx context.Context, by doorward.Caller, token string, inv doorward.Invitation, account doorward.Account, prepare func(*access.Tx) (bool, error)) (doorward.User, error) {
	var joined doorward.User
	user := doorward.User{
		ID: account.ID, Email: account.Email, Name: inv.Name, Role: inv.Role, Status: doorward.UserActive, TenantID: inv.TenantID,
	}
	_, err := i.writer.Do(ctx, by.As(user), doorward.InvitationAccept, object(inv), func(tx *access.Tx) error {
		current, err := lockAcceptable(ctx, tx, token, inv)
		if err != nil {
			return err
		}
		user.Role = current.Role // may have been renamed, or replaced by another role, since inv was read
		if mayJoin, err := prepare(tx); err != nil || !mayJoin {
			return err
		}
		if err := markAccepted(ctx, tx, token, inv); err != nil {
			return err
		}
		tx.Changed("status", string(doorward.InvitationPending), string(doorward.InvitationAccepted))
		tx.Changed(doorward.FieldRole, "", string(user.Role))
		if err = member.Add(ctx, tx, user); err == nil {
			err = keepRoleByHand(ctx, tx, current, user.ID)
		}
		if err == nil {
			err = member.MapJoined(ctx, tx, user)
		}
		if err == nil {
			joined, err = tx.User(ctx, user.TenantID, user.ID)
		}
		return err
	})
	return joined, err
}

// keepRoleByHand makes the role of a new member one that groups of a connection don't lower, if an OWNER or
// the operator has offered it.
func keepRoleByHand(ctx context.Context, tx *access.Tx, inv doorward.Invitation, userID string) error {
	isByOwner, err := IsByOwner(ctx, tx.Reader, inv)
	if err != nil {
		return err
	}
	floor := doorward.Role("")
	if isByOwner {
		floor = inv.Role
	}
	return tx.SetRoleFloor(ctx, inv.TenantID, userID, floor)
}

// IsByOwner reports whether somebody whose rank in the tenant is OWNER now, or the operator has sent the invitation.
func IsByOwner(ctx context.Context, read store.Reader, inv doorward.Invitation) (bool, error) {
	if inv.ServiceKeyID != "" || inv.InvitedBy == "" {
		return inv.ServiceKeyID == "", nil
	}
	inviter, err := read.User(ctx, inv.TenantID, inv.InvitedBy)
	if errors.Is(err, store.ErrNone) {
		return false, nil
	}
	return err == nil && inviter.Rules.Rank(inviter.Role) == doorward.RoleOwner, err
}

// Acceptable returns the tenant's invitation to the canonical address that somebody who proves the address
// could accept now. Errors: invitation_not_found for any reason why there is none; unavailable.
func Acceptable(ctx context.Context, read store.Reader, tenant doorward.Tenant, email string, now time.Time) (doorward.Invitation, error) {
	inv, err := read.PendingInvitation(ctx, tenant.ID, email)
	if errors.Is(err, store.ErrNone) || err == nil && inv.StateAt(now) != doorward.InvitationPending {
		return inv, doorward.Fail(doorward.CodeInvitationNotFound, "")
	}
	if err == nil {
		err = checkAuthorised(ctx, read, inv, tenant)
	}
	if doorward.HasCode(err, doorward.CodeInvitationRevoked) {
		err = doorward.Fail(doorward.CodeInvitationNotFound, "")
	}
	return inv, err
}

// Object returns the invitation as the object of an action.
func Object(inv doorward.Invitation) doorward.Object { return object(inv) }

// lockAcceptable locks the tenant and returns the invitation as it is then, so that it sees a concurrent
// acceptance, demotion of the inviter, freeze of the tenant or replacement of the token.
func lockAcceptable(ctx context.Context, tx *access.Tx, token string, inv doorward.Invitation) (doorward.Invitation, error) {
	if err := tx.LockTenant(ctx, inv.TenantID); err != nil {
		return inv, err
	}
	current, _, err := findAcceptable(ctx, tx.Reader, token, tx.Now)
	return current, err
}

// markAccepted marks the invitation as accepted; of concurrent calls one succeeds.
func markAccepted(ctx context.Context, tx *access.Tx, token string, inv doorward.Invitation) error {
	accepted, err := tx.AcceptInvitation(ctx, inv.ID)
	// Revoked since findAcceptable: the lock doesn't exclude the revocation of its service key.
	if err == nil && !accepted {
		if _, _, err = findAcceptable(ctx, tx.Reader, token, tx.Now); err == nil {
			err = doorward.Unavailable(errNotAccepted)
		}
	}
	return err
}

var errNotAccepted = errors.New("invite: an invitation that can be accepted was not accepted")
