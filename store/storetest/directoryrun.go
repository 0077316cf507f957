package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// run adds a run of the connection's directory that begins now.
func (f *fixture) run(c doorward.Connection) doorward.DirectoryRun {
	f.Helper()
	r := doorward.DirectoryRun{ID: f.id(doorward.PrefixRun), ConnectionID: c.ID, TenantID: c.TenantID, From: f.clock.read(), Last: f.clock.read()}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertDirectoryRun(f.Context(), r)) })
	return r
}

// effect adds an effect on a person or a group in the run, now.
func (f *fixture) effect(r doorward.DirectoryRun, kind doorward.DirectoryEffectKind, subjectID, userID string) doorward.DirectoryEffect {
	f.Helper()
	e := doorward.DirectoryEffect{
		ID: f.id(""), RunID: r.ID, ConnectionID: r.ConnectionID, TenantID: r.TenantID, At: f.clock.read(), Kind: kind, SubjectID: subjectID, UserID: userID,
		Address: "of-" + subjectID + "@acme.example", Before: "{}", After: `{"name": "ß"}`,
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertDirectoryEffect(f.Context(), e)) })
	return e
}

// directoryRuns: runs are listed with their numbers, and effects with who has joined or left a group.
func directoryRuns(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	con := f.connection(acme, "Okta")
	f.wantNone(f.Read().LastDirectoryRun(ctx, con.ID))
	first := f.run(con)
	f.clock.move(time.Hour)
	last := f.run(con)
	f.clock.move(time.Minute)
	last.Last, last.Made, last.Changed, last.Suspended, last.Removed, last.IsAlarmed = f.clock.read(), 1, 2, 3, 4, true
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateDirectoryRun(ctx, last)) })
	equal(f, f.value(f.Read().LastDirectoryRun(ctx, con.ID)), last)
	equal(f, f.value(f.Read().DirectoryRun(ctx, con.ID, last.ID)), last)
	f.wantNone(f.Read().DirectoryRun(ctx, "con_none", last.ID))
	runs := func(w doorward.Window) (doorward.Page[doorward.DirectoryRun], error) {
		return f.Read().DirectoryRunPage(ctx, con.ID, w)
	}
	equal(f, pages(f, 1, runs), []doorward.DirectoryRun{last, first})
	wantOrders(f, "from", 2, func(r doorward.DirectoryRun) string { return r.ID }, runs)
	equal(f, f.value(f.Read().AlarmedRuns(ctx, acme.ID, last.Last.Add(-1), 9)), []doorward.DirectoryRun{last})
	equal(f, f.value(f.Read().AlarmedRuns(ctx, acme.ID, last.Last, 9)), []doorward.DirectoryRun(nil))
	equal(f, f.value(f.Read().AlarmedRuns(ctx, "tnt_other", first.From, 9)), []doorward.DirectoryRun(nil))
	equal(f, f.value(f.Read().LastDirectoryWrites(ctx, acme.ID)), map[string]time.Time{con.ID: last.Last})

	off := f.effect(last, doorward.DirectorySuspended, "usr_alias", "usr_ann")
	f.clock.move(time.Minute)
	again := f.effect(last, doorward.DirectoryResumed, "usr_alias", "usr_ann")
	group := f.effect(last, doorward.DirectoryChanged, "grp_1", "")
	effects := func(w doorward.Window) (doorward.Page[doorward.DirectoryEffect], error) {
		return f.Read().DirectoryEffectPage(ctx, last.ID, w)
	}
	equal(f, pages(f, 2, effects), []doorward.DirectoryEffect{off, again, group})
	wantOrders(f, "at", 3, func(e doorward.DirectoryEffect) string { return e.ID }, effects)
	equal(f, f.value(f.Read().CountEndedByDirectory(ctx, con.ID, off.At.Add(-1))), 1)
	equal(f, f.value(f.Read().CountEndedByDirectory(ctx, con.ID, off.At)), 0)
	equal(f, f.value(f.Read().CountBegunByDirectory(ctx, con.ID, off.At)), 1)
	equal(f, f.value(f.Read().CountUntoldOfDirectory(ctx, con.ID, off.At.Add(-1))), 0)
	before := doorward.DirectoryEffect{RunID: first.ID, TenantID: acme.ID, SubjectID: "usr_alias", At: off.At}
	kinds := [2]doorward.DirectoryEffectKind{doorward.DirectorySuspended, doorward.DirectoryResumed}
	equal(f, f.value(f.Read().ChangedAgain(ctx, before, "", kinds)), true)
	before.SubjectID = "usr_other"
	equal(f, f.value(f.Read().ChangedAgain(ctx, before, "usr_ann", kinds)), true)
	equal(f, f.value(f.Read().ChangedAgain(ctx, before, "", kinds)), false)
	before.Address = off.Address
	equal(f, f.value(f.Read().ChangedAgain(ctx, before, "", kinds)), true)
	equal(f, f.value(f.Read().ChangedAgain(ctx, off, "", kinds)), false) // the run itself
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertDirectoryMoves(ctx, group, true, []string{"usr_alias", "usr_b"}))
		noError(f, tx.InsertDirectoryMoves(ctx, group, false, []string{"usr_c"}))
	})
	moves, total, err := f.Read().DirectoryMoves(ctx, group.ID, true, 1)
	noError(f, err)
	equal(f, total, 2)
	place := doorward.DirectoryMove{RunID: first.ID, GroupID: "grp_1", MemberID: "usr_c", At: off.At}
	equal(f, f.value(f.Read().MovedAgain(ctx, place)), true)
	place.At = group.At
	equal(f, f.value(f.Read().MovedAgain(ctx, place)), false)
	equal(f, moves, []doorward.DirectoryMove{{EffectID: group.ID, RunID: last.ID, GroupID: "grp_1", MemberID: "usr_alias", At: group.At, Joined: true}})

	f.write(func(tx *store.Tx) { noError(f, tx.DeleteDirectoryEffectsOf(ctx, "usr_ann", nil)) })
	equal(f, pages(f, 9, effects), []doorward.DirectoryEffect{group})
	if _, total, err = f.Read().DirectoryMoves(ctx, group.ID, true, 9); total != 1 {
		f.Errorf("%d moves are left after an erasure, %v", total, err)
	}
	invited := f.effect(last, doorward.DirectoryMade, "usr_b", "")
	f.write(func(tx *store.Tx) {
		noError(f, tx.DeleteDirectoryEffectsOf(ctx, "usr_none", []string{off.Address, invited.Address}))
	})
	equal(f, pages(f, 9, effects), []doorward.DirectoryEffect{group})
	if _, total, err = f.Read().DirectoryMoves(ctx, group.ID, true, 9); total != 0 {
		f.Errorf("%d moves are left after an erasure, %v", total, err)
	}
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldDirectoryEffects(ctx, group.At, 9)), int64(0))
		equal(f, f.value(tx.DeleteOldDirectoryEffects(ctx, group.At.Add(1000), 9)), int64(1))
		equal(f, f.value(tx.DeleteOldDirectoryRuns(ctx, last.Last, 9)), int64(1))
		equal(f, f.value(tx.DeleteOldDirectoryRuns(ctx, last.Last, 9)), int64(0))
	})
}

