package user

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/store"
)

// Edit has the changes to a member; nil fields stay unchanged.
type Edit struct {
	Role   *doorward.Role
	Status *doorward.UserStatus
	Name   *string
	// FromDirectory gives the role that directories say, and forgets what an OWNER gave by hand: for an OWNER, and the
	// operator.
	FromDirectory bool
	// Keys says what becomes of API keys when the member is suspended.
	Keys Handover
	// Override lifts a suspension by a directory that runs, too: for an OWNER, and the operator.
	Override bool
	// Versions, unless empty, are the versions that the edit is based on; see
	// doorward.User.Version.
	Versions []string
	// DryRun returns what the edit would do, and changes nothing.
	DryRun bool
}

// Edit changes the member in one transaction and returns it, with what that has ended. A value
// that is already set is not recorded, but an OWNER's word for the role that the member has: groups of directories don't
// lower it from then on. Errors: validation_failed, not_found, forbidden,
// last_owner, precondition_failed, managed_by_directory, too_many_attempts for another name of one's own.
func (u *Users) Edit(ctx context.Context, by doorward.Caller, target doorward.User, e Edit) (doorward.User, doorward.Ended, error) {
	r, err := u.edit(ctx, by, target, e)
	return r.after, r.ended, err
}

// edit is Edit. After an error the member is as it was before.
func (u *Users) edit(ctx context.Context, by doorward.Caller, target doorward.User, e Edit) (editing, error) {
	target, err := u.reload(ctx, by, target)
	if err != nil {
		return editing{after: target}, err
	}
	on := object(target)
	if e.Role != nil {
		on.Granted = *e.Role
	}
	if err := u.writer.Require(ctx, by, doorward.UserManage, on); err != nil {
		return editing{after: target}, err
	}
	if faults := append(e.faults(target.Rules), e.Keys.faults(by, target)...); len(faults) > 0 {
		return editing{after: target}, doorward.InvalidFields(faults...)
	}
	r := editing{Edit: e, users: u, ctx: ctx}
	change := u.change
	if e.DryRun {
		change = u.tryChange
	}
	revocation, err := change(ctx, by, target, r.steps()...)
	if err != nil {
		return editing{after: target}, err
	}
	r.ended.Revocation = revocation
	return r, nil
}

// reload returns the member as it is now, for the first decision.
func (u *Users) reload(ctx context.Context, by doorward.Caller, target doorward.User) (doorward.User, error) {
	if by.TenantID != "" && target.TenantID != by.TenantID {
		return target, doorward.Fail(doorward.CodeNotFound, "")
	}
	return current(ctx, u.db.Read(), target)
}

func (e Edit) faults(rules *doorward.Rules) []doorward.FieldError {
	var all []doorward.FieldError
	if e.Role != nil && !rules.Has(*e.Role) {
		all = append(all, doorward.FieldError{Pointer: "/role", Code: "invalid", Message: rules.RolesHelp()})
	}
	if e.Role != nil && e.FromDirectory {
		all = append(all, doorward.FieldError{Pointer: "/fromDirectory", Code: "invalid", Message: "Give a role, or take that of the directory."})
	}
	if e.Status != nil && *e.Status != doorward.UserActive && *e.Status != doorward.UserSuspended {
		all = append(all, doorward.FieldError{Pointer: "/status", Code: "invalid", Message: "The status is active or suspended."})
	}
	if e.Name != nil {
		all = append(all, doorward.CheckName("/name", e.Name)...)
	}
	return all
}

// editing is an Edit in progress.
type editing struct {
	Edit
	users *Users
	ctx   context.Context
	after doorward.User
	ended doorward.Ended
	kept  bool // the role is the same, and an OWNER's word holds it from now on
}

// steps returns the steps of the edit. The first and last change nothing, so that
// an empty edit is authorized too.
func (r *editing) steps() []step {
	steps := []step{{action: doorward.UserManage, write: r.begin}}
	if r.Role != nil {
		steps = append(steps, step{action: doorward.UserRole, grants: *r.Role, write: r.setRole})
	}
	if r.FromDirectory {
		steps = append(steps, step{action: doorward.UserManage, write: r.takeFromDirectory})
	}
	if r.Status != nil {
		action := doorward.UserResume
		if *r.Status == doorward.UserSuspended {
			action = doorward.UserSuspend
		}
		steps = append(steps, step{action: action, write: r.setStatus})
	}
	if r.Name != nil {
		steps = append(steps, step{action: doorward.UserRename, write: r.rename})
	}
	return append(steps, step{action: doorward.UserManage, write: r.finish})
}

