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

// contest runs try n times at once, each in its own transaction, and returns which
// succeeded.
func (f *fixture) contest(n int, try func(tx *store.Tx, i int) (bool, error)) (winners []int) {
	f.Helper()
	won := make([]bool, n)
	errs := together(n, func(i int) error {
		return f.try(f.Context(), func(tx *store.Tx) (err error) { won[i], err = try(tx, i); return err })
	})
	noError(f, errors.Join(errs...))
	for i := range won {
		if won[i] {
			winners = append(winners, i)
		}
	}
	return winners
}

// onlyOne fails unless exactly one of n callers succeeds, and returns which.
func (f *fixture) onlyOne(n int, try func(tx *store.Tx, i int) (bool, error)) int {
	f.Helper()
	winners := f.contest(n, try)
	if len(winners) != 1 {
		f.Fatalf("%d of %d callers succeeded, want exactly one", len(winners), n)
	}
	return winners[0]
}

func manyHits(f *fixture) {
	const callers = 64
	counts := make([]int, callers)
	f.contest(callers, func(tx *store.Tx, i int) (bool, error) {
		t, err := tx.HitThrottle(f.Context(), "ann", day)
		counts[i] = t.Hits
		return true, err
	})
	slices.Sort(counts)
	for i, n := range counts {
		if n != i+1 {
			f.Fatalf("the counts returned are %v: want each from 1 to %d once", counts, callers)
		}
	}
}

func manyClaims(f *fixture) {
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(f.Context(), store.MailReset, "ann@acme.example", "")) })
	seen := f.due()[0]
	f.onlyOne(16, func(tx *store.Tx, _ int) (bool, error) {
		return tx.ClaimMail(f.Context(), seen, noon.Add(day))
	})
}

func manyAcceptances(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	for round := range 5 {
		inv := f.draft(acme, fmt.Sprintf("%d@acme.example", round))
		inv.InvitedBy = ann.ID
		f.write(func(tx *store.Tx) { f.wantChange(tx.InsertInvitation(ctx, inv)) })
		winner := f.onlyOne(32, func(tx *store.Tx, i int) (bool, error) {
			if i%2 == 0 {
				return tx.AcceptInvitation(ctx, inv.ID)
			}
			n, err := tx.RevokeInvitationsBy(ctx, acme.ID, ann.ID)
			return n > 0, err
		})
		inv, err := f.Read().Invitation(ctx, inv.ID)
		noError(f, err)
		want := []doorward.InvitationState{doorward.InvitationAccepted, doorward.InvitationRevoked}[winner%2]
		if inv.State != want || (inv.AcceptedAt == nil) == (inv.RevokedAt == nil) {
			f.Errorf("caller %d succeeded, but the invitation is %+v", winner, inv)
		}
	}
}

func manyRegistrations(f *fixture) {
	winner := f.onlyOne(32, func(tx *store.Tx, i int) (bool, error) {
		a := doorward.Account{ID: fmt.Sprintf("usr_%d", i), Email: "ann@acme.example", PasswordHash: fmt.Sprint(i), CreatedAt: noon}
		return tx.InsertAccount(f.Context(), a)
	})
	ann, err := f.Read().AccountByEmail(f.Context(), "ann@acme.example")
	equal(f, f.value(ann.PasswordHash, err), fmt.Sprint(winner))
}

func manyInvitations(f *fixture) {
	acme := f.tenant("Acme")
	old := f.invitation(acme, "bob@acme.example")
	f.clock.move(day)
	drafts := make([]doorward.Invitation, 32)
	for i := range drafts {
		drafts[i] = f.draft(acme, old.Email)
	}
	winner := f.onlyOne(len(drafts), func(tx *store.Tx, i int) (bool, error) {
		if err := tx.RetireExpiredInvitation(f.Context(), acme.ID, old.Email); err != nil {
			return false, err
		}
		return tx.InsertInvitation(f.Context(), drafts[i])
	})
	equal(f, f.value(f.Read().PendingInvitation(f.Context(), acme.ID, old.Email)), drafts[winner])
}

func manyResets(f *fixture) {
	ann := f.account("ann@acme.example")
	r := store.Reset{ID: "rst_1", UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(day)}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertReset(f.Context(), r)) })
	f.onlyOne(32, func(tx *store.Tx, _ int) (bool, error) { return tx.UseReset(f.Context(), r.ID) })
}

func manyPasswords(f *fixture) {
	ann := f.account("ann@acme.example")
	winner := f.onlyOne(32, func(tx *store.Tx, i int) (bool, error) {
		return tx.SetPassword(f.Context(), ann.ID, ann.PasswordHash, fmt.Sprint(i))
	})
	ann, err := f.Read().Account(f.Context(), ann.ID)
	equal(f, f.value(ann.PasswordHash, err), fmt.Sprint(winner))
}

// manySessions: under the account's lock the limit on sessions holds for any
// number of concurrent logins.
func manySessions(f *fixture) {
	const callers, limit = 20, 10
	ctx := f.Context()
	ann := f.member(f.tenant("Acme"), "ann@acme.example", doorward.RoleUser)
	all := make([]doorward.Session, callers)
	for i := range all {
		all[i] = doorward.Session{ID: f.id("ses_"), UserID: ann.ID, TenantID: ann.TenantID, CreatedAt: noon, LastSeenAt: noon}
	}
	f.contest(callers, func(tx *store.Tx, i int) (bool, error) {
		locked, err := tx.LockAccount(ctx, ann.ID)
		if err != nil || !locked {
			return false, errors.Join(err, errors.New("not locked"))
		}
		if err := tx.InsertSession(ctx, all[i], hashOf(all[i])); err != nil {
			return false, err
		}
		_, err = tx.DeleteOldestSessions(ctx, ann.ID, "", all[i].ID, limit)
		return true, err
	})
	if n := len(f.live(all...)); n != limit {
		f.Errorf("%d sessions are left, want %d", n, limit)
	}
}

// demotions: under the tenant's lock, a count of owners after a change includes
// every earlier change.
func demotions(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	owners := []doorward.User{f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(acme, "bob@acme.example", doorward.RoleOwner)}
	for range 20 {
		errs := together(2, func(i int) error {
			return f.try(ctx, func(tx *store.Tx) error { return demote(f, tx, owners[i]) })
		})
		if (errs[0] == nil) == (errs[1] == nil) {
			f.Fatalf("one of two demotions must succeed and one must fail: %v", errs)
		}
		f.write(func(tx *store.Tx) {
			equal(f, f.value(tx.CountActiveOwners(ctx, acme.ID)), 1)
			for _, o := range owners {
				_, err := tx.SetUserRole(ctx, acme.ID, o.ID, doorward.RoleOwner)
				noError(f, err)
			}
		})
	}
}

// demote makes an owner a viewer, unless that leaves none.
func demote(f *fixture, tx *store.Tx, owner doorward.User) error {
	if err := tx.LockTenant(f.Context(), owner.TenantID); err != nil {
		return err
	}
	if _, err := tx.SetUserRole(f.Context(), owner.TenantID, owner.ID, doorward.RoleViewer); err != nil {
		return err
	}
	left, err := tx.CountActiveOwners(f.Context(), owner.TenantID)
	if err == nil && left == 0 {
		err = doorward.Fail(doorward.CodeLastOwner, "")
	}
	return err
}
