// Package user changes what people may do in a tenant: role, status, membership.
// Each change also ends, in the same transaction, everything that depended on it.
package user

import (
	"cmp"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/store"
)

// Users is the feature. Make it with New.
type Users struct {
	writer   *access.Writer
	db       *store.DB
	sessions store.SessionLifetime
	owners   member.Owners
}

// New returns the feature. sessions decides which sessions have expired and are
// not counted; owners says who learns of tenants without an OWNER.
func New(writer *access.Writer, db *store.DB, sessions store.SessionLifetime, owners member.Owners) *Users {
	return &Users{writer, db, sessions, owners}
}

// Leave ends the caller's membership in the tenant. It needs the proof that acts on the account need; in a
// session that a connection vouches for, for another tenant than its own (decide.ProvedOwn). Errors: step_up_required, sign_in_required, not_found, last_owner.
func (u *Users) Leave(ctx context.Context, by doorward.Caller, tenantID string) (doorward.Ended, error) {
	var ended doorward.Ended
	on := doorward.Object{Type: "user", ID: by.ID, TenantID: tenantID}
	revocation, err := u.writer.Do(ctx, by, doorward.UserLeave, on, func(tx *access.Tx) (err error) {
		if by.Issuer == doorward.OwnIssuer || by.TenantID != tenantID {
			if err := tx.NeedProofNow(ctx); err != nil {
				return err
			}
		}
		member, err := current(ctx, tx.Reader, doorward.User{ID: on.ID, TenantID: tenantID})
		if err != nil {
			return err
		}
		tx.Changed(doorward.FieldRole, string(member.Role), "")
		ended, err = u.remove(ctx, tx, object(member), Handover{})
		return err
	})
	return withRevocation(ended, revocation, err)
}

// Remove ends the membership of another member, with its sessions and reset links, the
// invitations that the member has sent, and API keys unless keys transfers them. The end of the
// last membership also deletes the password and the known browsers. versions, unless empty, are
// those that the decision is based on (doorward.User.Version). Errors: not_found, last_owner,
// forbidden, precondition_failed, validation_failed.
func (u *Users) Remove(ctx context.Context, by doorward.Caller, target doorward.User, keys Handover, versions []string) (doorward.Ended, error) {
	return u.removeBy(ctx, by, target, keys, versions, u.change)
}

// TryRemove returns what Remove would, and changes nothing. Errors: not_found, last_owner,
// forbidden, precondition_failed, validation_failed.
func (u *Users) TryRemove(ctx context.Context, by doorward.Caller, target doorward.User, keys Handover, versions []string) (doorward.Ended, error) {
	return u.removeBy(ctx, by, target, keys, versions, u.tryChange)
}

func (u *Users) removeBy(ctx context.Context, by doorward.Caller, target doorward.User, keys Handover, versions []string, change changeFunc) (doorward.Ended, error) {
	var ended doorward.Ended
	faults := keys.faults(by, target)
	revocation, err := change(ctx, by, target, step{action: doorward.UserRemove, write: func(tx *access.Tx, removed doorward.User) (err error) {
		if err := doorward.CheckVersion(removed.Version(), versions); err != nil {
			return err
		}
		if len(faults) > 0 {
			return doorward.InvalidFields(faults...)
		}
		// The event names the person, since the id can't be looked up in the tenant any more.
		tx.Changed(doorward.FieldEmail, removed.Email, "")
		tx.Changed(doorward.FieldName, removed.Name, "")
		tx.Changed(doorward.FieldRole, string(removed.Role), "")
		if ended, err = u.remove(ctx, tx, object(removed), keys); err != nil {
			return err
		}
		if err := member.EachRemovalKey(ctx, tx.Reader, removed, tx.RememberRemoval); err != nil {
			return err
		}
		return notifyMember(ctx, tx, store.MailRemoved, removed)
	}})
	return withRevocation(ended, revocation, err)
}

// remove is member.Remove with a handover of the keys, recorded.
func (u *Users) remove(ctx context.Context, tx *access.Tx, on doorward.Object, keys Handover) (doorward.Ended, error) {
	ended, err := u.endMembership(ctx, tx, on, keys)
	if err != nil {
		return ended, err
	}
	tx.RecordEnded(ended)
	return ended, member.ClearIfOrphaned(ctx, tx, on.ID)
}

func (u *Users) endMembership(ctx context.Context, tx *access.Tx, on doorward.Object, keys Handover) (doorward.Ended, error) {
	return member.End(ctx, tx, u.sessions, u.owners, on, func() (int64, int64, error) { return handOver(ctx, tx, on, keys) })
}

