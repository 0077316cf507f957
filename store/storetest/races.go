package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// together calls fn n times at once and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	gate := make(chan struct{})
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-gate
			errs[i] = fn(i)
		})
	}
	ready.Wait()
	close(gate)
	done.Wait()
	return errs
}

// contest lets n callers try the same at once, each in a transaction of its
// own, and returns who succeeded.
func (w *world) contest(n int, try func(tx *store.Tx, i int) (bool, error)) (winners []int) {
	w.Helper()
	won := make([]bool, n)
	errs := together(n, func(i int) error {
		return w.try(w.Context(), func(tx *store.Tx) (err error) { won[i], err = try(tx, i); return err })
	})
	ok(w, errors.Join(errs...))
	for i := range won {
		if won[i] {
			winners = append(winners, i)
		}
	}
	return winners
}

// onlyOne wants exactly one of n callers to succeed, and returns which.
func (w *world) onlyOne(n int, try func(tx *store.Tx, i int) (bool, error)) int {
	w.Helper()
	winners := w.contest(n, try)
	if len(winners) != 1 {
		w.Fatalf("%d of %d callers succeeded, want exactly one", len(winners), n)
	}
	return winners[0]
}

func manyHits(w *world) {
	const callers = 64
	counts := make([]int, callers)
	w.contest(callers, func(tx *store.Tx, i int) (bool, error) {
		t, err := tx.HitThrottle(w.Context(), "ann", day)
		counts[i] = t.Hits
		return true, err
	})
	slices.Sort(counts)
	for i, n := range counts {
		if n != i+1 {
			w.Fatalf("the counts answered are %v: want each from 1 to %d once", counts, callers)
		}
	}
}

func manyClaims(w *world) {
	w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(w.Context(), store.MailReset, "ann@acme.example", "")) })
	seen := w.due()[0]
	w.onlyOne(16, func(tx *store.Tx, _ int) (bool, error) {
		return tx.ClaimMail(w.Context(), seen, noon.Add(day))
	})
}

func manyAcceptances(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	for round := range 5 {
		inv := w.draft(acme, fmt.Sprintf("%d@acme.example", round))
		inv.InvitedBy = ann.ID
		w.write(func(tx *store.Tx) { yes(w)(tx.InsertInvitation(ctx, inv)) })
		winner := w.onlyOne(32, func(tx *store.Tx, i int) (bool, error) {
			if i%2 == 0 {
				return tx.AcceptInvitation(ctx, inv.ID)
			}
			n, err := tx.RevokeInvitationsBy(ctx, acme.ID, ann.ID)
			return n > 0, err
		})
		inv, err := w.Read().Invitation(ctx, inv.ID)
		ok(w, err)
		want := []doorward.InvitationState{doorward.InvitationAccepted, doorward.InvitationRevoked}[winner%2]
		if inv.State != want || (inv.AcceptedAt == nil) == (inv.RevokedAt == nil) {
			w.Errorf("caller %d had it, and it is now %+v", winner, inv)
		}
	}
}

func manyRegistrations(w *world) {
	winner := w.onlyOne(32, func(tx *store.Tx, i int) (bool, error) {
		a := doorward.Account{ID: fmt.Sprintf("usr_%d", i), Email: "ann@acme.example", PasswordHash: fmt.Sprint(i), CreatedAt: noon}
		return tx.InsertAccount(w.Context(), a)
	})
	ann, err := w.Read().AccountByEmail(w.Context(), "ann@acme.example")
	same(w, fmt.Sprint(winner))(ann.PasswordHash, err)
}

func manyInvitations(w *world) {
	acme := w.tenant("Acme")
	old := w.invitation(acme, "bob@acme.example")
	w.clock.move(day)
	drafts := make([]doorward.Invitation, 32)
	for i := range drafts {
		drafts[i] = w.draft(acme, old.Email)
	}
	winner := w.onlyOne(len(drafts), func(tx *store.Tx, i int) (bool, error) {
		if err := tx.RetireExpiredInvitation(w.Context(), acme.ID, old.Email); err != nil {
			return false, err
		}
		return tx.InsertInvitation(w.Context(), drafts[i])
	})
	same(w, drafts[winner])(w.Read().PendingInvitation(w.Context(), acme.ID, old.Email))
}

func manyResets(w *world) {
	ann := w.account("ann@acme.example")
	r := store.Reset{ID: "rst_1", UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(day)}
	w.write(func(tx *store.Tx) { ok(w, tx.InsertReset(w.Context(), r)) })
	w.onlyOne(32, func(tx *store.Tx, _ int) (bool, error) { return tx.UseReset(w.Context(), r.ID) })
}

func manyPasswords(w *world) {
	ann := w.account("ann@acme.example")
	winner := w.onlyOne(32, func(tx *store.Tx, i int) (bool, error) {
		return tx.SetPassword(w.Context(), ann.ID, ann.PasswordHash, fmt.Sprint(i))
	})
	ann, err := w.Read().Account(w.Context(), ann.ID)
	same(w, fmt.Sprint(winner))(ann.PasswordHash, err)
}

// manySessions: under the lock on the account, the limit on sessions holds
// however many are opened at once.
func manySessions(w *world) {
	const callers, limit = 20, 10
	ctx := w.Context()
	ann := w.member(w.tenant("Acme"), "ann@acme.example", doorward.RoleUser)
	all := make([]doorward.Session, callers)
	for i := range all {
		all[i] = doorward.Session{ID: w.id("ses_"), UserID: ann.ID, TenantID: ann.TenantID, CreatedAt: noon, LastSeenAt: noon}
	}
	w.contest(callers, func(tx *store.Tx, i int) (bool, error) {
		locked, err := tx.LockAccount(ctx, ann.ID, "hash of "+ann.ID)
		if err != nil || !locked {
			return false, errors.Join(err, errors.New("not locked"))
		}
		if err := tx.InsertSession(ctx, all[i], hashOf(all[i])); err != nil {
			return false, err
		}
		_, err = tx.DeleteOldestSessions(ctx, ann.ID, all[i].ID, limit)
		return true, err
	})
	if n := len(w.live(all...)); n != limit {
		w.Errorf("%d sessions are left, want %d", n, limit)
	}
}

// demotions: under the lock on the tenant, whoever counts the owners after a
// change sees every change before it.
func demotions(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	owners := []doorward.User{w.member(acme, "ann@acme.example", doorward.RoleOwner), w.member(acme, "bob@acme.example", doorward.RoleOwner)}
	for range 20 {
		errs := together(2, func(i int) error {
			return w.try(ctx, func(tx *store.Tx) error { return demote(w, tx, owners[i]) })
		})
		if (errs[0] == nil) == (errs[1] == nil) {
			w.Fatalf("of two owners one must go and one must stay: %v", errs)
		}
		w.write(func(tx *store.Tx) {
			same(w, 1)(tx.CountActiveOwners(ctx, acme.ID))
			for _, o := range owners {
				_, err := tx.SetUserRole(ctx, acme.ID, o.ID, doorward.RoleOwner)
				ok(w, err)
			}
		})
	}
}

// demote makes an owner a viewer, unless that leaves none.
func demote(w *world, tx *store.Tx, owner doorward.User) error {
	if err := tx.LockTenant(w.Context(), owner.TenantID); err != nil {
		return err
	}
	if _, err := tx.SetUserRole(w.Context(), owner.TenantID, owner.ID, doorward.RoleViewer); err != nil {
		return err
	}
	left, err := tx.CountActiveOwners(w.Context(), owner.TenantID)
	if err == nil && left == 0 {
		err = doorward.Fail(doorward.CodeLastOwner, "")
	}
	return err
}
