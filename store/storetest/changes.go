package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

// changesOf runs a transaction and returns the changes that it announces to other nodes,
// without their numbers.
func (f *fixture) changesOf(fn func(tx *store.Tx)) []store.Change {
	f.Helper()
	all, err := f.Write(f.Context(), func(tx *store.Tx) error { fn(tx); return nil })
	noError(f, err)
	for i := range all {
		all[i].Seq = 0
	}
	return all
}

// changes: each statement that ends or alters what a session may do announces this
// itself, independent of the feature that runs it.
func changes(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	s, _, idle := f.session(ann), f.session(ann), f.session(ann)
	user, tenant := store.Change{Kind: store.ChangeUser, Subject: ann.ID}, store.Change{Kind: store.ChangeTenant, Subject: acme.ID}
	wantChanges := func(want []store.Change, fn func(tx *store.Tx)) {
		f.Helper()
		equal(f, f.changesOf(fn), want)
	}

	wantChanges(nil, func(tx *store.Tx) { tx.ForceDurable() })
	wantChanges([]store.Change{{Kind: store.ChangeNodes}}, func(tx *store.Tx) { tx.AnnounceNodes() })
	wantChanges([]store.Change{sessionChange(store.ChangeFlush, s)}, func(tx *store.Tx) { tx.RequestFlush(hashOf(s)) })
	wantChanges([]store.Change{sessionChange(store.ChangeSession, idle)}, func(tx *store.Tx) { noError(f, tx.DeleteIdleSession(ctx, hashOf(idle), noon)) })
	wantChanges(nil, func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldestSessions(ctx, ann.ID, "", s.ID, 2)), map[string]int64{})
	})
	wantChanges([]store.Change{user}, func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldestSessions(ctx, ann.ID, "", s.ID, 1)), map[string]int64{acme.ID: 1})
	})
	wantChanges([]store.Change{sessionChange(store.ChangeSession, s)}, func(tx *store.Tx) {
		f.wantNoChange(tx.DeleteSession(ctx, "ses_none"))
		f.wantChange(tx.DeleteSession(ctx, s.ID))
		f.wantNoChange(tx.DeleteSession(ctx, s.ID))
	})

	wantChanges([]store.Change{user}, func(tx *store.Tx) { f.wantChange(tx.SetUserRole(ctx, acme.ID, ann.ID, doorward.RoleUser)) })
	wantChanges([]store.Change{user}, func(tx *store.Tx) { f.wantChange(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended)) })
	wantChanges([]store.Change{tenant}, func(tx *store.Tx) { f.wantChange(tx.FreezeTenant(ctx, acme.ID)) })
	f.session(ann)
	wantChanges([]store.Change{user}, func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteUserSessions(ctx, aDay, ann.ID, "")), map[string]int64{acme.ID: 1})
	})
	f.session(ann)
	wantChanges([]store.Change{user}, func(tx *store.Tx) { equal(f, f.value(tx.DeleteMemberSessions(ctx, aDay, acme.ID, ann.ID)), int64(1)) })
	f.session(ann)
	wantChanges([]store.Change{tenant}, func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, acme)) })
	wantChanges([]store.Change{tenant}, func(tx *store.Tx) { noError(f, tx.DeleteAgedSessions(ctx, acme.ID, noon)) })
	wantChanges([]store.Change{tenant}, func(tx *store.Tx) { noError(f, tx.EndTenantSessions(ctx, acme.ID, "")) })
	wantChanges([]store.Change{user}, func(tx *store.Tx) { f.wantChange(tx.DeleteMembership(ctx, acme.ID, ann.ID)) })
}

// sessionChange returns the change of a kind for the session.
func sessionChange(kind store.ChangeKind, s doorward.Session) store.Change {
	return store.Change{Kind: kind, Subject: store.SessionSubject(hashOf(s))}
}

// orderOfChanges: changes are numbered in commit order without gaps, so that a
// reader of one number has seen all lower ones.
func orderOfChanges(f *fixture) {
	ctx := f.Context()
	request := func(tx *store.Tx, subjects ...string) {
		for _, s := range subjects {
			tx.RequestFlush([]byte(s))
		}
	}
	numbers := func(all []store.Change, err error) (seqs []int64) {
		noError(f, err)
		for _, c := range all {
			seqs = append(seqs, c.Seq)
		}
		return seqs
	}
	equal(f, numbers(f.Write(ctx, func(tx *store.Tx) error { request(tx, "a"); return nil })), []int64{1})
	equal(f, numbers(f.Write(ctx, func(*store.Tx) error { return nil })), []int64(nil))
	if _, err := f.Write(ctx, func(tx *store.Tx) error { request(tx, "lost"); return errors.New("no") }); err == nil {
		f.Error("Write didn't return the function's error")
	}
	cancelled, cancel := context.WithCancel(ctx)
	wantUnavailable(f, f.try(cancelled, func(tx *store.Tx) error { request(tx, "lost"); cancel(); return nil }))
	equal(f, numbers(f.Write(ctx, func(tx *store.Tx) error { request(tx, "a", "b", "a"); return nil })), []int64{2, 3})

	var mu sync.Mutex
	var seqs []int64
	errs := together(16, func(i int) error {
		all, err := f.Write(ctx, func(tx *store.Tx) error { request(tx, "a", "b"); return nil })
		mu.Lock()
		defer mu.Unlock()
		if err == nil && all[1].Seq != all[0].Seq+1 {
			err = errors.New("another transaction's change is between the two of one transaction")
		}
		for _, c := range all {
			seqs = append(seqs, c.Seq)
		}
		return err
	})
	noError(f, errors.Join(errs...))
	slices.Sort(seqs)
	for i, seq := range seqs {
		if seq != int64(i+4) {
			f.Fatalf("the numbers are %v: want 4 to 35, each once", seqs)
		}
	}
	// The numbers go on after the changes are deleted.
	f.write(func(tx *store.Tx) {
		_, err := rows.Exec(ctx, tx.Conn, `DELETE FROM changes`)
		noError(f, err)
	})
	equal(f, numbers(f.Write(ctx, func(tx *store.Tx) error { request(tx, "a"); return nil })), []int64{36})
}