// begin compares the version, and records nothing of its own. A suspension locks the account before
// the membership, as a login does.
func (r *editing) begin(tx *access.Tx, member doorward.User) error {
	tx.SkipEvent()
	r.ended, r.kept = doorward.Ended{}, false
	if err := doorward.CheckVersion(member.Version(), r.Versions); err != nil {
		return err
	}
	if r.Override && !isOwner(tx.By) {
		return doorward.Fail(doorward.CodeForbidden, "Only an OWNER lifts what a directory has decided. Leave out override, or ask an OWNER.")
	}
	if r.Status == nil || *r.Status != doorward.UserSuspended {
		return nil
	}
	_, err := tx.LockAccount(r.ctx, member.ID)
	return err
}

// finish keeps the member as the edit has left it, for the result.
func (r *editing) finish(tx *access.Tx, member doorward.User) error {
	tx.SkipEvent()
	r.after = member
	return nil
}

func (r *editing) setRole(tx *access.Tx, member doorward.User) error {
	if member.Role == *r.Role {
		return r.keepRole(tx, member)
	}
	known, err := tx.HasRole(r.ctx, member.TenantID, *r.Role) // may have been deleted since the request began
	if err != nil {
		return err
	}
	if !known {
		return doorward.Invalid("/role", "invalid", member.Rules.RolesHelp())
	}
	if narrows(member.Rules, member.Role, *r.Role) {
		tx.SkipQuota()
	}
	tx.Changed(doorward.FieldRole, string(member.Role), string(*r.Role))
	if _, err := tx.SetUserRole(r.ctx, member.TenantID, member.ID, *r.Role); err != nil {
		return err
	}
	if err := noteHand(r.ctx, tx, member, *r.Role); err != nil {
		return err
	}
	if err := notifyMember(r.ctx, tx, store.MailRoleChanged, member); err != nil {
		return err
	}
	return r.users.owners.Keep(r.ctx, tx, member.TenantID, member.Role)
}

// keepRole notes an OWNER's word that the member has the role that it has already: groups of directories don't lower it
// from then on. Where that was so before it changes nothing. No directory touches a role of the rank of OWNER.
func (r *editing) keepRole(tx *access.Tx, m doorward.User) error {
	if !isOwner(tx.By) || member.AtMostAdmin(m.Rules, m.Role) == "" {
		tx.SkipEvent()
		return nil
	}
	floor, err := tx.RoleFloor(r.ctx, m.TenantID, m.ID)
	if err != nil || floor == m.Role {
		tx.SkipEvent()
		return err
	}
	r.kept = true
	tx.Effects.Roles = append(tx.Effects.Roles, doorward.RoleEffect{Before: floor, After: m.Role}) // what the person is without the directory
	tx.Changed(doorward.FieldRoleByHand, string(floor), string(m.Role))
	return tx.SetRoleFloor(r.ctx, m.TenantID, m.ID, m.Role)
}

// takeFromDirectory gives the role that directories say. Each change is an event of its own.
func (r *editing) takeFromDirectory(tx *access.Tx, m doorward.User) error {
	tx.SkipEvent()
	if !isOwner(tx.By) {
		return doorward.Fail(doorward.CodeForbidden, "Only an OWNER leaves the role to the directory. Leave out fromDirectory, or ask an OWNER.")
	}
	floor, err := tx.RoleFloor(r.ctx, m.TenantID, m.ID)
	if err != nil {
		return err
	}
	if floor != "" {
		if err := tx.RecordAlso(r.ctx, doorward.UserRole, object(m), doorward.Change{Field: doorward.FieldRoleByHand, From: string(floor)}); err != nil {
			return err
		}
	}
	said, err := member.MapFromDirectory(r.ctx, tx, m)
	if err == nil && !said {
		err = doorward.Invalid("/fromDirectory", "invalid", "No directory says anything of this person. Give a role instead.")
	}
	return err
}

