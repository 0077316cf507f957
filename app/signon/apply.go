package signon

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/proof"
)

// proved is what the person has proved of the account, beside what the provider says: its OwnMethods. The
// zero value: nothing was tried.
type proved struct {
	proof.Proof
	use func(context.Context, *access.Tx) error
}

// isEnough reports whether the account was proved.
func (p proved) isEnough() bool { return len(p.OwnMethods) > 0 }

// enter opens the session, or asks for the second factor, and writes before that what was planned. If the
// account has changed since it was read, it reads again. Errors: refusal, those of login.Login.EnterWith.
func (s *SignOn) enter(ctx context.Context, by doorward.Caller, h held, f facts, own proved) (login.Outcome, error) {
	for range maxTries {
		outcome, err := s.tryEnter(ctx, by, h, f, own)
		if !errors.Is(err, errChanged) {
			return outcome, err
		}
		if h.connection, err = s.connection(ctx, h.connection.ID); err != nil {
			return nil, err
		}
		if f, err = s.look(ctx, h); err != nil {
			return nil, err
		}
		if f.plan.step == refuse {
			return nil, refusal{f.plan.check}
		}
	}
	return nil, doorward.Unavailable(errTries)
}

func (s *SignOn) tryEnter(ctx context.Context, by doorward.Caller, h held, f facts, own proved) (login.Outcome, error) {
	account := s.accountFor(h, f)
	p := own.Proof
	p.Account, p.Issuer, p.TenantID = account, doorward.Issuer(h.connection.ID), h.connection.TenantID
	p.Methods, p.ProviderAMR, p.AuthTime = []string{doorward.MethodFederated}, h.AMR, h.AuthTime
	if trustsFactor(h.connection, h.asserted()) {
		p.Methods = append(p.Methods, doorward.MethodSeveral)
	}
	return s.login.EnterWith(ctx, by, p, login.Within{
		Before: func(ctx context.Context, tx *access.Tx) error { return s.before(ctx, tx, h, f.plan, account, own) },
		Use:    own.use, Changed: errChanged,
	})
}

// accountFor returns the account that exists, or a new one that the tenant manages.
func (s *SignOn) accountFor(h held, f facts) doorward.Account {
	if f.account != nil {
		return *f.account
	}
	account := member.NewAccount(f.address, "", "")
	account.ManagedBy = h.connection.TenantID
	return account
}

// before runs first in the transaction. It judges again by what is true there, under the locks on the tenant
// and the connection, and writes what was planned. Errors: refusal; errChanged if the plan would be another.
func (s *SignOn) before(ctx context.Context, tx *access.Tx, h held, was plan, account doorward.Account, own proved) error {
	if err := tx.LockTenant(ctx, h.connection.TenantID); err != nil {
		return err
	}
	if err := s.stillSignsIn(ctx, tx, h); err != nil {
		return err
	}
	f, err := s.read(ctx, tx.Reader, h)
	if err != nil {
		return err
	}
	switch {
	case f.plan.step == refuse:
		return refusal{f.plan.check}
	case f.plan != was || f.account != nil && f.account.ID != account.ID, f.account == nil && was.step != create:
		return errChanged
	case f.plan.step == prove && !own.isEnough():
		return refusal{CheckJoining}
	}
	return s.apply(ctx, tx, h, f, account, own)
}

// stillSignsIn locks the connection as one that signs people in, by the provider whose word was held, uses that
// up, and records the sign-in. Errors: refusal; errChanged if the connection was edited since it was read.
func (s *SignOn) stillSignsIn(ctx context.Context, tx *access.Tx, h held) error {
	active, err := tx.SignInByConnection(ctx, h.connection.ID, h.sawGroups())
	if err != nil {
		return err
	}
	policy, err := tx.SSOPolicy(ctx, h.connection.TenantID, tx.Now)
	if err != nil {
		return err
	}
	if !active || !policy.SignsIn() {
		return refusal{CheckState}
	}
	current, err := tx.Connection(ctx, h.connection.ID)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(h.By, providerOf(current.InForce)):
		return refusal{CheckState}
	case current.Version() != h.connection.Version():
		return errChanged
	}
	unused, err := tx.UseState(ctx, useHash("held", h.ID), h.At.Add(FlowLife))
	if err == nil && !unused {
		err = refusal{CheckState}
	}
	return err
}

// apply writes account, membership, identity and role.
func (s *SignOn) apply(ctx context.Context, tx *access.Tx, h held, f facts, account doorward.Account, own proved) error {
	if f.plan.step == create {
		if err := member.Create(ctx, tx, account); err != nil {
			return changedIf(err, doorward.CodeAccountExists)
		}
	} else if _, err := tx.LockAccount(ctx, account.ID); err != nil {
		return err
	}
	if f.plan.joins {
		if err := s.join(ctx, tx, h, f, account); err != nil {
			return err
		}
	}
	if err := s.identify(ctx, tx, h, f, account, own); err != nil {
		return err
	}
	if f.plan.joins { // with the role already
		return nil
	}
	return s.mapRole(ctx, tx, h, f)
}