// Suspend keeps the user out of the tenant until Resume, and ends what Remove
// ends. Errors: not_found, last_owner, forbidden.
func (u *Users) Suspend(ctx context.Context, by doorward.Caller, target doorward.User) (doorward.Ended, error) {
	status := doorward.UserSuspended
	_, ended, err := u.Edit(ctx, by, target, Edit{Status: &status})
	return ended, err
}

// Resume lets a suspended user in again. Errors are those of Edit.
func (u *Users) Resume(ctx context.Context, by doorward.Caller, target doorward.User) error {
	status := doorward.UserActive
	_, _, err := u.Edit(ctx, by, target, Edit{Status: &status})
	return err
}

// SetRole gives the user another role, which takes effect at once. It ends no session.
// Errors are those of Edit.
func (u *Users) SetRole(ctx context.Context, by doorward.Caller, target doorward.User, role doorward.Role) error {
	_, _, err := u.Edit(ctx, by, target, Edit{Role: &role})
	return err
}

// SignOut ends the user's sessions in the tenant. Errors: not_found, forbidden.
func (u *Users) SignOut(ctx context.Context, by doorward.Caller, target doorward.User) (doorward.Ended, error) {
	var ended doorward.Ended
	revocation, err := u.change(ctx, by, target, step{action: doorward.UserSignOut, write: func(tx *access.Tx, member doorward.User) (err error) {
		ended.Sessions, err = tx.DeleteMemberSessions(ctx, u.sessions, member.TenantID, member.ID)
		tx.RecordEnded(ended)
		return err
	}})
	return withRevocation(ended, revocation, err)
}

// endAll ends what depends on the membership, see member.EndAccess.
func (u *Users) endAll(ctx context.Context, tx *access.Tx, on doorward.Object, keys Handover) (doorward.Ended, error) {
	return member.EndAccess(ctx, tx, u.sessions, on, func() (int64, int64, error) { return handOver(ctx, tx, on, keys) })
}

// withRevocation adds the revocation, or drops the counts of a transaction that was
// rolled back.
func withRevocation(ended doorward.Ended, revocation doorward.Revocation, err error) (doorward.Ended, error) {
	if err != nil {
		return doorward.Ended{}, err
	}
	ended.Revocation = revocation
	return ended, nil
}

func object(u doorward.User) doorward.Object {
	return doorward.Object{Type: "user", ID: u.ID, TenantID: u.TenantID, Held: u.Role}
}

// step is one action of a change to a member. grants is the role that the action gives; empty:
// none. write gets the member as the earlier steps have left it.
type step struct {
	action doorward.Action
	grants doorward.Role
	write  func(tx *access.Tx, member doorward.User) error
}

// change runs the steps in one transaction. All are decided under the lock on the
// tenant, by the role that the member holds before the first.
func (u *Users) change(ctx context.Context, by doorward.Caller, target doorward.User, steps ...step) (doorward.Revocation, error) {
	var operations []access.Operation
	for _, s := range steps {
		on := object(target)
		on.Granted = s.grants
		read := func(tx *store.Tx) (doorward.Object, error) {
			member, err := current(ctx, tx.Reader, target)
			on := on
			on.Held = member.Role
			return on, err
		}
		write := func(tx *access.Tx) error {
			member, err := current(ctx, tx.Reader, target)
			if err != nil {
				return err
			}
			return s.write(tx, member)
		}
		operations = append(operations, access.Operation{Action: s.action, On: on, ReadObject: read, Write: write})
	}
	return u.writer.DoAll(ctx, by, operations...)
}

// changeFunc is change or tryChange.
type changeFunc func(ctx context.Context, by doorward.Caller, target doorward.User, steps ...step) (doorward.Revocation, error)

// tryChange is change, rolled back after the last step: nothing is written, recorded
// or mailed.
func (u *Users) tryChange(ctx context.Context, by doorward.Caller, target doorward.User, steps ...step) (doorward.Revocation, error) {
	last := &steps[len(steps)-1]
	write := last.write
	last.write = func(tx *access.Tx, member doorward.User) error { return cmp.Or(write(tx, member), errDryRun) }
	_, err := u.change(ctx, by, target, steps...)
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return doorward.Revocation{}, err
}

// current returns the member as it is now. Errors: not_found.
func current(ctx context.Context, read store.Reader, target doorward.User) (doorward.User, error) {
	return orNotFound(read.User(ctx, target.TenantID, target.ID))
}

// orNotFound turns store.ErrNone into not_found.
func orNotFound(member doorward.User, err error) (doorward.User, error) {
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return member, err
}
