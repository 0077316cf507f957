package joining

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/member"
)

// ErrChanged says that what Look has found isn't true any more: look again.
var ErrChanged = errors.New("joining: the account has changed since it was read")

// Refusal is the error for a person who is refused in the transaction.
type Refusal struct{ Check string }

// Error names the check.
func (r Refusal) Error() string { return "joining: refused by the check " + r.Check }

// AccountFor returns the account that a session is opened of: the one that was found, or a new one, which the
// tenant manages. Write makes it.
func (f Found) AccountFor(who Person) doorward.Account {
	if f.Account != nil {
		return *f.Account
	}
	account := member.NewAccount(f.Address, "", "")
	account.ManagedBy = who.Connection.TenantID
	return account
}

// Write writes what was found to follow, for the account of AccountFor: account, membership, identity and role.
// It needs the lock on the tenant, and judges again by what is true under it. isProved says whether the person
// has proved the account. Errors: Refusal; ErrChanged if something else would follow by now; unavailable.
func (j *Joining) Write(ctx context.Context, tx *access.Tx, who Person, was Found, account doorward.Account, isProved bool) error {
	f, err := j.read(ctx, tx.Reader, who)
	if err != nil {
		return err
	}
	switch {
	case f.plan.step == refuse:
		return Refusal{f.plan.check}
	case f.plan != was.plan || f.Account != nil && f.Account.ID != account.ID, f.Account == nil && was.plan.step != create:
		return ErrChanged
	case f.plan.step == prove && !isProved:
		return Refusal{CheckJoining}
	}
	return f.apply(ctx, tx, who, account, isProved)
}

// apply writes account, membership, identity and role.
func (f Found) apply(ctx context.Context, tx *access.Tx, who Person, account doorward.Account, isProved bool) error {
	if f.plan.step == create {
		if err := member.Create(ctx, tx, account); err != nil {
			return changedIf(err, doorward.CodeAccountExists)
		}
	} else if _, err := tx.LockAccount(ctx, account.ID); err != nil {
		return err
	}
	if f.plan.joins {
		if err := f.addMember(ctx, tx, who, account); err != nil {
			return err
		}
	}
	if err := f.identify(ctx, tx, who, account, isProved); err != nil {
		return err
	}
	if f.plan.joins { // with the role already
		return nil
	}
	return f.mapRole(ctx, tx, who)
}

// changedIf returns ErrChanged for an error of the code, which says that somebody else was quicker.
func changedIf(err error, code doorward.Code) error {
	if doorward.HasCode(err, code) {
		return ErrChanged
	}
	return err
}

// identify records the sign-in of the identity, which is made if the account has none yet.
func (f Found) identify(ctx context.Context, tx *access.Tx, who Person, account doorward.Account, isProved bool) error {
	if f.identified {
		_, err := tx.TouchIdentity(ctx, f.identity.ID)
		return err
	}
	identity := doorward.Identity{
		ID: doorward.NewID(doorward.PrefixIdentity), ConnectionID: who.Connection.ID, TenantID: who.Connection.TenantID,
		Issuer: who.Issuer, Subject: who.Subject, UserID: account.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
	}
	added, err := tx.InsertIdentity(ctx, identity)
	if err == nil && !added {
		err = ErrChanged
	}
	if err != nil {
		return err
	}
	actor := who.actor(tx.By)
	if isProved {
		actor = tx.By // who has proved the account
	}
	on := doorward.Object{Type: "user", ID: account.ID, TenantID: who.Connection.TenantID}
	return tx.RecordAlsoBy(ctx, actor, doorward.IdentityLink, on,
		doorward.Change{Field: "connection", To: who.Connection.ID}, doorward.Change{Field: "identity", To: identity.ID})
}

// addMember makes the account a member: by the invitation, if there is one, else as the connection's JIT says.
func (f Found) addMember(ctx context.Context, tx *access.Tx, who Person, account doorward.Account) error {
	role, floor := who.Connection.JITRole, doorward.Role("")
	name := who.Name
	if f.invitation != nil {
		role, name = f.invitation.Role, cmp.Or(f.invitation.Name, who.Name)
		if f.inviterOwns {
			floor = role
		}
	}
	mapped, err := f.mappedRole(ctx, tx, who)
	if err != nil {
		return err
	}
	if mapped != "" {
		role = member.WithFloor(f.rules, mapped, floor)
	}
	if role = member.AtMostAdmin(f.rules, role); role == "" {
		return Refusal{CheckJIT} // the role was deleted, or changed, since it was chosen
	}
	user := doorward.User{ID: account.ID, Email: account.Email, Name: name, Role: role, Status: doorward.UserActive, TenantID: who.Connection.TenantID}
	if err := member.Add(ctx, tx, user); err != nil {
		return changedIf(err, doorward.CodeAlreadyMember)
	}
	if err := tx.SetRoleFloor(ctx, user.TenantID, user.ID, floor); err != nil {
		return err
	}
	if err := f.recordJoin(ctx, tx, who, user); err != nil {
		return err
	}
	return member.MapJoined(ctx, tx, user)
}

// recordJoin accepts the invitation, if there is one, and records who has made somebody a member.
func (f Found) recordJoin(ctx context.Context, tx *access.Tx, who Person, user doorward.User) error {
	actor := who.actor(tx.By)
	if f.invitation == nil {
		on := doorward.Object{Type: "user", ID: user.ID, TenantID: user.TenantID}
		return tx.RecordAlsoBy(ctx, actor, doorward.UserJoin, on,
			doorward.Change{Field: doorward.FieldEmail, To: user.Email}, doorward.Change{Field: doorward.FieldRole, To: string(user.Role)})
	}
	accepted, err := tx.AcceptInvitation(ctx, f.invitation.ID)
	if err == nil && !accepted {
		err = ErrChanged
	}
	if err != nil {
		return err
	}
	return tx.RecordAlsoBy(ctx, actor, doorward.InvitationAccept, invite.Object(*f.invitation),
		doorward.Change{Field: "status", From: string(doorward.InvitationPending), To: string(doorward.InvitationAccepted)},
		doorward.Change{Field: doorward.FieldRole, To: string(user.Role)})
}

// mapRole gives the member the role of the provider's groups.
func (f Found) mapRole(ctx context.Context, tx *access.Tx, who Person) error {
	mapped, err := f.mappedRole(ctx, tx, who)
	if err == nil {
		_, err = member.MapRole(ctx, tx, who.actor(tx.By), f.rules, *f.member, mapped)
	}
	return err
}

// mappedRole is the role by the groups in the token; empty while the connection has a directory, whose groups count
// instead.
func (f Found) mappedRole(ctx context.Context, tx *access.Tx, who Person) (doorward.Role, error) {
	running, err := tx.RunningDirectories(ctx, who.Connection.TenantID, tx.Now)
	if err != nil || slices.Contains(running, who.Connection.ID) {
		return "", err
	}
	return who.mappedRole(f.rules), nil
}