// changedIf returns errChanged for an error of the code, which says that somebody else was quicker.
func changedIf(err error, code doorward.Code) error {
	if doorward.HasCode(err, code) {
		return errChanged
	}
	return err
}

// identify records the sign-in of the identity, which is made if the account has none yet.
func (s *SignOn) identify(ctx context.Context, tx *access.Tx, h held, f facts, account doorward.Account, own proved) error {
	if f.identified {
		_, err := tx.TouchIdentity(ctx, f.identity.ID)
		return err
	}
	identity := doorward.Identity{
		ID: doorward.NewID(doorward.PrefixIdentity), ConnectionID: h.connection.ID, TenantID: h.connection.TenantID,
		Issuer: h.Issuer, Subject: h.Subject, UserID: account.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
	}
	added, err := tx.InsertIdentity(ctx, identity)
	if err == nil && !added {
		err = errChanged
	}
	if err != nil {
		return err
	}
	actor := asConnection(tx.By, h.connection)
	if own.isEnough() {
		actor = tx.By // who has proved the account
	}
	on := doorward.Object{Type: "user", ID: account.ID, TenantID: h.connection.TenantID}
	return tx.RecordAlsoBy(ctx, actor, doorward.IdentityLink, on,
		doorward.Change{Field: "connection", To: h.connection.ID}, doorward.Change{Field: "identity", To: identity.ID})
}

// join makes the account a member: by the invitation, if there is one, else as the connection's JIT says.
func (s *SignOn) join(ctx context.Context, tx *access.Tx, h held, f facts, account doorward.Account) error {
	role, floor := h.connection.JITRole, doorward.Role("")
	name := h.Name
	if f.invitation != nil {
		role, name = f.invitation.Role, cmp.Or(f.invitation.Name, h.Name)
		if f.inviterOwns {
			floor = role
		}
	}
	if mapped := mappedRole(h.connection, f.rules, h.asserted().Groups); mapped != "" {
		role = withFloor(f.rules, mapped, floor)
	}
	if role = atMostAdmin(f.rules, role); role == "" {
		return refusal{CheckJIT} // the role was deleted, or changed, since it was chosen
	}
	user := doorward.User{ID: account.ID, Email: account.Email, Name: name, Role: role, Status: doorward.UserActive, TenantID: h.connection.TenantID}
	if err := member.Add(ctx, tx, user); err != nil {
		return changedIf(err, doorward.CodeAlreadyMember)
	}
	if err := tx.SetRoleFloor(ctx, user.TenantID, user.ID, floor); err != nil {
		return err
	}
	return s.recordJoin(ctx, tx, h, f, user)
}

// recordJoin accepts the invitation, if there is one, and records who has made somebody a member.
func (s *SignOn) recordJoin(ctx context.Context, tx *access.Tx, h held, f facts, user doorward.User) error {
	actor := asConnection(tx.By, h.connection)
	if f.invitation == nil {
		on := doorward.Object{Type: "user", ID: user.ID, TenantID: user.TenantID}
		return tx.RecordAlsoBy(ctx, actor, doorward.UserJoin, on,
			doorward.Change{Field: doorward.FieldEmail, To: user.Email}, doorward.Change{Field: doorward.FieldRole, To: string(user.Role)})
	}
	accepted, err := tx.AcceptInvitation(ctx, f.invitation.ID)
	if err == nil && !accepted {
		err = errChanged
	}
	if err != nil {
		return err
	}
	return tx.RecordAlsoBy(ctx, actor, doorward.InvitationAccept, invite.Object(*f.invitation),
		doorward.Change{Field: "status", From: string(doorward.InvitationPending), To: string(doorward.InvitationAccepted)},
		doorward.Change{Field: doorward.FieldRole, To: string(user.Role)})
}

// mapRole gives the member the role of the provider's groups. It touches no role of a rank above ADMIN, and lowers nobody below
// what an OWNER gave by hand.
func (s *SignOn) mapRole(ctx context.Context, tx *access.Tx, h held, f facts) error {
	mapped := mappedRole(h.connection, f.rules, h.asserted().Groups)
	if mapped == "" || f.rules.Rank(f.member.Role).Outranks(doorward.RoleAdmin) {
		return nil
	}
	floor, err := tx.RoleFloor(ctx, f.member.TenantID, f.member.ID)
	if err != nil {
		return err
	}
	role := withFloor(f.rules, mapped, floor)
	if role == f.member.Role {
		return nil
	}
	if _, err := tx.SetUserRole(ctx, f.member.TenantID, f.member.ID, role); err != nil {
		return err
	}
	on := doorward.Object{Type: "user", ID: f.member.ID, TenantID: f.member.TenantID}
	return tx.RecordAlsoBy(ctx, asConnection(tx.By, h.connection), doorward.UserRole, on,
		doorward.Change{Field: doorward.FieldRole, From: string(f.member.Role), To: string(role)})
}
