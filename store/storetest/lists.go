package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// gather returns all values that a method like EachMember passes.
func gather[T any](each func(fn func(T) error) error) (all []T, err error) {
	err = each(func(v T) error { all = append(all, v); return nil })
	return all, err
}

func longLists(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.account("ann@acme.example")
	annAcme := f.join(acme, ann, doorward.RoleOwner)
	f.join(zeta, ann, doorward.RoleUser)
	f.clock.move(time.Second)
	bob := doorward.Account{ID: "usr_bob", Email: "bob@acme.example", CreatedAt: f.clock.read()} // without a password
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertAccount(ctx, bob)) })
	bobAcme := f.join(acme, bob, doorward.RoleViewer)
	first := f.invitation(acme, "cat@acme.example")
	f.clock.move(time.Second)
	second := f.invitation(acme, "dan@acme.example")
	f.invitation(zeta, "eve@zeta.example")
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.RevokeInvitation(ctx, first.ID))
		for i := range 3 {
			target := doorward.Object{Type: "tenant", ID: acme.ID, TenantID: acme.ID}
			noError(f, tx.InsertEvent(ctx, doorward.Event{ID: fmt.Sprint("evt_", i), Target: target, Changes: []doorward.Change{}}))
		}
	})
	first.State, first.RevokedAt = doorward.InvitationRevoked, pointerTo(f.clock.read())
	events, err := Events(ctx, f.Read(), acme.ID)
	noError(f, err)

	equal(f, f.value(gather(func(fn func(store.Member) error) error {
		return f.Read().EachMember(ctx, acme.ID, fn)
	})), []store.Member{{User: annAcme, PasswordHash: ann.PasswordHash}, {User: bobAcme}})
	equal(f, f.value(gather(func(fn func(doorward.Invitation) error) error {
		return f.Read().EachInvitation(ctx, acme.ID, fn)
	})), []doorward.Invitation{first, second})
	equal(f, f.value(gather(func(fn func(doorward.Event) error) error { return f.Read().EachEvent(ctx, acme.ID, fn) })), events)

	enough, seen := errors.New("enough"), 0
	err = f.Read().EachEvent(ctx, acme.ID, func(doorward.Event) error { seen++; return enough })
	if seen != 1 || !errors.Is(err, enough) {
		f.Errorf("%d rows and the error %v, want a stop after the first row", seen, err)
	}
}

// redundantInvitations: pending invitations to people who are members by now are revoked,
// unless they have expired.
func redundantInvitations(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	member, other := f.invitation(acme, "ann@acme.example"), f.invitation(acme, "bob@acme.example")
	elsewhere := f.invitation(zeta, "ann@acme.example")
	f.member(acme, "ann@acme.example", doorward.RoleUser)
	expired := f.invitation(acme, "cat@acme.example")
	f.member(acme, "cat@acme.example", doorward.RoleUser)
	expired.ExpiresAt = f.clock.read()
	f.write(func(tx *store.Tx) { f.wantChange(tx.RenewInvitation(ctx, expired)) })
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.RevokeRedundantInvitations(ctx, acme.ID)), int64(1))
		equal(f, f.value(tx.RevokeRedundantInvitations(ctx, acme.ID)), int64(0))
	})
	for inv, want := range map[string]doorward.InvitationState{
		member.ID: doorward.InvitationRevoked, other.ID: doorward.InvitationPending,
		elsewhere.ID: doorward.InvitationPending, expired.ID: doorward.InvitationPending,
	} {
		got, err := f.Read().Invitation(ctx, inv)
		noError(f, err)
		equal(f, got.State, want)
	}
}

// snapshots: a snapshot excludes commits after its first query, and blocks nobody.
func snapshots(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	err := f.Snapshot(ctx, func(read store.Reader) error {
		equal(f, f.value(allTenants(ctx, read)), []doorward.Tenant{acme})
		f.member(acme, "ann@acme.example", doorward.RoleOwner)
		f.tenant("Zeta")
		equal(f, f.value(allTenants(ctx, read)), []doorward.Tenant{acme})
		equal(f, f.value(allMembers(ctx, read, acme.ID)), []doorward.User(nil))
		return nil
	})
	noError(f, err)
	all, err := allTenants(ctx, f.Read())
	equal(f, f.value(len(all), err), 2)

	enough := errors.New("enough")
	if err := f.Snapshot(ctx, func(store.Reader) error { return enough }); !errors.Is(err, enough) {
		f.Errorf("the error is %v, want that of the function", err)
	}
	f.Close()
	wantUnavailable(f, f.Snapshot(ctx, func(store.Reader) error { return nil }))
}

// manyStatements: all rows are written or none, even if the same statements run many times.
func manyStatements(f *fixture) {
	ctx := f.Context()
	account := func(i int) doorward.Account {
		return doorward.Account{ID: fmt.Sprintf("usr_%02d", i), Email: fmt.Sprintf("p%02d@acme.example", i), CreatedAt: noon}
	}
	insert := func(tx *store.Tx, from, to int) {
		for i := from; i < to; i++ {
			f.wantChange(tx.InsertAccount(ctx, account(i)))
			f.wantNoChange(tx.InsertAccount(ctx, account(i)))
			equal(f, f.value(tx.Account(ctx, account(i).ID)), account(i))
		}
	}
	f.write(func(tx *store.Tx) { insert(tx, 0, 20) })
	equal(f, f.value(f.Read().Account(ctx, account(19).ID)), account(19))
	enough := errors.New("enough")
	err := f.try(ctx, func(tx *store.Tx) error { insert(tx, 20, 40); return enough })
	if !errors.Is(err, enough) {
		f.Errorf("the error is %v, want that of the function", err)
	}
	f.wantNone(f.Read().Account(ctx, account(20).ID))
}
