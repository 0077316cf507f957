package joining_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
)

// TestWhoIsLetIn: JIT off lets nobody in, JIT invited only who has an invitation that could be accepted now, and
// somebody who was removed comes back by an invitation only.
func TestWhoIsLetIn(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITOff)
		said := says("subject-1", "ann@acme.example")
		s.refused("jit", said)
		s.edit(func(c *doorward.Connection) { c.JIT = doorward.JITInvited })
		s.refused("jit", said)
		f.Invite(s.owner, "ann@acme.example", doorward.RoleViewer)
		ann := s.in(said)
		if ann.User.Role != doorward.RoleViewer {
			t.Errorf("the invited role is %s", ann.User.Role)
		}
		s.edit(func(c *doorward.Connection) { c.JIT = doorward.JITDomains })
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Remove(f.Context(), s.owner.Caller, ann.User, user.Handover{}, nil)))
		s.refused("removed", said)
		f.Invite(s.owner, "ann@acme.example", doorward.RoleUser)
		if again := s.in(said); again.User.ID != ann.User.ID || again.User.Role != doorward.RoleUser {
			t.Errorf("who was invited again is %s, %s", again.User.ID, again.User.Role)
		}
		f.Invite(s.owner, "cleo@acme.example", doorward.RoleOwner)
		s.edit(func(c *doorward.Connection) { c.JIT = doorward.JITInvited })
		s.refused("jit", says("subject-2", "cleo@acme.example"))
		s.refused("email", says("subject-3", ""))
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), s.owner.Caller, ann.User)))
		s.refused("suspended", said)
	})
}

// TestPromotion: nobody becomes more than an ADMIN by groups, an OWNER's role is never touched, and nobody sinks
// below what an OWNER gave by hand.
func TestPromotion(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITDomains)
		s.edit(func(c *doorward.Connection) {
			c.GroupsFrom = "groups"
			c.Mappings = []doorward.GroupMapping{{Group: "admins", Role: doorward.RoleAdmin}, {Group: "gods", Role: doorward.RoleOwner}, {Group: "guests", Role: doorward.RoleViewer}}
		})
		role := func(want doorward.Role, state answer.GroupsState, groups ...string) {
			t.Helper()
			said := says("subject-1", "ann@acme.example")
			said.Groups = answer.Groups{State: state, Names: groups}
			if got := s.in(said).User.Role; got != want {
				t.Errorf("the groups %v give %s, want %s", groups, got, want)
			}
		}
		role(doorward.RoleUser, answer.GroupsAbsent) // never sent: JIT's role
		role(doorward.RoleViewer, answer.GroupsList, "guests", "others")
		role(doorward.RoleAdmin, answer.GroupsList, "guests", "admins", "gods")
		role(doorward.RoleAdmin, answer.GroupsMalformed)
		role(doorward.RoleAdmin, answer.GroupsOverage)
		role(doorward.RoleUser, answer.GroupsList, "gods") // maps to nothing that may be given
		role(doorward.RoleViewer, answer.GroupsList, "guests")
		role(doorward.RoleUser, answer.GroupsAbsent) // though it was sent before
		member, err := f.DB.Read().UserByEmail(f.Context(), s.owner.User.TenantID, "ann@acme.example")
		f.NoError(err)
		f.NoError(f.Node(0).Users.SetRole(f.Context(), s.owner.Caller, member, doorward.RoleAdmin))
		role(doorward.RoleAdmin, answer.GroupsList, "guests")
		f.NoError(f.Node(0).Users.SetRole(f.Context(), s.owner.Caller, member, doorward.RoleOwner))
		role(doorward.RoleOwner, answer.GroupsList, "guests")
	})
}

// TestTenantsOwn: the account of a member who is in this tenant alone, with an address that the tenant has
// proved, is joined at once, and keeps its password. A recycled address, which another subject has by now, doesn't
// open it.
func TestTenantsOwn(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITOff)
		ben := s.member("ben@acme.example", doorward.RoleUser)
		if in := s.in(says("subject-ben", "ben@acme.example")); in.User.ID != ben.User.ID || in.User.Role != doorward.RoleUser {
			t.Errorf("the sign-in is of %s", in.User.ID)
		}
		if f.TryLogin("ben@acme.example", apptest.FirstPassword) != "" {
			t.Error("the password of the account is gone")
		}
		if _, found := s.look(says("subject-successor", "ben@acme.example")); !found.MustProve() {
			t.Error("a recycled address opens the account")
		}
	})
}

// TestNothingIsRevealed: for an address outside of the domains of the connection, the answer is the same whether
// it has an account or not.
func TestNothingIsRevealed(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		for _, jit := range []doorward.JIT{doorward.JITOff, doorward.JITInvited, doorward.JITDomains} {
			s := newSite(f, string(jit)+".example", jit)
			_, stranger := f.Tenant()
			check := map[bool]string{true: "jit", false: "domain"}[jit == doorward.JITOff]
			s.refused(check, says("subject-1", stranger.User.Email))
			s.refused(check, says("subject-2", "nobody@example.com"))
		}
	})
}

// TestOtherTenantsAddress: a provider that names the address of another tenant's people, even with JIT for a
// domain that it has proved, gets nothing that they haven't proved, whatever was found before.
func TestOtherTenantsAddress(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITDomains)
		other := newSite(f, "globex.example", doorward.JITDomains)
		victim := other.member("victim@globex.example", doorward.RoleAdmin)
		said := says("subject-1", "victim@acme.example")
		who, early := s.look(said)                                                // a new person, as yet
		f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error { // the address belongs to a domain of s, the account to others
			return tx.SetEmail(f.Context(), victim.User.ID, "victim@acme.example")
		}))
		if _, err := s.write(who, early); !errors.Is(err, joining.ErrChanged) {
			t.Errorf("what was found before is written: %v", err)
		}
		who, found := s.look(said)
		_, err := s.write(who, found)
		if refusal := (joining.Refusal{}); !found.MustProve() || !errors.As(err, &refusal) || refusal.Check != joining.CheckJoining {
			t.Errorf("the account of another tenant opens by its address: %v", err)
		}
		if s.isJoined(victim.User.ID) {
			t.Error("the account is joined")
		}
		in := s.in(said, doorward.MethodPassword)
		if in.User.ID != victim.User.ID || in.User.Role != doorward.RoleUser || !s.isJoined(victim.User.ID) {
			t.Errorf("after the proof the session is of %s, %s", in.User.ID, in.User.Role)
		}
	})
}
