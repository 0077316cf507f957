package directoryrun_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// second returns another directory of the same tenant.
func (f *fixture) second() *fixture {
	f.Helper()
	g := &fixture{f.Fixture, f.owner, f.Connection(f.owner), ""}
	made, err := f.Node(0).Directories.AddSecret(f.Context(), f.owner.Caller, g.con, nil)
	f.NoError(err)
	g.secret = made.Text
	return g
}

// edit changes the connection, by the OWNER.
func (f *fixture) edit(d connection.Draft) {
	f.Helper()
	_, _, err := f.Node(0).Connections.Edit(f.Context(), f.owner.Caller, f.con, connection.Change{Draft: d})
	f.NoError(err)
}

// group makes a group of the members.
func (f *fixture) group(name string, ids ...string) string {
	f.Helper()
	g, err := f.Node(0).Directories.MakeGroup(f.Context(), f.by(0), scim.Group{DisplayName: name, ExternalID: name, Members: ids})
	f.NoError(err)
	return g.ID
}

// hand edits a member by hand.
func (f *fixture) hand(by apptest.Person, id string, e user.Edit) error {
	m, err := f.member(id)
	if err == nil {
		_, _, err = f.Node(0).Users.Edit(f.Context(), by.Caller, m, e)
	}
	return err
}

func (f *fixture) want(id string, role doorward.Role, what string) {
	f.Helper()
	if got := f.roleOf(id); got != role {
		f.Errorf("%s: the role is %q, want %q", what, got, role)
	}
}

// The role that comes back is judged by whose word gave it: the groups of another directory, its jitRole, or an administrator.
// What nobody gives any more comes from no other connection.
func TestUndoOfAnothersRole(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		g := f.second()
		admin := f.Join(f.owner, doorward.RoleAdmin)
		viewer, lowest := string(doorward.RoleViewer), string(doorward.RoleUser)
		f.edit(connection.Draft{JITRole: &lowest})
		g.edit(connection.Draft{JITRole: &viewer})
		byGroup, byJIT, lost := f.make("ann@acme.example"), f.make("ben@acme.example"), f.make("cid@acme.example")
		f.group("admins", byGroup)
		f.group("lost", lost)
		f.edit(connection.Draft{Mappings: &[]doorward.GroupMapping{{Group: "admins", Role: doorward.RoleAdmin}, {Group: "lost", Role: doorward.RoleAdmin}}})
		byAdmin := f.Join(admin, doorward.RoleUser).User.ID
		for _, id := range []string{byGroup, byJIT, byAdmin, lost} {
			g.remove(id)
		}
		f.edit(connection.Draft{Mappings: &[]doorward.GroupMapping{{Group: "admins", Role: doorward.RoleAdmin}}})
		higher := string(doorward.RoleAdmin)
		g.edit(connection.Draft{JITRole: &higher})
		run := g.undo(g.last())
		f.want(byGroup, doorward.RoleAdmin, "by a group of the other directory")
		f.want(byJIT, doorward.RoleUser, "by its jitRole")
		f.want(byAdmin, doorward.RoleUser, "by an ADMIN")
		f.want(lost, "", "by a mapping that is gone")
		if why := f.why(run, lost); why != doorward.UndoneRoleTooHigh {
			t.Errorf("whom no mapping gives the role is left as %q", why)
		}
	})
}

// Somebody who has left the group before the removal gets its role back, also under another id than the account's.
func TestUndoOfARoleByAFormerGroup(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		hand := f.Join(f.owner, doorward.RoleViewer)
		f.Exec(`UPDATE memberships SET role_floor = '-' WHERE user_id = $1`, hand.User.ID)
		f.NoError(f.setActive(hand.User.ID, true))
		group := f.group("admins", hand.User.ID)
		f.want(hand.User.ID, doorward.RoleAdmin, "in the group")
		f.pause()
		f.place(group, hand.User.ID, false)
		f.remove(hand.User.ID)
		f.undo(f.last())
		f.want(hand.User.ID, doorward.RoleAdmin, "after the undo")
	})
}

