package directoryrun

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// groups brings back groups that the run has deleted, still empty. Their names don't come back, and those that it has made
// stay.
func (u *undoing) groups() (int, error) {
	ids, err := u.tx.SubjectsToUndo(u.ctx, u.run.ID, doorward.PrefixGroup, u.limit)
	for _, id := range ids {
		why := u.leave
		if err == nil && why == "" {
			_, why, err = u.remakeGroup(id)
		}
		if err == nil {
			err = u.mark(id, why)
		}
	}
	return len(ids), err
}

// remakeGroup reports whether the group has come back.
func (u *undoing) remakeGroup(id string) (made bool, why doorward.Undone, err error) {
	effects, err := u.tx.DirectoryEffectsOf(u.ctx, u.run.ID, id)
	if err != nil || len(effects) == 0 {
		return false, "", err
	}
	last := effects[len(effects)-1]
	if effects[0].Before == "" || last.After != "" {
		return false, "", nil // it was made, or is still there
	}
	was, err := parsed[doorward.DirectoryGroupState](last.Before)
	if err != nil {
		return false, "", err
	}
	if _, err = u.tx.DirectoryGroup(u.ctx, u.con.ID, id); !errors.Is(err, store.ErrNone) {
		return false, "", err
	}
	g := doorward.DirectoryGroup{
		ID: id, ConnectionID: u.con.ID, TenantID: u.con.TenantID, DisplayName: was.DisplayName, ExternalID: was.ExternalID,
		CreatedAt: u.tx.Now, ChangedAt: u.tx.Now,
	}
	if taken, err := u.tx.DirectoryGroupTaken(u.ctx, g); err != nil || taken {
		return false, doorward.UndoneNameTaken, err
	}
	if err := u.tx.InsertDirectoryGroup(u.ctx, g); err != nil {
		return false, "", err
	}
	for i, m := range u.con.Mappings {
		if m.GroupID == "" && slices.Contains(was.Mapped, m.Group) {
			if err := u.tx.MatchMapping(u.ctx, u.con.ID, m.Group, id); err != nil {
				return false, "", err
			}
			u.con.Mappings[i].GroupID = id
		}
	}
	return true, "", nil
}

// places brings people back into groups that they have left by the run, and takes those out who have come by it. Roles
// follow.
func (u *undoing) places() (int, error) {
	pending, err := u.tx.MovesToUndo(u.ctx, u.run.ID, u.limit)
	for _, m := range pending {
		why := u.leave
		if err == nil && why == "" {
			_, why, err = u.place(m.GroupID, m.MemberID)
		}
		if why == "" {
			why = doorward.UndoneDone
		}
		if err == nil {
			err = u.tx.MarkMoveUndone(u.ctx, u.run.ID, m.GroupID, m.MemberID, why)
		}
	}
	return len(pending), err
}

// place reports whether the member has come back into the group, or has left it.
func (u *undoing) place(groupID, memberID string) (moved bool, why doorward.Undone, err error) {
	moves, err := u.tx.DirectoryMovesOf(u.ctx, u.run.ID, groupID, memberID)
	if err != nil || len(moves) == 0 {
		return false, "", err
	}
	wasIn, leftIn := !moves[0].Joined, moves[len(moves)-1].Joined
	if wasIn == leftIn {
		return false, "", nil
	}
	if again, err := u.tx.MovedAgain(u.ctx, moves[len(moves)-1]); err != nil || again {
		return false, doorward.UndoneChangedSince, err
	}
	if wasIn {
		if _, err := u.tx.DirectoryGroup(u.ctx, u.con.ID, groupID); err != nil {
			why, err = orNone(err, doorward.UndoneChangedSince)
			return false, why, err
		}
		if comesBack, err := u.isOrWas(memberID); err != nil || !comesBack {
			return false, doorward.UndoneChangedSince, err
		}
	}
	moved, err = u.movePlace(groupID, memberID, wasIn)
	return moved, "", err
}

// movePlace brings the member into the group, or takes them out of it. The role follows.
func (u *undoing) movePlace(groupID, memberID string, in bool) (bool, error) {
	follows, err := u.follows(groupID, memberID)
	if err != nil {
		return false, err
	}
	change := u.tx.RemovePlaces
	if in {
		change = u.tx.AddPlaces
	}
	moved, err := change(u.ctx, groupID, []string{memberID})
	if err == nil && follows {
		err = u.mapRole(memberID)
	}
	return len(moved) > 0, err
}

// isOrWas reports whether the person is a User, or was one before the run, which has removed them.
func (u *undoing) isOrWas(id string) (bool, error) {
	now, err := directory.State(u.ctx, u.tx, u.con, id, false)
	if err != nil || now != nil {
		return now != nil, err
	}
	effects, err := u.tx.DirectoryEffectsOf(u.ctx, u.run.ID, id)
	return len(effects) > 0 && effects[0].Before != "" && effects[len(effects)-1].After == "", err
}

