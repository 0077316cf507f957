package directoryrun_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/scim"
)

// place makes the group one with the person as its only member, or with nobody.
func (f *fixture) place(group, id string, isIn bool) {
	f.Helper()
	said := scim.Group{DisplayName: "admins", ExternalID: "g1"}
	if isIn {
		said.Members = []string{id}
	}
	_, err := f.Node(0).Directories.ReplaceGroup(f.Context(), f.by(0), group, said)
	f.NoError(err)
}

// An undo brings nobody back whom somebody has dismissed since, also if they look now as the run has left them: what was
// changed twice since was changed.
func TestUndoAfterAnotherChange(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ctx := f.Context()
		removed, off, moved := f.make("ann@acme.example"), f.make("ben@acme.example"), f.make("cid@acme.example")
		byHand := f.Join(f.owner, doorward.RoleViewer)
		_, other := f.Tenant()
		_, token := f.Invite(other, byHand.User.Email, doorward.RoleViewer) // so that the password stays
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(ctx, byHand.Caller, token, "")))
		group, err := f.Node(0).Directories.MakeGroup(ctx, f.by(0), scim.Group{DisplayName: "admins", ExternalID: "g1", Members: []string{moved}})
		f.NoError(err)
		f.pause()

		f.remove(removed)
		f.remove(byHand.User.ID)
		f.NoError(f.setActive(off, false))
		f.place(group.ID, moved, false)
		faulty := f.last()
		f.pause()
		again := f.make("ann@acme.example")
		f.NoError(f.setActive(off, true))
		f.place(group.ID, moved, true)
		_, token = f.Invite(f.owner, byHand.User.Email, doorward.RoleViewer)
		_, err = f.Node(0).Invitations.Accept(ctx, apptest.Anonymous(0), token, apptest.FirstPassword)
		f.NoError(err)
		f.pause()
		f.remove(again)
		f.NoError(f.setActive(off, false))
		f.place(group.ID, moved, false)
		m, err := f.member(byHand.User.ID)
		f.NoError(err)
		_, err = f.Node(0).Users.Remove(ctx, f.owner.Caller, m, user.Handover{}, nil)
		f.NoError(err)

		undone := f.undo(faulty)
		for _, id := range []string{removed, again, byHand.User.ID} {
			if _, err := f.member(id); !doorward.HasCode(err, doorward.CodeNotFound) {
				t.Errorf("%s was removed twice, and is back: %v", id, err)
			}
		}
		if m, err := f.member(off); err != nil || m.Status != doorward.UserSuspended {
			t.Errorf("switched off twice, and is %s, %v", m.Status, err)
		}
		if role := f.roleOf(moved); role == doorward.RoleAdmin {
			t.Errorf("removed twice from the group, and is %s", role)
		}
		for _, id := range []string{removed, byHand.User.ID, off} {
			if why := f.why(undone, id); why != doorward.UndoneChangedSince {
				t.Errorf("%s is left as %q", id, why)
			}
		}
	})
}

// Runs can be undone one after the other, the latest first.
func TestUndoInTurn(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		id := f.make("ann@acme.example")
		var runs []directoryrun.Run
		for _, active := range []bool{false, true, false} {
			f.pause()
			f.NoError(f.setActive(id, active))
			runs = append([]directoryrun.Run{f.last()}, runs...)
		}
		for _, run := range runs {
			if undone := f.undo(run); undone.DirectoryRun.Left > 0 {
				t.Errorf("%d are left as they are", undone.DirectoryRun.Left)
			}
		}
		if m, err := f.member(id); err != nil || m.Status != doorward.UserActive {
			t.Errorf("is %s, %v", m.Status, err)
		}

		f.pause()
		f.remove(id)
		removed := f.last()
		f.pause()
		again := f.make("ann@acme.example")
		for _, run := range []directoryrun.Run{f.last(), removed} {
			if undone := f.undo(run); undone.DirectoryRun.Left > 0 {
				t.Errorf("%d are left as they are", undone.DirectoryRun.Left)
			}
		}
		if u, err := f.Node(0).Directories.User(f.Context(), f.by(0), id); err != nil || f.roleOf(id) == "" {
			t.Errorf("removed and made again as %s, then both undone: %+v, %v", again, u, err)
		}
	})
}