// A place in a group that no mapping means takes no role away, and one that somebody has given since stays.
func TestUndoKeepsRoles(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		g := f.second()
		admin := f.Join(f.owner, doorward.RoleAdmin)
		plain, demoted := f.Join(admin, doorward.RoleViewer).User.ID, f.make("ann@acme.example")
		raised := f.make("ben@acme.example")
		g.group("bosses")
		g.edit(connection.Draft{Mappings: &[]doorward.GroupMapping{{Group: "bosses", Role: doorward.RoleAdmin}}})
		f.pause()
		f.group("sales", plain)
		f.group("admins", demoted, raised)
		run := f.last()
		f.Exec(`UPDATE memberships SET role = 'VIEWER' WHERE user_id = $1`, demoted) // as by somebody below OWNER
		all, err := f.Node(0).Directories.Groups(f.Context(), g.by(0), nil, 1, 9, false)
		f.NoError(err)
		_, err = f.Node(0).Directories.ReplaceGroup(f.Context(), g.by(0), all.Groups[0].ID, scim.Group{DisplayName: "bosses", ExternalID: "bosses", Members: []string{raised}})
		f.NoError(err)
		run = f.undo(run)
		f.want(plain, doorward.RoleViewer, "in a group without a mapping")
		f.want(demoted, doorward.RoleViewer, "made VIEWER by an ADMIN since")
		f.want(raised, doorward.RoleAdmin, "in a group of another directory since")
		for _, id := range []string{demoted, raised} {
			if why := f.why(run, id); why != doorward.UndoneChangedSince {
				t.Errorf("%s is left as %q", id, why)
			}
		}
	})
}

// Whom another directory speaks of, or somebody has invited by hand since, is left to them.
func TestUndoKeepsOthersWord(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		g := f.second()
		removed := f.Join(f.owner, doorward.RoleAdmin).User
		f.pause()
		f.remove(removed.ID)
		described, grouped, alone := f.make("ann@acme.example"), f.make("ben@acme.example"), f.make("cid@acme.example")
		run := f.last()
		f.NoError(g.setActive(described, true))
		g.group("sales", grouped)
		f.Invite(f.owner, removed.Email, doorward.RoleViewer)
		run = f.undo(run)
		f.want(described, doorward.RoleUser, "another directory has described")
		f.want(grouped, doorward.RoleUser, "in a group of another directory")
		f.want(alone, "", "only the run has made")
		f.want(removed.ID, "", "invited as VIEWER since")
		for _, id := range []string{described, grouped, removed.ID} {
			if why := f.why(run, id); why != doorward.UndoneChangedSince {
				t.Errorf("%s is left as %q", id, why)
			}
		}
	})
}

// A reason of suspension of a connection that was deleted since comes back as an administrator's: nobody gets in by the undo.
func TestUndoOfADeletedConnectionsReason(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		g, id := f.second(), f.make("ann@acme.example")
		both := f.make("ben@acme.example")
		f.NoError(g.setActive(id, false))
		f.NoError(g.setActive(both, false))
		f.NoError(f.setActive(both, false))
		f.pause()
		f.remove(id)
		f.remove(both)
		_, err := f.Node(0).Connections.Delete(f.Context(), f.owner.Caller, g.con, false)
		f.NoError(err)
		f.undo(f.last())
		for id, want := range map[string][]string{id: {doorward.ByAdministrator}, both: {doorward.ByAdministrator, f.con}} {
			m, err := f.member(id)
			f.NoError(err)
			if got := slices.Sorted(slices.Values(m.Suspensions())); !slices.Equal(got, want) || m.Status != doorward.UserSuspended {
				t.Errorf("%s, suspended by %q, want %q", m.Status, got, want)
			}
		}
		active := doorward.UserActive
		f.NoError(f.hand(f.owner, id, user.Edit{Status: &active}))
		if m, err := f.member(id); err != nil || m.Status != doorward.UserActive {
			t.Errorf("an administrator can't lift it: %+v, %v", m.Suspensions(), err)
		}
	})
}

// pending returns how many invitations to the address are on their way.
func (f *fixture) pending(address string) int {
	f.Helper()
	return f.Int(`SELECT count(*) FROM invitations WHERE email = $1 AND state = 'PENDING' AND expires_at > $2`, address, f.DB.Now().UnixMicro())
}

// revoke revokes the invitation to the address by hand.
func (f *fixture) revoke(address string) {
	f.Helper()
	inv, err := f.DB.Read().PendingInvitation(f.Context(), f.owner.TenantID, address)
	f.NoError(err)
	f.NoError(f.Node(0).Invitations.Revoke(f.Context(), f.owner.Caller, inv.ID))
}

func (f *fixture) expire(address string) {
	f.Helper()
	f.Exec(`UPDATE invitations SET expires_at = created_at WHERE email = $1 AND state = 'PENDING'`, address)
}