// mapRole gives a member the role that the groups give.
func (u *undoing) mapRole(id string) error {
	now, err := directory.State(u.ctx, u.tx, u.con, id, false)
	if err != nil || !isMember(now) {
		return err
	}
	return member.MapRoles(u.ctx, u.tx, u.by, u.con, []string{now.UserID})
}

// people does what is planned for people.
func (u *undoing) people() (int, error) {
	ids, err := u.tx.SubjectsToUndo(u.ctx, u.run.ID, doorward.PrefixUser, u.limit)
	for _, id := range ids {
		var p plan
		if err == nil {
			p, err = u.person(id)
		}
		if err == nil {
			err = u.mark(id, p.why)
		}
	}
	return len(ids), err
}

// person does what is planned for a person, and returns the plan.
func (u *undoing) person(id string) (plan, error) {
	p, err := u.plan(id)
	for _, d := range p.do {
		if err == nil {
			err = u.perform(p, d)
		}
	}
	if err == nil {
		err = u.leaveNoPlace(p)
	}
	return p, err
}

// leaveNoPlace removes the places of somebody who wasn't brought back.
func (u *undoing) leaveNoPlace(p plan) error {
	if p.now != nil || slices.ContainsFunc(p.do, func(d Step) bool { return d == Rejoin || d == Invite || d == Remake }) {
		return nil
	}
	return u.tx.LeaveGroups(u.ctx, u.con.ID, p.subjectID)
}

func (u *undoing) perform(p plan, d Step) error {
	switch d {
	case Rejoin:
		return u.rejoin(p.before)
	case Invite:
		return u.invite(p)
	case Uninvite:
		return u.uninvite(p)
	case Remake:
		return u.remakeUser(p)
	case Leave:
		if !isMember(p.now) {
			return u.withdraw(p.now.Said)
		}
	}
	if !isMember(p.now) {
		return u.say(p, d == Resume)
	}
	m, err := u.tx.User(u.ctx, u.con.TenantID, p.now.UserID)
	if err != nil {
		return err
	}
	switch d {
	case Leave:
		return u.end(m)
	case GiveRole:
		return u.giveRole(m, p.before)
	}
	if err := u.say(p, d == Resume); err != nil {
		return err
	}
	if d == Resume {
		return member.SwitchOn(u.ctx, u.tx, m, u.con.ID)
	}
	return member.SwitchOff(u.ctx, u.tx, u.r.life, u.r.owners, m, u.con.ID)
}

// rejoin brings a membership back, with role, reasons of suspension, places, and what directories had said.
func (u *undoing) rejoin(was *doorward.DirectoryPerson) error {
	if _, err := u.tx.LockAccount(u.ctx, was.UserID); err != nil {
		return err
	}
	account, err := u.tx.Account(u.ctx, was.UserID)
	if err != nil {
		return err
	}
	m := doorward.User{ID: account.ID, Email: account.Email, Name: was.Name, Role: was.Role, Status: doorward.UserActive, TenantID: u.con.TenantID, CreatedAt: was.Since}
	if err := invite.EndPending(u.ctx, u.tx, u.con.TenantID, account.Email); err != nil {
		return err
	}
	if err := member.Add(u.ctx, u.tx, m); err != nil {
		return err
	}
	if err := u.tx.SetRoleFloor(u.ctx, m.TenantID, m.ID, was.Floor); err != nil {
		return err
	}
	if err := u.suspendAgain(was); err != nil {
		return err
	}
	if err := u.sayAgain(was); err != nil {
		return err
	}
	if err := u.placeAgain(was); err != nil {
		return err
	}
	return u.tx.RecordAlso(u.ctx, doorward.UserJoin, member.Object(m),
		doorward.Change{Field: doorward.FieldEmail, To: m.Email}, doorward.Change{Field: doorward.FieldRole, To: string(m.Role)})
}