// placesHeld: a member's places in groups of all directories of the tenant.
func placesHeld(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	for _, t := range []doorward.Tenant{acme, zeta} {
		con := f.connection(t, "Okta")
		g := doorward.DirectoryGroup{ID: "grp_" + t.ID, ConnectionID: con.ID, TenantID: t.ID, DisplayName: "Sales", CreatedAt: f.clock.read(), ChangedAt: f.clock.read()}
		f.write(func(tx *store.Tx) {
			noError(f, tx.InsertDirectoryGroup(ctx, g))
			f.value(tx.AddPlaces(ctx, g.ID, []string{ann.ID}))
		})
	}
	equal(f, f.value(f.Read().DirectoryGroupOf(ctx, acme.ID, "grp_"+acme.ID)).(doorward.DirectoryGroup).DisplayName, "Sales")
	f.wantNone(f.Read().DirectoryGroupOf(ctx, acme.ID, "grp_"+zeta.ID))
	equal(f, f.value(f.Read().CountActiveMembers(ctx, acme.ID)), 1)
	equal(f, f.value(f.Read().PlacesHeldIn(ctx, acme.ID, ann.ID)), []doorward.DirectoryPlace{{GroupID: "grp_" + acme.ID, Name: "Sales", MemberID: ann.ID}})
}

