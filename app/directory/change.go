package directory

import (
	"cmp"
	"context"
	"errors"
	"reflect"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// Replace writes what the directory says in place of what it said. What is absent is cleared, except whether the person is
// active. If it switches somebody off, and anything beside that is refused, it does that alone, see SwitchOff. Errors:
// not_found, uniqueness, invalidValue, mutability, last_owner, no_way_back, and those of write.
func (d *Directories) Replace(ctx context.Context, by doorward.Caller, id string, said scim.User) (User, error) {
	off := said.Active != nil && !*said.Active
	u, err := d.change(ctx, by, id, off, func(scim.User) (scim.User, error) { return said, nil })
	return d.orOff(ctx, by, id, off, u, err)
}

// Patch applies the operations, all or none; or switches somebody off alone, as Replace does. Errors: those of Replace and of
// scim.PatchUser.
func (d *Directories) Patch(ctx context.Context, by doorward.Caller, id string, operations []scim.Operation) (User, error) {
	off := scim.SwitchesOff(operations)
	u, err := d.change(ctx, by, id, off, func(was scim.User) (scim.User, error) {
		was.Active = nil
		return scim.PatchUser(was, operations)
	})
	return d.orOff(ctx, by, id, off, u, err)
}

// orOff returns the result of a request; but if it switches somebody off, and was refused for something beside that, it
// switches them off alone.
func (d *Directories) orOff(ctx context.Context, by doorward.Caller, id string, off bool, u User, err error) (User, error) {
	if off && isBeside(err) {
		return d.SwitchOff(ctx, by, id, err)
	}
	return u, err
}

// isBeside reports whether the error of a request that switches somebody off is about something else in it.
func isBeside(err error) bool {
	var said *scim.Error
	var refused *doorward.Error
	switch {
	case errors.As(err, &said):
		return true
	case !errors.As(err, &refused), refused.Code == doorward.CodeLastOwner, refused.Code == doorward.CodeNoWayBack:
		return false
	}
	kind := refused.Code.Problem().Kind
	return kind == doorward.KindConflict || kind == doorward.KindInvalid || kind == doorward.KindTooMany
}

// SwitchOff switches somebody off, and leaves everything else as it is, since that was refused: the result has the refusal.
// Errors: not_found, last_owner, no_way_back, and those of write.
func (d *Directories) SwitchOff(ctx context.Context, by doorward.Caller, id string, refused error) (User, error) {
	u, err := d.change(ctx, by, id, true, func(was scim.User) (scim.User, error) {
		was.Active = new(false)
		return was, nil
	})
	if err == nil {
		u.Refused = refused
	}
	return u, err
}

// change writes what edit makes of what the directory has said. A request that switches somebody off is served while the
// operator has paused changes.
func (d *Directories) change(ctx context.Context, by doorward.Caller, id string, off bool, edit func(scim.User) (scim.User, error)) (u User, err error) {
	action := doorward.UserRename
	if off {
		action = doorward.UserSuspend
	}
	heldByOthers := false
	err = d.write(ctx, by, action, id, func(w *work) error {
		e, err := find(ctx, w.tx.Reader, w.tx.By, id)
		if err != nil {
			return err
		}
		was, err := userOf(e, w.tx.Now)
		if err != nil {
			return err
		}
		said, err := edit(was.User)
		if err != nil {
			return err
		}
		if err := w.on(e.ID, func() error { return w.update(e, said) }); err != nil {
			return err
		}
		u, err = w.shown(e.ID)
		heldByOthers = said.Active != nil && *said.Active && u.Active != nil && !*u.Active
		return err
	})
	var refused *addressRefused
	if errors.As(err, &refused) && off {
		return u, refused.error // who is leaving gets no mail about a new name
	}
	if errors.As(err, &refused) {
		return u, cmp.Or(d.tellRefused(ctx, by, refused), refused.error)
	}
	if err == nil && heldByOthers {
		a := doorward.Attempt{Outcome: doorward.AttemptDone, Check: CheckSuspended, Advice: AdviceReinstate, Subject: u.UserName, UserID: u.ID}
		if u.State == Revoked {
			a.Check, a.Advice = CheckRevoked, AdviceRevoked
		}
		d.Record(ctx, by, a)
	}
	return u, err
}

// update writes what the directory says of the person.
func (w *work) update(e store.DirectoryEntry, said scim.User) error {
	row := e.Said
	if !e.IsSaid {
		row = doorward.DirectoryUser{ID: e.ID, ConnectionID: w.con.ID, TenantID: w.con.TenantID, UserID: e.Member.ID, UserName: e.Member.Email, Address: e.Member.Email, Active: true, CreatedAt: w.tx.Now}
	}
	address := row.Address
	if said.UserName != row.UserName {
		var err error
		if address, err = w.rename(e, row, said.UserName); err != nil {
			return err
		}
	}
	if said.UserName != row.UserName || said.ExternalID != row.ExternalID { // what it has said already refuses nothing that it says now
		if err := w.checkUnique(e.ID, said.UserName, address, said.ExternalID); err != nil {
			return err
		}
	}
	if said.Active != nil {
		row.Active = *said.Active
	}
	if err := fill(&row, said); err != nil {
		return err
	}
	if !e.IsMember {
		return w.updateInvited(e, row, address, said)
	}
	if err := w.updateMember(e.Member, address, said); err != nil {
		return err
	}
	row.Address = address
	if !e.IsSaid {
		return w.tx.InsertDirectoryUser(w.ctx, row)
	}
	return w.save(e.Said, row)
}

// save writes what the directory says of a person, if it is anything else than before: what a full synchronization says again
// is no change, neither in a run nor for who asks when the person was changed last.
func (w *work) save(before, after doorward.DirectoryUser) error {
	before.EmailKeys = after.EmailKeys // they are in Attributes
	if reflect.DeepEqual(before, after) {
		return nil
	}
	return w.tx.UpdateDirectoryUser(w.ctx, after)
}

// rename returns the canonical address of another userName. Errors: mutability for an account that isn't the tenant's;
// invalidValue outside of its proved domains.
func (w *work) rename(e store.DirectoryEntry, row doorward.DirectoryUser, userName string) (string, error) {
	address, err := w.checkAddress(userName)
	if err != nil || address == row.Address || !e.IsMember {
		return address, err
	}
	if e.Member.ManagedBy != w.con.TenantID {
		return "", refuseAddress(e.Member, address)
	}
	proved, err := w.isProved(address)
	if err == nil && !proved {
		err = refuse(scim.InvalidValue, AdviceDomain, "Send an address in a domain that the tenant has proved.")
	}
	return address, err
}

// updateMember writes address, name and status of a member.
func (w *work) updateMember(m doorward.User, address string, said scim.User) error {
	if address != m.Email {
		if err := w.setAddress(m, address); err != nil {
			return err
		}
		m.Email = address
	}
	if name := NameOf(said); name != "" && name != m.Name {
		if err := w.tx.RenameUser(w.ctx, m, name); err != nil {
			return err
		}
		if err := w.tx.RecordAlso(w.ctx, doorward.UserRename, member.Object(m), doorward.Change{Field: doorward.FieldName, From: m.Name, To: name}); err != nil {
			return err
		}
		m.Name = name
	}
	switch {
	case said.Active == nil:
		return nil
	case *said.Active:
		return member.SwitchOn(w.ctx, w.tx, m, w.con.ID)
	}
	return member.SwitchOff(w.ctx, w.tx, w.d.life, w.d.owners, m, w.con.ID)
}

// setAddress changes the address of a managed account. What was mailed to the old one ends.
func (w *work) setAddress(m doorward.User, address string) error {
	if _, err := w.tx.LockAccount(w.ctx, m.ID); err != nil {
		return err
	}
	if err := w.tx.SetEmail(w.ctx, m.ID, address); err != nil {
		return err
	}
	if err := w.tx.ExpireResets(w.ctx, m.ID); err != nil {
		return err
	}
	return w.tx.RecordAlso(w.ctx, doorward.UserRename, member.Object(m), doorward.Change{Field: doorward.FieldEmail, From: m.Email, To: address})
}

// updateInvited writes what the directory says of somebody who isn't a member: another address, or switching them off, ends
// the invitation; switching them on, or saying active once it has expired, sends one. What somebody has revoked by hand stays
// revoked, until somebody invites by hand.
func (w *work) updateInvited(e store.DirectoryEntry, row doorward.DirectoryUser, address string, said scim.User) error {
	state := e.InvitationAt(w.tx.Now)
	isRevoked, moved := state == doorward.InvitationRevoked, address != row.Address
	if !isRevoked && (moved || e.Said.Active && !row.Active) {
		if err := invite.EndPending(w.ctx, w.tx, w.con.TenantID, row.Address); err != nil {
			return err
		}
		row.InvitationID = ""
	}
	row.Address = address
	if err := w.save(e.Said, row); err != nil || isRevoked {
		return err
	}
	if moved {
		return w.remake(row, NameOf(said))
	}
	saysActive := said.Active != nil && *said.Active
	if row.Active && (!e.Said.Active || saysActive && state == doorward.InvitationExpired) {
		return w.inviteAgain(row, NameOf(said))
	}
	return nil
}

// remake decides once more what becomes of somebody whose address is another one.
func (w *work) remake(row doorward.DirectoryUser, name string) error {
	account, joins, err := w.accountFor(row)
	switch {
	case err != nil:
		return err
	case joins:
		if _, err := w.tx.DeleteDirectoryUser(w.ctx, row.ConnectionID, row.ID); err != nil {
			return err
		}
		if err := w.join(row, account, name); err != nil {
			return err
		}
		return member.MapJoined(w.ctx, w.tx, doorward.User{ID: account.ID, TenantID: w.con.TenantID})
	case !row.Active:
		return nil
	}
	return w.inviteAgain(row, name)
}

func (w *work) inviteAgain(row doorward.DirectoryUser, name string) (err error) {
	if row.InvitationID, err = w.invite(row.Address, name); err != nil {
		return err
	}
	return w.tx.UpdateDirectoryUser(w.ctx, row)
}

// Remove ends the membership of the person, or the invitation. The next User with the userName is another one. Errors:
// not_found, last_owner, no_way_back, and those of write.
func (d *Directories) Remove(ctx context.Context, by doorward.Caller, id string) error {
	return d.write(ctx, by, doorward.UserRemove, id, func(w *work) error {
		e, err := find(ctx, w.tx.Reader, w.tx.By, id)
		if err != nil {
			return err
		}
		w.places = true
		return w.on(e.ID, func() error { return w.remove(e) })
	})
}

func (w *work) remove(e store.DirectoryEntry) error {
	if !e.IsMember {
		if err := invite.EndPending(w.ctx, w.tx, w.con.TenantID, e.Said.Address); err != nil {
			return err
		}
		if err := w.tx.LeaveGroups(w.ctx, w.con.ID, e.Said.ID); err != nil {
			return err
		}
		_, err := w.tx.DeleteDirectoryUser(w.ctx, w.con.ID, e.Said.ID)
		return err
	}
	m := e.Member
	if err := member.EachRemovalKey(w.ctx, w.tx.Reader, m, w.tx.RememberRemoval); err != nil {
		return err
	}
	return member.Remove(w.ctx, w.tx, w.d.life, w.d.owners, m)
}
