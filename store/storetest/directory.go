package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// scimSecrets: a secret is found by its hash with its connection, and the end of either is announced.
func scimSecrets(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	con := f.connection(acme, "Okta")
	hash := []byte("12345678901234567890123456789012")
	now := f.clock.read()
	ends := now.Add(time.Hour)
	s := doorward.SCIMSecret{ID: "scs_1", ConnectionID: con.ID, Hint: "dwc_a…b", CreatedAt: now, ExpiresAt: &ends}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertSCIMSecret(ctx, s, hash)) })
	equal(f, f.value(f.Read().SCIMSecrets(ctx, con.ID)), []doorward.SCIMSecret{s})
	equal(f, f.value(f.Read().SCIMSecretsOf(ctx, acme.ID)), []doorward.SCIMSecret{s})
	found := f.value(f.Read().SCIMSecretByHash(ctx, hash)).(store.SCIMCredential)
	equal(f, found.Secret, s)
	equal(f, found.Connection.ID, con.ID)
	equal(f, found.Tenant, doorward.TenantActive)
	f.wantNone(f.Read().SCIMSecretByHash(ctx, []byte("another")))
	f.write(func(tx *store.Tx) { f.wantChange(tx.SetConnectionStatus(ctx, con.ID, doorward.ConnectionActive)) })
	equal(f, f.value(f.Read().RunningDirectories(ctx, acme.ID, now)), []string{con.ID})
	equal(f, len(f.value(f.Read().RunningDirectories(ctx, acme.ID, ends)).([]string)), 0)
	f.write(func(tx *store.Tx) {
		noError(f, tx.TouchSCIMSecrets(ctx, []store.Use{{Hash: [32]byte(hash), At: now}}))
		f.wantChange(tx.MarkSCIMNotice(ctx, s.ID, 1))
		f.wantNoChange(tx.MarkSCIMNotice(ctx, s.ID, 1))
	})
	equal(f, f.value(f.Read().SCIMSecrets(ctx, con.ID)).([]doorward.SCIMSecret)[0].LastUsedAt, &now)
	equal(f, len(f.value(f.Read().ExpiringSCIMSecrets(ctx, now, ends, 1, 9)).([]store.ExpiringSecret)), 0)
	equal(f, len(f.value(f.Read().ExpiringSCIMSecrets(ctx, now, ends, 2, 9)).([]store.ExpiringSecret)), 1)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.DeleteSCIMSecret(ctx, con.ID, "scs_none"))
		f.wantChange(tx.DeleteSCIMSecret(ctx, con.ID, s.ID))
	})
	f.wantNone(f.Read().SCIMSecretByHash(ctx, hash))
	s = doorward.SCIMSecret{ID: "scs_2", ConnectionID: con.ID, CreatedAt: now, BySetupLink: true}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertSCIMSecret(ctx, s, hash)) })
	equal(f, f.value(f.Read().SCIMSecretByHash(ctx, hash)).(store.SCIMCredential).Secret, s)
}