// undos: an undo is asked for once, and what it has come to isn't found again.
func undos(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	con := f.connection(acme, "Okta")
	began := f.clock.read()
	f.clock.move(time.Second)
	f.invitation(acme, "gus@elsewhere.example")
	byDirectory := doorward.Invitation{ID: f.id("inv_"), TenantID: acme.ID, Email: "hal@elsewhere.example", Role: doorward.RoleUser, State: doorward.InvitationPending, ServiceKeyID: con.ID, ExpiresAt: f.clock.read().Add(time.Hour)}
	f.write(func(tx *store.Tx) { f.value(tx.InsertInvitation(ctx, byDirectory)) })
	for email, want := range map[string]bool{"gus@elsewhere.example": true, byDirectory.Email: false} {
		equal(f, f.value(f.Read().InvitedSince(ctx, acme.ID, email, began)), want)
		equal(f, f.value(f.Read().InvitedSince(ctx, acme.ID, email, f.clock.read())), false)
	}
	r := f.run(con)
	first := f.effect(r, doorward.DirectorySuspended, "usr_b", "usr_b")
	f.clock.move(time.Second)
	second := f.effect(r, doorward.DirectoryRemoved, "usr_a", "usr_a")
	group := f.effect(r, doorward.DirectoryChanged, "grp_1", "")
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertDirectoryMoves(ctx, group, true, []string{"usr_a"}))
		f.wantChange(tx.AskDirectoryUndo(ctx, r.ID, "usr_owner"))
		f.wantNoChange(tx.AskDirectoryUndo(ctx, r.ID, "usr_other"))
	})
	running := f.value(f.Read().RunningDirectoryUndos(ctx)).([]doorward.DirectoryRun)
	equal(f, len(running), 1)
	equal(f, running[0].UndoBy, "usr_owner")
	equal(f, f.value(f.Read().SubjectsToUndo(ctx, r.ID, doorward.PrefixUser, 9)), []string{"usr_a", "usr_b"})
	f.write(func(tx *store.Tx) { noError(f, tx.InsertDirectoryMoves(ctx, group, false, []string{"usr_c"})) })
	equal(f, f.value(f.Read().PeopleToUndo(ctx, r.ID, 2)), []string{"usr_a", "usr_c"})
	equal(f, f.value(f.Read().PeopleToUndo(ctx, r.ID, 9)), []string{"usr_a", "usr_c", "usr_b"})
	equal(f, f.value(f.Read().CountPeopleToUndo(ctx, r.ID)), 3)
	equal(f, f.value(f.Read().GroupsToUndo(ctx, r.ID, "usr_a")), []string{"grp_1"})
	equal(f, f.value(f.Read().SubjectsToUndo(ctx, r.ID, doorward.PrefixGroup, 9)), []string{"grp_1"})
	equal(f, f.value(f.Read().DirectoryEffectsOf(ctx, r.ID, "usr_b")), []doorward.DirectoryEffect{first})
	equal(f, f.value(f.Read().MovesToUndo(ctx, r.ID, 9)), []doorward.DirectoryMove{{GroupID: "grp_1", MemberID: "usr_a"}, {GroupID: "grp_1", MemberID: "usr_c"}})
	equal(f, len(f.value(f.Read().DirectoryMovesOf(ctx, r.ID, "grp_1", "usr_a")).([]doorward.DirectoryMove)), 1)
	f.write(func(tx *store.Tx) {
		noError(f, tx.MarkUndone(ctx, r.ID, "usr_a", doorward.UndoneErased))
		noError(f, tx.MarkUndone(ctx, r.ID, "usr_b", doorward.UndoneDone))
		noError(f, tx.MarkMoveUndone(ctx, r.ID, "grp_1", "usr_a", doorward.UndoneDone))
		noError(f, tx.MarkMoveUndone(ctx, r.ID, "grp_1", "usr_c", doorward.UndoneChangedSince))
		noError(f, tx.CountUndone(ctx, r.ID, 1, 1))
		f.wantChange(tx.EndDirectoryUndo(ctx, r.ID))
		f.wantNoChange(tx.EndDirectoryUndo(ctx, r.ID))
	})
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.TellRefused(ctx, con.ID, []byte("hash")))
		f.wantNoChange(tx.TellRefused(ctx, con.ID, []byte("hash")))
		equal(f, f.value(tx.DeleteOldRefusals(ctx, tx.Now, 9)), int64(0))
		equal(f, f.value(tx.DeleteOldRefusals(ctx, tx.Now.Add(time.Hour), 9)), int64(1))
	})
	equal(f, len(f.value(f.Read().SubjectsToUndo(ctx, r.ID, doorward.PrefixUser, 9)).([]string)), 0)
	equal(f, len(f.value(f.Read().MovesToUndo(ctx, r.ID, 9)).([]doorward.DirectoryMove)), 0)
	equal(f, f.value(f.Read().CountPeopleToUndo(ctx, r.ID)), 0)
	equal(f, len(f.value(f.Read().GroupsToUndo(ctx, r.ID, "usr_a")).([]string)), 0)
	second.Undone = doorward.UndoneErased
	equal(f, f.value(f.Read().LeftByUndo(ctx, r.ID, 9)), []doorward.DirectoryEffect{second})
	done := f.value(f.Read().DirectoryRun(ctx, con.ID, r.ID)).(doorward.DirectoryRun)
	equal(f, []any{done.Undo, done.Undone, done.Left}, []any{doorward.UndoDone, 1, 1})
}
