package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// gather returns what a method like EachMember hands out.
func gather[T any](each func(fn func(T) error) error) (all []T, err error) {
	err = each(func(v T) error { all = append(all, v); return nil })
	return all, err
}

func longLists(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann := w.account("ann@acme.example")
	annAcme := w.join(acme, ann, doorward.RoleOwner)
	w.join(zeta, ann, doorward.RoleUser)
	w.clock.move(time.Second)
	bob := doorward.Account{ID: "usr_bob", Email: "bob@acme.example", CreatedAt: w.clock.read()} // without a password
	w.write(func(tx *store.Tx) { yes(w)(tx.InsertAccount(ctx, bob)) })
	bobAcme := w.join(acme, bob, doorward.RoleViewer)
	first := w.invitation(acme, "cat@acme.example")
	w.clock.move(time.Second)
	second := w.invitation(acme, "dan@acme.example")
	w.invitation(zeta, "eve@zeta.example")
	w.write(func(tx *store.Tx) {
		yes(w)(tx.RevokeInvitation(ctx, first.ID))
		for i := range 3 {
			on := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
			ok(w, tx.InsertEvent(ctx, doorward.Event{ID: fmt.Sprint("evt_", i), Target: on, Changes: []doorward.Change{}}))
		}
	})
	first.State, first.RevokedAt = doorward.InvitationRevoked, at(w.clock.read())
	events, err := Events(ctx, w.Read(), acme.ID)
	ok(w, err)

	same(w, []store.Member{{User: annAcme, PasswordHash: ann.PasswordHash}, {User: bobAcme}})(gather(func(fn func(store.Member) error) error {
		return w.Read().EachMember(ctx, acme.ID, fn)
	}))
	same(w, []doorward.Invitation{first, second})(gather(func(fn func(doorward.Invitation) error) error {
		return w.Read().EachInvitation(ctx, acme.ID, fn)
	}))
	same(w, events)(gather(func(fn func(doorward.Event) error) error { return w.Read().EachEvent(ctx, acme.ID, fn) }))

	enough, seen := errors.New("enough"), 0
	err = w.Read().EachEvent(ctx, acme.ID, func(doorward.Event) error { seen++; return enough })
	if seen != 1 || !errors.Is(err, enough) {
		w.Errorf("%d rows after the first one was enough, and the error %v", seen, err)
	}
}

// needlessInvitations are those to members.
func needlessInvitations(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	member, other := w.invitation(acme, "ann@acme.example"), w.invitation(acme, "bob@acme.example")
	elsewhere := w.invitation(zeta, "ann@acme.example")
	w.member(acme, "ann@acme.example", doorward.RoleUser)
	expired := w.invitation(acme, "cat@acme.example")
	w.member(acme, "cat@acme.example", doorward.RoleUser)
	w.write(func(tx *store.Tx) { yes(w)(tx.RenewInvitation(ctx, expired.ID, "", w.clock.read())) })
	w.write(func(tx *store.Tx) {
		same(w, int64(1))(tx.RevokeNeedlessInvitations(ctx, acme.ID))
		same(w, int64(0))(tx.RevokeNeedlessInvitations(ctx, acme.ID))
	})
	for inv, want := range map[string]doorward.InvitationState{
		member.ID: doorward.InvitationRevoked, other.ID: doorward.InvitationPending,
		elsewhere.ID: doorward.InvitationPending, expired.ID: doorward.InvitationPending,
	} {
		got, err := w.Read().Invitation(ctx, inv)
		ok(w, err)
		same(w, want)(got.State, nil)
	}
}

// oneState: a snapshot doesn't hear of what is committed after its first query,
// and nobody waits for it.
func oneState(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	err := w.Snapshot(ctx, func(read store.Reader) error {
		same(w, []doorward.Tenant{acme})(read.Tenants(ctx))
		w.member(acme, "ann@acme.example", doorward.RoleOwner)
		w.tenant("Zeta")
		same(w, []doorward.Tenant{acme})(read.Tenants(ctx))
		same(w, []doorward.User(nil))(read.Users(ctx, acme.ID))
		return nil
	})
	ok(w, err)
	all, err := w.Read().Tenants(ctx)
	same(w, 2)(len(all), err)

	enough := errors.New("enough")
	if err := w.Snapshot(ctx, func(store.Reader) error { return enough }); !errors.Is(err, enough) {
		w.Errorf("the error is %v, want that of the function", err)
	}
	w.Close()
	unavailable(w, w.Snapshot(ctx, func(store.Reader) error { return nil }))
}

// manyStatements are written all or none, however often the same one is run.
func manyStatements(w *world) {
	ctx := w.Context()
	account := func(i int) doorward.Account {
		return doorward.Account{ID: fmt.Sprintf("usr_%02d", i), Email: fmt.Sprintf("p%02d@acme.example", i), CreatedAt: noon}
	}
	insert := func(tx *store.Tx, from, to int) {
		for i := from; i < to; i++ {
			yes(w)(tx.InsertAccount(ctx, account(i)))
			no(w)(tx.InsertAccount(ctx, account(i)))
			same(w, account(i))(tx.Account(ctx, account(i).ID))
		}
	}
	w.write(func(tx *store.Tx) { insert(tx, 0, 20) })
	same(w, account(19))(w.Read().Account(ctx, account(19).ID))
	enough := errors.New("enough")
	err := w.try(ctx, func(tx *store.Tx) error { insert(tx, 20, 40); return enough })
	if !errors.Is(err, enough) {
		w.Errorf("the error is %v, want that of the function", err)
	}
	none(w)(w.Read().Account(ctx, account(20).ID))
}