// Nobody is invited by an undo who was invited since, by another id or by hand, and whose invitation was revoked again.
func TestUndoOfInvitations(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		byRuns, byHand, kept := "gus@elsewhere.example", "hal@elsewhere.example", "ivo@elsewhere.example"
		ids := map[string]string{}
		for _, name := range []string{byRuns, byHand, kept} {
			ids[name] = f.make(name)
		}
		guest := f.Join(f.owner, doorward.RoleViewer).User // with an account of their own
		f.pause()
		for _, id := range ids {
			f.remove(id)
		}
		f.remove(guest.ID)
		first := f.last()
		f.pause()
		again := []string{f.make(byRuns), f.make(guest.Email)}
		f.pause()
		for _, id := range again {
			f.remove(id)
		}
		last := f.last()
		inv, _ := f.Invite(f.owner, byHand, doorward.RoleViewer)
		f.NoError(f.Node(0).Invitations.Revoke(f.Context(), f.owner.Caller, inv.ID))

		undone := f.undo(first)
		for _, id := range []string{ids[byRuns], ids[byHand], guest.ID} {
			if why := f.why(undone, id); why != doorward.UndoneChangedSince {
				t.Errorf("%s is left as %q", id, why)
			}
		}
		if n := f.Int(`SELECT count(*) FROM invitations WHERE state = 'PENDING'`); n != 1 {
			t.Errorf("%d invitations are pending, want that of %s", n, kept)
		}
		if undone := f.undo(last); undone.DirectoryRun.Left > 0 {
			t.Errorf("of the last run %v are left", undone.Left)
		}
	})
}

// An invitation that somebody has sent by hand, and that the run has revoked, comes back as theirs, unless they could send
// it no more.
func TestUndoOfInvitationsByHand(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		admin := f.Join(f.owner, doorward.RoleAdmin)
		const removed, switchedOff, former = "kim@elsewhere.example", "lea@elsewhere.example", "mo@elsewhere.example"
		ids := map[string]string{}
		for address, by := range map[string]apptest.Person{removed: f.owner, switchedOff: f.owner, former: admin} {
			f.Invite(by, address, doorward.RoleAdmin)
			ids[address] = f.make(address)
		}
		f.pause()
		f.remove(ids[removed])
		f.remove(ids[former])
		f.NoError(f.setActive(ids[switchedOff], false))
		f.Exec(`UPDATE memberships SET role = 'VIEWER' WHERE user_id = '` + admin.ID + `'`)
		if n := f.Int(`SELECT count(*) FROM invitations WHERE state = 'PENDING'`); n != 0 {
			t.Errorf("the run has left %d invitations", n)
		}
		undone := f.undo(f.last())
		if why := f.why(undone, ids[former]); why != doorward.UndoneChangedSince || undone.DirectoryRun.Left != 1 {
			t.Errorf("left as %q, and %d in all", why, undone.DirectoryRun.Left)
		}
		for _, address := range []string{removed, switchedOff} {
			inv, err := f.DB.Read().PendingInvitation(f.Context(), f.owner.TenantID, address)
			f.NoError(err)
			if inv.InvitedBy != f.owner.ID || inv.ServiceKeyID != "" || inv.Role != doorward.RoleAdmin {
				t.Errorf("%s is invited by %q %q as %s, want the OWNER's invitation", address, inv.InvitedBy, inv.ServiceKeyID, inv.Role)
			}
		}
	})
}

// What somebody has decided by hand while the run went on is no part of the run: its undo doesn't take that back.
func TestUndoKeepsWhatWasDecidedBetween(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ctx := f.Context()
		users := f.Node(0).Users
		suspended, demoted, lifted := f.make("ann@acme.example"), f.make("ben@acme.example"), f.make("cid@acme.example")
		hand := func(id string, e user.Edit) {
			f.Helper()
			m, err := f.member(id)
			f.NoError(err)
			_, _, err = users.Edit(ctx, f.owner.Caller, m, e)
			f.NoError(err)
		}
		admin, viewer := doorward.RoleAdmin, doorward.RoleViewer
		hand(demoted, user.Edit{Role: &admin})
		f.NoError(f.setActive(lifted, false))
		f.pause()

		rename := func(id, name string) {
			f.Helper()
			u, err := f.Node(1).Directories.User(ctx, f.by(1), id)
			f.NoError(err)
			u.User.DisplayName = name
			_, err = f.Node(1).Directories.Replace(ctx, f.by(1), id, u.User)
			f.NoError(err)
		}
		for _, id := range []string{suspended, demoted, lifted} {
			rename(id, "first")
		}
		off, on := doorward.UserSuspended, doorward.UserActive
		hand(suspended, user.Edit{Status: &off})
		hand(demoted, user.Edit{Role: &viewer})
		hand(lifted, user.Edit{Status: &on, Override: true})
		f.remove(suspended)
		rename(demoted, "second")
		rename(lifted, "second")

		undone := f.undo(f.last())
		if m, err := f.member(suspended); err == nil && m.Status == doorward.UserActive {
			t.Error("somebody whom an administrator has suspended is active by the undo")
		}
		if role := f.roleOf(demoted); role != doorward.RoleViewer {
			t.Errorf("an OWNER has made somebody VIEWER, and by the undo they are %s", role)
		}
		if m, err := f.member(lifted); err != nil || m.Status != doorward.UserActive {
			t.Errorf("an OWNER has let somebody in, and by the undo they are %s, %v", m.Status, err)
		}
		for _, id := range []string{suspended, demoted, lifted} {
			if why := f.why(undone, id); why != doorward.UndoneChangedSince {
				t.Errorf("%s is left as %q", id, why)
			}
		}
	})
}