// directoryUsers: members are listed with what the directory says of them, and those whom it has invited.
func directoryUsers(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	con, other := f.connection(acme, "Okta"), f.connection(acme, "Entra")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	f.clock.move(time.Minute)
	said := doorward.DirectoryUser{
		ID: "usr_alias", ConnectionID: con.ID, TenantID: acme.ID, UserID: ann.ID, UserName: "Ann@acme.example", Address: "ann@acme.example", ExternalID: "00u1",
		Active: true, Made: true, Attributes: "{}", EmailKeys: []string{"ann@work.example"}, CreatedAt: f.clock.read(), ChangedAt: f.clock.read(),
	}
	invited := doorward.DirectoryUser{
		ID: "usr_invited", ConnectionID: con.ID, TenantID: acme.ID, UserName: "ben@acme.example", Address: "ben@acme.example", Attributes: "{}",
		CreatedAt: f.clock.read(), ChangedAt: f.clock.read(),
	}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertDirectoryUser(ctx, said))
		noError(f, tx.InsertDirectoryUser(ctx, invited))
	})
	equal(f, f.value(f.Read().DirectoryUser(ctx, con.ID, said.ID)), said)
	equal(f, f.value(f.Read().DirectoryUserOf(ctx, con.ID, acme.ID, ann.ID)), said)
	equal(f, f.value(f.Read().DirectoryUserByExternalID(ctx, con.ID, "00u1")), said)
	f.wantNone(f.Read().DirectoryUserByExternalID(ctx, con.ID, "00U1"))
	equal(f, f.value(f.Read().DirectoryUsersNamed(ctx, acme.ID, "ANN@acme.example")), []doorward.DirectoryUser{said})
	equal(f, f.value(f.Read().DirectoryAliased(ctx, acme.ID, said.ID)), []doorward.DirectoryUser{said})
	equal(f, f.value(f.Read().DirectoryAliasesOf(ctx, acme.ID, ann.ID)), []doorward.DirectoryUser{said})
	equal(f, f.value(f.Read().DirectoryUsersOf(ctx, ann.ID)), []doorward.DirectoryUser{said})
	var exported []doorward.DirectoryUser
	noError(f, f.Read().EachDirectoryUser(ctx, said.TenantID, func(u doorward.DirectoryUser) error {
		exported = append(exported, u)
		return nil
	}))
	equal(f, slices.ContainsFunc(exported, func(u doorward.DirectoryUser) bool { return u.ID == said.ID }), true)

	page, total, err := f.Read().DirectoryPage(ctx, con.ID, acme.ID, 1, 1)
	noError(f, err)
	equal(f, total, 2)
	equal(f, page[0].Said, invited)
	equal(f, f.value(f.Read().DirectoryMember(ctx, other.ID, acme.ID, ann.ID)).(store.DirectoryEntry).ID, said.ID)
	equal(f, f.value(f.Read().DirectorySaid(ctx, con.ID, acme.ID, said.ID)).(store.DirectoryEntry).Member.Email, ann.Email)
	f.wantNone(f.Read().DirectorySaid(ctx, other.ID, acme.ID, said.ID))
	for email, want := range map[string]int{"": 2, "ANN@work.example": 1, "ann@acme.example": 0} {
		n := 0
		noError(f, f.Read().EachDirectoryEntry(ctx, con.ID, acme.ID, email, func(store.DirectoryEntry) error { n++; return nil }))
		equal(f, n, want)
	}

	f.checkInvited(con, invited, ann)
	invited.ChangedAt = f.clock.read()
	ben := f.member(acme, "ben@acme.example", doorward.RoleUser)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.JoinDirectoryUsers(ctx, acme.ID, ben.Email, ben.ID)), []doorward.DirectoryUser{invited})
		equal(f, len(f.value(tx.JoinDirectoryUsers(ctx, acme.ID, ben.Email, ben.ID)).([]doorward.DirectoryUser)), 0)
		said.UserName, said.ExternalID, said.Active = "ann.lee@acme.example", "", false
		noError(f, tx.UpdateDirectoryUser(ctx, said))
	})
	said.ChangedAt = f.clock.read()
	equal(f, f.value(f.Read().DirectoryUser(ctx, con.ID, said.ID)), said)
	equal(f, f.value(f.Read().MadeByDirectory(ctx, con.ID, acme.ID, said.Address)), said)
	equal(f, f.value(f.Read().DirectoryMemberAddressed(ctx, con.ID, acme.ID, said.Address)), said)
	for _, none := range [][3]string{{"con_x", acme.ID, said.Address}, {con.ID, "tnt_x", said.Address}, {con.ID, acme.ID, "x"}} {
		if _, err := f.Read().MadeByDirectory(ctx, none[0], none[1], none[2]); !errors.Is(err, store.ErrNone) {
			f.Errorf("%v: %v, want none", none, err)
		}
		f.wantNone(f.Read().DirectoryMemberAddressed(ctx, none[0], none[1], none[2]))
	}

	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteDirectoryUser(ctx, con.ID, said.ID))
		f.wantNoChange(tx.DeleteDirectoryUser(ctx, con.ID, said.ID))
	})
}

// checkInvited: an entry says whether an invitation is on its way, by a directory or by hand, and what has become of the last
// one, unless that has ended with its inviter.
func (f *fixture) checkInvited(con doorward.Connection, u doorward.DirectoryUser, ann doorward.User) {
	f.Helper()
	ctx := f.Context()
	entry := func() store.DirectoryEntry {
		f.Helper()
		return f.value(f.Read().DirectorySaid(ctx, con.ID, con.TenantID, u.ID)).(store.DirectoryEntry)
	}
	is := func(active bool, want doorward.InvitationState) {
		f.Helper()
		e := entry()
		e.Said.Active = active
		equal(f, e.InvitationAt(f.clock.read()), want)
	}
	send := func(by string) (i doorward.Invitation) {
		f.Helper()
		i = f.draft(doorward.Tenant{ID: con.TenantID}, u.Address)
		i.InvitedBy = by
		f.write(func(tx *store.Tx) {
			noError(f, tx.RetireExpiredInvitation(ctx, con.TenantID, u.Address))
			f.wantChange(tx.InsertInvitation(ctx, i))
			u.InvitationID = i.ID
			noError(f, tx.UpdateDirectoryUser(ctx, u))
		})
		return i
	}
	is(false, "")
	is(true, doorward.InvitationExpired)
	first := send("")
	equal(f, *entry().InvitedUntil, first.ExpiresAt)
	is(false, doorward.InvitationPending)
	f.write(func(tx *store.Tx) { f.wantChange(tx.RevokeInvitation(ctx, first.ID)) })
	is(false, doorward.InvitationRevoked)
	byHand := f.invitation(doorward.Tenant{ID: con.TenantID}, u.Address)
	is(true, doorward.InvitationPending)
	equal(f, entry().Said.InvitationID, byHand.ID)
	f.clock.move(25 * time.Hour)
	is(true, doorward.InvitationExpired)
	send(ann.ID)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.RevokeInvitationsBy(ctx, con.TenantID, ann.ID)), int64(1)) })
	equal(f, entry().Said.InvitationID, "")
	is(true, doorward.InvitationExpired)
	u.InvitationID = ""
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateDirectoryUser(ctx, u)) })
}