// An invitation comes back only if the run has revoked it, and one that others have sent isn't taken away.
func TestUndoOfDeadInvitations(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		names := []string{"revoked", "expired", "alive", "off-revoked", "again"}
		ids := map[string]string{}
		address := func(name string) string { return name + "@elsewhere.example" }
		for _, name := range names {
			ids[name] = f.make(address(name))
		}
		for _, name := range []string{"revoked", "off-revoked"} {
			f.revoke(address(name))
		}
		for _, name := range []string{"expired", "again"} {
			f.expire(address(name))
		}
		byHand, other := "hand@elsewhere.example", "other@elsewhere.example"
		f.Invite(f.owner, byHand, doorward.RoleViewer)
		f.pause()
		for _, name := range []string{"revoked", "expired", "alive"} {
			f.remove(ids[name])
		}
		f.NoError(f.setActive(ids["off-revoked"], false))
		f.NoError(f.setActive(ids["again"], true))
		f.make(byHand)
		decided := f.make(other)
		if f.pending(address("again")) != 1 {
			t.Fatal("no further invitation was sent after the expiry")
		}
		run := f.last()
		f.revoke(other)
		preview := f.tried(run)
		for name, want := range map[string]directoryrun.Step{"revoked": directoryrun.Remake, "expired": directoryrun.Remake, "alive": directoryrun.Invite, "off-revoked": directoryrun.Resume, "again": directoryrun.Uninvite} {
			if does := doesOf(preview, ids[name]); !slices.Equal(does, []directoryrun.Step{want}) {
				t.Errorf("%s: the undo does %q, want %q", name, does, want)
			}
		}
		run = f.undo(run)
		for name, want := range map[string]string{"revoked": "revoked", "expired": "expired", "alive": "invited", "off-revoked": "revoked", "again": "expired"} {
			u, err := f.Node(1).Directories.User(f.Context(), f.by(1), ids[name])
			if err != nil || u.State != want || *u.Active != (want == "invited") || (f.pending(address(name)) == 1) != (want == "invited") {
				t.Errorf("%s is %q, active %t, with %d invitations, %v", name, u.State, *u.Active, f.pending(address(name)), err)
			}
		}
		if f.pending(byHand) != 1 {
			t.Error("the undo has revoked an invitation that the run hadn't sent")
		}
		if why := f.why(run, decided); why != doorward.UndoneChangedSince || f.pending(other) != 0 {
			t.Errorf("who was invited by the run, and whose invitation was revoked by hand, is left as %q", why)
		}
	})
}

// A role that a mapping gave which was taken away is nobody's word, also while the roles of very many people are still to be
// lowered: who is removed then doesn't come back with it.
func TestUndoOfARoleThatIsDue(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		id := f.make("ann@acme.example")
		f.group("admins", id)
		f.want(id, doorward.RoleAdmin, "by the mapping")
		f.pause()
		con, err := f.DB.Read().Connection(f.Context(), f.con)
		f.NoError(err)
		f.Exec(`DELETE FROM connection_mappings WHERE connection_id = $1`, f.con) // as the edit of an OWNER, whose node ends after it
		_, err = f.DB.Write(f.Context(), func(tx *store.Tx) error { return tx.AddDueRoles(f.Context(), con, false, []string{id}) })
		f.NoError(err)
		f.remove(id)
		undone := f.undo(f.last())
		if role := f.roleOf(id); role == doorward.RoleAdmin {
			t.Errorf("by the undo the role is %s", role)
		}
		if why := f.why(undone, id); why != doorward.UndoneRoleTooHigh {
			t.Errorf("left as %q", why)
		}
	})
}

// An address that the tenant's settings have ceased to allow is invited neither by an undo nor by a directory that switches
// on somebody whom it has made before.
func TestNobodyIsInvitedWhomSettingsForbid(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		removed, off := f.make("gus@elsewhere.example"), f.make("hal@elsewhere.example")
		f.NoError(f.setActive(off, false))
		f.pause()
		f.remove(removed)
		f.EditTenant(f.owner, func(s *doorward.TenantSettings) { s.AllowedDomains = []string{"acme.example"} })
		undone := f.undo(f.last())
		if why := f.why(undone, removed); why != doorward.Undone(doorward.CodeValidationFailed) {
			t.Errorf("left as %q", why)
		}
		var refused *scim.Error
		if err := f.setActive(off, true); !errors.As(err, &refused) || refused.Type != scim.InvalidValue {
			t.Errorf("switched on: %v", err)
		}
		for _, address := range []string{"gus@elsewhere.example", "hal@elsewhere.example"} {
			if n := f.pending(address); n != 0 {
				t.Errorf("%s has %d invitations", address, n)
			}
		}
	})
}
