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

// told runs a transaction and returns what it tells the memory of all nodes,
// without the numbers.
func (w *world) told(fn func(tx *store.Tx)) []store.Change {
	w.Helper()
	all, err := w.Write(w.Context(), func(tx *store.Tx) error { fn(tx); return nil })
	ok(w, err)
	for i := range all {
		all[i].Seq = 0
	}
	return all
}

// changes: every statement that ends or alters what a session may do says so
// by itself, whether the feature that runs it thinks of it or not.
func changes(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	s, old, idle := w.session(ann), w.session(ann), w.session(ann)
	user, tenant := store.Change{Kind: store.ChangeUser, Subject: ann.ID}, store.Change{Kind: store.ChangeTenant, Subject: acme.ID}
	tells := func(want []store.Change, fn func(tx *store.Tx)) {
		w.Helper()
		same(w, want)(w.told(fn), nil)
	}

	tells(nil, func(tx *store.Tx) { tx.ForceDurable() })
	tells([]store.Change{about(store.ChangeFlush, s)}, func(tx *store.Tx) { tx.AskFlush(hashOf(s)) })
	tells([]store.Change{about(store.ChangeSession, idle)}, func(tx *store.Tx) { ok(w, tx.DeleteIdleSession(ctx, hashOf(idle), noon)) })
	tells(nil, func(tx *store.Tx) { same(w, map[string]int64{})(tx.DeleteOldestSessions(ctx, ann.ID, s.ID, 2)) })
	tells([]store.Change{user}, func(tx *store.Tx) {
		same(w, map[string]int64{acme.ID: 1})(tx.DeleteOldestSessions(ctx, ann.ID, s.ID, 1))
	})
	left := []doorward.Session{s, old}[slices.Index([]string{s.ID, old.ID}, w.live(s, old)[0])]
	tells([]store.Change{about(store.ChangeSession, left)}, func(tx *store.Tx) {
		no(w)(tx.DeleteSession(ctx, "ses_none"))
		yes(w)(tx.DeleteSession(ctx, left.ID))
		no(w)(tx.DeleteSession(ctx, left.ID))
	})

	tells([]store.Change{user}, func(tx *store.Tx) { yes(w)(tx.SetUserRole(ctx, acme.ID, ann.ID, doorward.RoleUser)) })
	tells([]store.Change{user}, func(tx *store.Tx) { yes(w)(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended)) })
	tells([]store.Change{tenant}, func(tx *store.Tx) { yes(w)(tx.FreezeTenant(ctx, acme.ID)) })
	w.session(ann)
	tells([]store.Change{user}, func(tx *store.Tx) {
		same(w, map[string]int64{acme.ID: 1})(tx.DeleteUserSessions(ctx, aDay, ann.ID, ""))
	})
	w.session(ann)
	tells([]store.Change{user}, func(tx *store.Tx) { same(w, int64(1))(tx.DeleteMemberSessions(ctx, aDay, acme.ID, ann.ID)) })
	w.session(ann)
	tells([]store.Change{tenant}, func(tx *store.Tx) { same(w, int64(1))(tx.DeleteTenantSessions(ctx, aDay, acme.ID)) })
	tells([]store.Change{tenant}, func(tx *store.Tx) { ok(w, tx.EditTenant(ctx, acme)) })
	tells([]store.Change{tenant}, func(tx *store.Tx) { ok(w, tx.DeleteAgedSessions(ctx, acme.ID, noon)) })
	tells([]store.Change{tenant}, func(tx *store.Tx) { ok(w, tx.DeleteOtherSessions(ctx, acme.ID, "")) })
	tells([]store.Change{user}, func(tx *store.Tx) { yes(w)(tx.DeleteMembership(ctx, acme.ID, ann.ID)) })
}

// about is a change of the session.
func about(kind store.ChangeKind, s doorward.Session) store.Change {
	return store.Change{Kind: kind, Subject: store.SessionSubject(hashOf(s))}
}

// orderOfChanges: changes are numbered in the order of their commits, without a
// gap, so that a reader who has seen one number has seen all before it.
func orderOfChanges(w *world) {
	ctx := w.Context()
	ask := func(tx *store.Tx, subjects ...string) {
		for _, s := range subjects {
			tx.AskFlush([]byte(s))
		}
	}
	numbers := func(all []store.Change, err error) (seqs []int64) {
		ok(w, err)
		for _, c := range all {
			seqs = append(seqs, c.Seq)
		}
		return seqs
	}
	same(w, []int64{1})(numbers(w.Write(ctx, func(tx *store.Tx) error { ask(tx, "a"); return nil })), nil)
	same(w, []int64(nil))(numbers(w.Write(ctx, func(*store.Tx) error { return nil })), nil)
	if _, err := w.Write(ctx, func(tx *store.Tx) error { ask(tx, "lost"); return errors.New("no") }); err == nil {
		w.Error("a function's error got lost")
	}
	gone, cancel := context.WithCancel(ctx)
	unavailable(w, w.try(gone, func(tx *store.Tx) error { ask(tx, "lost"); cancel(); return nil }))
	same(w, []int64{2, 3})(numbers(w.Write(ctx, func(tx *store.Tx) error { ask(tx, "a", "b", "a"); return nil })), nil)

	var mu sync.Mutex
	var seqs []int64
	errs := together(16, func(i int) error {
		all, err := w.Write(ctx, func(tx *store.Tx) error { ask(tx, "a", "b"); return nil })
		mu.Lock()
		defer mu.Unlock()
		if err == nil && all[1].Seq != all[0].Seq+1 {
			err = errors.New("another transaction's change stands between the two of one")
		}
		for _, c := range all {
			seqs = append(seqs, c.Seq)
		}
		return err
	})
	ok(w, errors.Join(errs...))
	slices.Sort(seqs)
	for i, seq := range seqs {
		if seq != int64(i+4) {
			w.Fatalf("the numbers are %v: want 4 to 35, each once", seqs)
		}
	}
	w.write(func(tx *store.Tx) {
		_, err := rows.Exec(ctx, tx.Conn, `DELETE FROM changes`)
		ok(w, err)
	})
	same(w, []int64{36})(numbers(w.Write(ctx, func(tx *store.Tx) error { ask(tx, "a"); return nil })), nil)
}