// noteHand notes the role if somebody of the rank of OWNER, or the operator, gives it: groups of a connection don't lower
// it. The event says so of people whom a directory has described.
func noteHand(ctx context.Context, tx *access.Tx, m doorward.User, role doorward.Role) error {
	if !isOwner(tx.By) {
		return tx.EndOldRoleFloor(ctx, m.TenantID, m.ID)
	}
	floor, err := tx.RoleFloor(ctx, m.TenantID, m.ID)
	if err != nil {
		return err
	}
	said, err := tx.DirectoryAliasesOf(ctx, m.TenantID, m.ID)
	if err != nil {
		return err
	}
	if len(said) > 0 && floor != role {
		tx.Changed(doorward.FieldRoleByHand, string(floor), string(role))
	}
	return tx.SetRoleFloor(ctx, m.TenantID, m.ID, role)
}

// isOwner reports whether the caller is a person of the rank of OWNER, or the operator.
func isOwner(by doorward.Caller) bool {
	return by.Kind == doorward.Operator || by.Kind == doorward.ByUser && by.ActsAs == doorward.RoleOwner
}

// narrows reports whether the next role grants nothing that the old one lacks, and no higher rank.
func narrows(rules *doorward.Rules, old, next doorward.Role) bool {
	before, after := rules.Grant(old), rules.Grant(next)
	return before != nil && after != nil && !after.Rank.Outranks(before.Rank) && after.Permissions.IsSubsetOf(before.Permissions)
}

func (r *editing) setStatus(tx *access.Tx, member doorward.User) error {
	if *r.Status == doorward.UserActive {
		return r.resume(tx, member)
	}
	return r.suspend(tx, member)
}

// suspend adds the administrator's reason, also to one of a directory.
func (r *editing) suspend(tx *access.Tx, was doorward.User) error {
	changed, err := member.Hold(r.ctx, tx, was, doorward.ByAdministrator)
	if err != nil {
		return err
	}
	if !changed {
		tx.SkipEvent()
		return nil
	}
	if err := r.recordStatus(tx, was); err != nil {
		return err
	}
	if err := r.users.owners.Keep(r.ctx, tx, was.TenantID, was.Role); err != nil {
		return err
	}
	if r.ended, err = r.users.endAll(r.ctx, tx, object(was), r.Keys); err != nil {
		return err
	}
	tx.RecordEnded(r.ended)
	if was.Status == doorward.UserSuspended {
		return nil // the person was told
	}
	return notifyMember(r.ctx, tx, store.MailSuspended, was)
}

// resume ends the administrator's reason, and those of directories that don't run any more. What a running directory
// has decided stays, without Override: the member is then still suspended. Errors: managed_by_directory if there is
// nothing else.
func (r *editing) resume(tx *access.Tx, was doorward.User) error {
	lifted := was.Suspensions()
	if len(lifted) == 0 {
		tx.SkipEvent()
		return nil
	}
	if !r.Override {
		running, err := tx.RunningDirectories(r.ctx, was.TenantID, tx.Now)
		if err != nil {
			return err
		}
		lifted = slices.DeleteFunc(lifted, func(reason string) bool { return slices.Contains(running, reason) })
	}
	if len(lifted) == 0 {
		return doorward.Fail(doorward.CodeManagedByDirectory, "")
	}
	if _, err := member.Lift(r.ctx, tx, was, lifted...); err != nil {
		return err
	}
	return r.recordStatus(tx, was)
}

func (r *editing) recordStatus(tx *access.Tx, was doorward.User) error {
	is, err := current(r.ctx, tx.Reader, was)
	for _, c := range member.StatusChanges(was, is) {
		tx.Changed(c.Field, c.From, c.To)
	}
	return err
}

// notifyMember queues a notice to the member, unless the member is the caller.
func notifyMember(ctx context.Context, tx *access.Tx, kind store.MailKind, member doorward.User) error {
	if isSelf(tx, member) {
		return nil
	}
	return tx.Notify(ctx, kind, member.Email)
}

func isSelf(tx *access.Tx, member doorward.User) bool {
	return tx.By.Kind == doorward.ByUser && tx.By.ID == member.ID
}

func (r *editing) rename(tx *access.Tx, member doorward.User) error {
	if member.Name == *r.Name {
		tx.SkipEvent()
		return nil
	}
	if isSelf(tx, member) {
		if err := tx.CountChange(r.ctx); err != nil {
			return err
		}
	}
	tx.Changed(doorward.FieldName, member.Name, *r.Name)
	return tx.RenameUser(r.ctx, member, *r.Name)
}