// suspendAgain brings reasons of suspension back. That of a connection which was deleted since becomes an administrator's, who
// could lift it as well: nobody gets access by the undo whom somebody had suspended.
func (u *undoing) suspendAgain(was *doorward.DirectoryPerson) error {
	var reasons []string
	for _, reason := range was.SuspendedBy {
		if reason != doorward.ByAdministrator {
			_, err := u.tx.Connection(u.ctx, reason)
			if errors.Is(err, store.ErrNone) {
				reason, err = doorward.ByAdministrator, nil
			}
			if err != nil {
				return err
			}
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	_, err := u.tx.SetSuspensions(u.ctx, u.con.TenantID, was.UserID, reasons)
	return err
}

// placeAgain brings back the places in groups that are there.
func (u *undoing) placeAgain(was *doorward.DirectoryPerson) error {
	for _, place := range was.Places {
		_, err := u.tx.DirectoryGroupOf(u.ctx, u.con.TenantID, place.GroupID)
		if err == nil {
			_, err = u.tx.AddPlaces(u.ctx, place.GroupID, []string{place.MemberID})
		}
		if err != nil && !errors.Is(err, store.ErrNone) {
			return err
		}
	}
	return nil
}

// sayAgain brings back what the connection's directory, and others, had said of a member.
func (u *undoing) sayAgain(was *doorward.DirectoryPerson) error {
	for _, said := range append([]doorward.DirectoryUser{was.Said}, was.Others...) {
		if said.ID == "" {
			continue
		}
		_, err := u.tx.Connection(u.ctx, said.ConnectionID)
		if err == nil {
			_, err = u.tx.DirectoryUser(u.ctx, said.ConnectionID, said.ID)
			if err == nil { // it has said it again
				continue
			}
		}
		isFree := errors.Is(err, store.ErrNone)
		if isFree && said.ConnectionID != u.con.ID {
			isFree, err = u.isSayable(said)
		}
		if err != nil && !errors.Is(err, store.ErrNone) {
			return err
		}
		if !isFree {
			continue
		}
		said.UserID, said.InvitationID = was.UserID, ""
		if err := u.tx.InsertDirectoryUser(u.ctx, said); err != nil {
			return err
		}
	}
	return nil
}

// isSayable reports whether another connection exists, and its directory hasn't given the externalId to somebody else.
func (u *undoing) isSayable(said doorward.DirectoryUser) (bool, error) {
	if _, err := u.tx.Connection(u.ctx, said.ConnectionID); err != nil {
		return false, err
	}
	if said.ExternalID == "" {
		return true, nil
	}
	_, err := u.tx.DirectoryUserByExternalID(u.ctx, said.ConnectionID, said.ExternalID)
	return errors.Is(err, store.ErrNone), err
}

// end ends the membership that the run has made, with all access.
func (u *undoing) end(m doorward.User) error {
	if err := member.EachRemovalKey(u.ctx, u.tx.Reader, m, u.tx.RememberUndone); err != nil {
		return err
	}
	return member.Remove(u.ctx, u.tx, u.r.life, u.r.owners, m)
}

func (u *undoing) giveRole(m doorward.User, was *doorward.DirectoryPerson) error {
	if _, err := u.tx.SetUserRole(u.ctx, m.TenantID, m.ID, was.Role); err != nil {
		return err
	}
	return u.tx.RecordAlso(u.ctx, doorward.UserRole, member.Object(m), doorward.Change{Field: doorward.FieldRole, From: string(m.Role), To: string(was.Role)})
}

// say writes whether the person is active, as the directory had last written it.
func (u *undoing) say(p plan, active bool) error {
	if p.now.Said.ID == "" || p.now.Said.Active == active {
		return nil
	}
	said := p.now.Said
	said.Active = active
	return u.tx.UpdateDirectoryUser(u.ctx, said)
}

// invite sends an invitation in place of the one that the run has revoked, to the address and with the id from before: that
// of an OWNER as the OWNER's.
func (u *undoing) invite(p plan) error {
	said := p.before.Said
	if p.now != nil {
		said = p.now.Said
	}
	inv, err := invite.Again(u.ctx, u.tx, u.con, p.before.Said.InvitationID, said.Address, nameOf(said))
	if err != nil {
		return err
	}
	said.UserID, said.InvitationID, said.Active = "", inv.ID, p.before.Said.Active
	if p.now != nil {
		return u.tx.UpdateDirectoryUser(u.ctx, said)
	}
	if err := u.tx.InsertDirectoryUser(u.ctx, said); err != nil {
		return err
	}
	return u.placeAgain(p.before)
}

// remakeUser brings back somebody whom the run has removed and who wasn't invited then. What somebody had revoked stays so.
func (u *undoing) remakeUser(p plan) error {
	said := p.before.Said
	if said.InvitationID != "" {
		_, err := u.tx.Invitation(u.ctx, said.InvitationID)
		if errors.Is(err, store.ErrNone) {
			said.InvitationID, err = "", nil
		}
		if err != nil {
			return err
		}
	}
	if err := u.tx.InsertDirectoryUser(u.ctx, said); err != nil {
		return err
	}
	return u.placeAgain(p.before)
}

// nameOf returns the name that the directory has said; empty: none.
func nameOf(said doorward.DirectoryUser) string {
	var attributes scim.User
	if json.Unmarshal([]byte(said.Attributes), &attributes) != nil {
		return ""
	}
	return directory.NameOf(attributes)
}

func (u *undoing) uninvite(p plan) error {
	said := p.now.Said
	if err := invite.EndSent(u.ctx, u.tx, u.con, said.Address); err != nil {
		return err
	}
	said.Active, said.InvitationID = p.before.Said.Active, ""
	return u.tx.UpdateDirectoryUser(u.ctx, said)
}

// withdraw removes somebody whom the run has invited.
func (u *undoing) withdraw(said doorward.DirectoryUser) error {
	if err := invite.EndSent(u.ctx, u.tx, u.con, said.Address); err != nil {
		return err
	}
	if err := u.tx.LeaveGroups(u.ctx, u.con.ID, said.ID); err != nil {
		return err
	}
	_, err := u.tx.DeleteDirectoryUser(u.ctx, u.con.ID, said.ID)
	return err
}
