package storetest

import (
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// policies: the latest version of a tenant's policies is in force. One that waits to be confirmed
// ends at ConfirmUntil, and the last confirmed one is in force again. A change makes all nodes
// read the tenant again.
func policies(f *fixture) {
	ctx := f.Context()
	acme, other := f.tenant("Acme"), f.tenant("Other")
	insert := func(v store.PolicyVersion) store.PolicyVersion {
		before, err := f.Read().RulesVersion(ctx, acme.ID)
		noError(f, err)
		changes, err := f.Write(ctx, func(tx *store.Tx) error {
			v.TenantID, v.Mode, v.CreatedAt, v.CreatedBy = acme.ID, store.PolicyEnforces, tx.Now, "usr_1"
			return tx.InsertPolicy(ctx, v)
		})
		equal(f, f.value(changes[0].Kind, err), store.ChangeTenant)
		after, err := f.Read().RulesVersion(ctx, acme.ID)
		equal(f, f.value(before != after, err), true)
		return v
	}
	stored := func() store.Policies {
		p, err := f.Read().Policies(ctx, acme.ID)
		noError(f, err)
		return p
	}
	equal(f, stored(), store.Policies{})
	until := f.clock.read().Add(time.Hour).Truncate(time.Microsecond)
	unconfirmed := insert(store.PolicyVersion{Version: 1, Text: "first", ConfirmUntil: &until})
	equal(f, *stored().Latest, unconfirmed)
	equal(f, stored().Confirmed == nil, true)
	equal(f, stored().At(until) == nil, true)
	second := insert(store.PolicyVersion{Version: 2, Text: "second"})
	equal(f, *stored().Confirmed, second)
	third := insert(store.PolicyVersion{Version: 3, Text: "third", ConfirmUntil: &until})
	equal(f, []store.PolicyVersion{*stored().At(until.Add(-time.Microsecond)), *stored().At(until)}, []store.PolicyVersion{third, second})
	confirm := func(tenantID string, version int64) (done bool) {
		f.write(func(tx *store.Tx) {
			var err error
			done, err = tx.ConfirmPolicy(ctx, tenantID, version)
			noError(f, err)
		})
		return done
	}
	equal(f, []bool{confirm(other.ID, 3), confirm(acme.ID, 2), confirm(acme.ID, 3), confirm(acme.ID, 3)}, []bool{false, false, true, false})
	third.ConfirmUntil = nil
	equal(f, *stored().At(until), third)
	got, err := f.Read().PolicyVersion(ctx, acme.ID, 2)
	equal(f, f.value(got, err), second)
	_, err = f.Read().PolicyVersion(ctx, other.ID, 2)
	equal(f, errors.Is(err, store.ErrNone), true)
	page, err := f.Read().PolicyPage(ctx, acme.ID, doorward.Window{Limit: 2})
	equal(f, f.value(page.Items, err), []store.PolicyVersion{third, second})
	page, err = f.Read().PolicyPage(ctx, acme.ID, doorward.Window{Limit: 2, After: *page.Next})
	equal(f, f.value(page.Items, err), []store.PolicyVersion{unconfirmed})
}

// observedPolicies: while a version observes, the one in its field Enforced refuses. Counts add
// up; those of a version that the tenant doesn't have are dropped.
func observedPolicies(f *fixture) {
	ctx := f.Context()
	acme, other := f.tenant("Acme"), f.tenant("Other")
	f.write(func(tx *store.Tx) {
		for _, v := range []store.PolicyVersion{
			{Version: 1, Text: "one", Mode: store.PolicyEnforces},
			{Version: 2, Text: "two", Mode: store.PolicyEnforces},
			{Version: 3, Text: "three", Mode: store.PolicyObserves, Enforced: 1},
			{Version: 4, Text: "four", Mode: "later"}, // an unknown mode, of a later version of Doorward
		} {
			v.TenantID, v.CreatedAt = acme.ID, tx.Now
			noError(f, tx.InsertPolicy(ctx, v))
			all, err := tx.Policies(ctx, acme.ID)
			want := map[int64]string{1: "one", 2: "two", 3: "one"}[v.Version]
			if refusing := all.Refusing(all.Latest); (refusing == nil) != (want == "") || refusing != nil && refusing.Text != want {
				f.Errorf("while version %d is in force, %+v refuses, %v", v.Version, refusing, err)
			}
			var texts []string
			noError(f, tx.EachPolicy(ctx, func(v store.PolicyVersion) error {
				texts = append(texts, v.Text)
				return nil
			}))
			equal(f, texts, map[int64][]string{1: {"one"}, 2: {"two"}, 3: {"one", "three"}, 4: {"four"}}[v.Version])
		}
	})
	count := func(tenantID, id string, n int64) {
		f.write(func(tx *store.Tx) {
			policy := store.ObservedPolicy{TenantID: tenantID, Version: 3, PolicyID: id}
			noError(f, tx.CountObserved(ctx, []store.ObservedCount{{ObservedPolicy: policy, Refused: n}}))
		})
	}
	count(acme.ID, "a", 2)
	count(acme.ID, "a", 3)
	count(acme.ID, "b", 1)
	count(other.ID, "a", 9) // has no such version
	count("tnt_none", "a", 9)
	counts, err := f.Read().ObservedCounts(ctx, acme.ID, 3)
	equal(f, f.value(counts, err), map[string]int64{"a": 5, "b": 1})
	counts, err = f.Read().ObservedCounts(ctx, other.ID, 3)
	equal(f, f.value(len(counts), err), 0)
}
