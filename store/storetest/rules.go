package storetest

import (
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// rules: what a tenant changes in its roles applies to every row that is read from then on, in
// this tenant only, and a transaction that fails leaves nothing behind.
func rules(f *fixture) {
	ctx := f.Context()
	acme, other := f.tenant("Acme"), f.tenant("Other")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	bob := f.member(other, "bob@other.example", doorward.RoleOwner)
	s := f.session(ann)
	grants := func() []doorward.Action {
		cred, err := f.Read().Session(ctx, s.ID)
		noError(f, err)
		user, err := f.Read().User(ctx, acme.ID, ann.ID)
		noError(f, err)
		tenant, err := f.Read().Tenant(ctx, acme.ID)
		noError(f, err)
		current, err := f.Read().Rules(ctx, acme.ID)
		noError(f, err)
		for _, r := range []*doorward.Rules{user.Rules, tenant.Rules, current} {
			equal(f, r.Grant("SUPPORT"), cred.User.Rules.Grant("SUPPORT"))
		}
		if g := current.Grant("SUPPORT"); g != nil {
			return g.Actions
		}
		return nil
	}
	equal(f, len(grants()), 0)
	support := doorward.CustomRole{ID: f.id("rol_"), Name: "SUPPORT", About: "answers", Permissions: []doorward.Action{doorward.MessageRead, doorward.UserRead}}
	failed := errors.New("rolled back")
	_, err := f.Write(ctx, func(tx *store.Tx) error {
		wrong := support
		wrong.Permissions = []doorward.Action{doorward.TenantDestroy}
		if _, err := tx.InsertCustomRole(ctx, acme.ID, wrong); err != nil {
			return err
		}
		inside, err := tx.Rules(ctx, acme.ID)
		noError(f, err)
		equal(f, inside.Grant("SUPPORT").Actions, wrong.Permissions)
		return failed
	})
	equal(f, errors.Is(err, failed), true)
	equal(f, len(grants()), 0)
	f.write(func(tx *store.Tx) {
		added, err := tx.InsertCustomRole(ctx, acme.ID, support)
		equal(f, f.value(added, err), true)
		again := support
		again.ID = f.id("rol_")
		added, err = tx.InsertCustomRole(ctx, acme.ID, again)
		equal(f, f.value(added, err), false)
	})
	equal(f, grants(), support.Permissions)
	theirs, err := f.Read().User(ctx, other.ID, bob.ID)
	equal(f, f.value(theirs.Rules.Has("SUPPORT"), err), false)
	support.Permissions = []doorward.Action{doorward.MessageRead}
	f.write(func(tx *store.Tx) {
		found, err := tx.UpdateCustomRole(ctx, other.ID, support)
		equal(f, f.value(found, err), false)
		found, err = tx.UpdateCustomRole(ctx, acme.ID, support)
		equal(f, f.value(found, err), true)
	})
	equal(f, grants(), support.Permissions)
	got, err := f.Read().CustomRole(ctx, acme.ID, support.ID)
	equal(f, f.value(got, err), support)
	_, err = f.Read().CustomRole(ctx, other.ID, support.ID)
	equal(f, errors.Is(err, store.ErrNone), true)
	var ofAllTenants []store.RoleOfTenant
	noError(f, f.Read().EachCustomRole(ctx, func(r store.RoleOfTenant) error {
		ofAllTenants = append(ofAllTenants, r)
		return nil
	}))
	equal(f, ofAllTenants, []store.RoleOfTenant{{TenantID: acme.ID, CustomRole: support}})
	f.write(func(tx *store.Tx) {
		found, err := tx.DeleteCustomRole(ctx, other.ID, support.ID)
		equal(f, f.value(found, err), false)
		found, err = tx.DeleteCustomRole(ctx, acme.ID, support.ID)
		equal(f, f.value(found, err), true)
	})
	equal(f, len(grants()), 0)
	_, err = f.Read().CustomRole(ctx, acme.ID, support.ID)
	equal(f, errors.Is(err, store.ErrNone), true)
	all, err := f.Read().CustomRoles(ctx, acme.ID)
	equal(f, f.value(len(all), err), 0)
}

// policiesInForce: EachPolicy has the latest version of a tenant's policies. If that is not
// confirmed yet, it has the last confirmed one as well. An empty text counts as no policies.
func policiesInForce(f *fixture) {
	ctx := f.Context()
	acme, other := f.tenant("Acme"), f.tenant("Other")
	until := f.clock.read().Add(day)
	f.write(func(tx *store.Tx) {
		for _, v := range []store.PolicyVersion{
			{TenantID: acme.ID, Version: 1, Text: "one"},
			{TenantID: acme.ID, Version: 2, Text: "two"},
			{TenantID: acme.ID, Version: 3, Text: "three", ConfirmUntil: &until},
			{TenantID: other.ID, Version: 1, Text: "x"},
			{TenantID: other.ID, Version: 2},
		} {
			v.Mode, v.CreatedAt = store.PolicyEnforces, tx.Now
			noError(f, tx.InsertPolicy(ctx, v))
		}
	})
	var texts []string
	noError(f, f.Read().EachPolicy(ctx, func(v store.PolicyVersion) error {
		texts = append(texts, v.Text)
		return nil
	}))
	equal(f, texts, []string{"two", "three"})
}

// usedRoles: members, invitations and keys with a role are counted, and are moved to another
// role.
func usedRoles(f *fixture) {
	ctx := f.Context()
	acme, other := f.tenant("Acme"), f.tenant("Other")
	desk := doorward.CustomRole{ID: f.id("rol_"), Name: "DESK", Permissions: []doorward.Action{doorward.UserRead}}
	f.write(func(tx *store.Tx) {
		for _, tenant := range []doorward.Tenant{acme, other} {
			desk.ID = f.id("rol_")
			_, err := tx.InsertCustomRole(ctx, tenant.ID, desk)
			noError(f, err)
		}
	})
	ann := f.member(acme, "ann@acme.example", "DESK")
	f.member(acme, "bob@acme.example", doorward.RoleUser)
	f.member(other, "eve@other.example", "DESK")
	key, inv := f.apiKey(ann, "backup"), f.invitation(acme, "cid@acme.example") // both have the role USER
	use := func(tenant doorward.Tenant, role doorward.Role) store.RoleUse {
		u, err := f.Read().RoleUse(ctx, tenant.ID, role, f.clock.read())
		return f.value(u, err).(store.RoleUse)
	}
	equal(f, use(acme, "DESK"), store.RoleUse{Members: 1})
	equal(f, use(acme, key.Role), store.RoleUse{Members: 1, Invitations: 1, Keys: 1})
	for role, want := range map[doorward.Role]bool{"DESK": true, doorward.RoleOwner: true, "GONE": false} {
		has, err := f.Read().HasRole(ctx, acme.ID, role)
		equal(f, f.value(has, err), want)
	}
	equal(f, f.changesOf(func(tx *store.Tx) {
		noError(f, tx.MoveRole(ctx, acme.ID, "DESK", doorward.RoleViewer))
		noError(f, tx.MoveRole(ctx, acme.ID, key.Role, doorward.RoleAdmin))
	}), []store.Change{{Kind: store.ChangeTenant, Subject: acme.ID}})
	equal(f, []store.RoleUse{use(acme, "DESK"), use(other, "DESK")}, []store.RoleUse{{}, {Members: 1}})
	moved, err := f.Read().APIKey(ctx, key.ID, f.clock.read())
	equal(f, f.value(moved.Role, err), doorward.RoleAdmin)
	invited, err := f.Read().Invitation(ctx, inv.ID)
	equal(f, f.value(invited.Role, err), doorward.RoleAdmin)
	after, err := f.Read().User(ctx, acme.ID, ann.ID)
	equal(f, f.value(after.Role, err), doorward.RoleViewer)
}

// models: the version with the highest number is in force for all tenants, and each number is
// given once.
func models(f *fixture) {
	ctx := f.Context()
	f.SetCompiler(func(s store.RulesSource) (*doorward.Rules, error) {
		m, err := doorward.NewModel([]doorward.PlatformAction{{Name: doorward.Action(s.Model), Lowest: doorward.RoleUser}})
		return doorward.NewRules(s.Version, m, s.Roles), err
	})
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	knows := func(a doorward.Action) bool {
		user, err := f.Read().User(ctx, acme.ID, ann.ID)
		noError(f, err)
		none, err := f.Read().Rules(ctx, "")
		equal(f, f.value(none.Model().IsPermission(a), err), user.Rules.Model().IsPermission(a))
		return user.Rules.Model().IsPermission(a)
	}
	_, err := f.Read().Model(ctx)
	equal(f, errors.Is(err, store.ErrNone), true)
	equal(f, knows(doorward.MessageSend), true)
	first := store.ModelVersion{Version: 1, Text: "invoice.read", CreatedAt: f.clock.read(), CreatedBy: "key_1"}
	second := store.ModelVersion{Version: 2, Text: "invoice.pay", CreatedAt: f.clock.read()}
	for _, v := range []store.ModelVersion{first, second} {
		changes, err := f.Write(ctx, func(tx *store.Tx) error {
			added, err := tx.InsertModel(ctx, v)
			equal(f, f.value(added, err), true)
			return nil
		})
		equal(f, f.value(changes[0].Kind, err), store.ChangeAll)
		equal(f, []bool{knows(doorward.Action(v.Text)), knows(doorward.MessageSend)}, []bool{true, false})
		got, err := f.Read().Model(ctx)
		equal(f, f.value(got, err), v)
	}
	f.write(func(tx *store.Tx) {
		noError(f, tx.LockModel(ctx))
		added, err := tx.InsertModel(ctx, second)
		equal(f, f.value(added, err), false)
	})
	all, err := f.Read().ModelVersions(ctx)
	equal(f, f.value(all, err), []store.ModelVersion{first, second})
	before, err := f.Read().RulesVersion(ctx, acme.ID)
	noError(f, err)
	f.write(func(tx *store.Tx) {
		_, err := tx.InsertCustomRole(ctx, acme.ID, doorward.CustomRole{ID: f.id("rol_"), Name: "PAYER", Permissions: []doorward.Action{"invoice.pay"}})
		noError(f, err)
	})
	after, err := f.Read().RulesVersion(ctx, acme.ID)
	equal(f, f.value(after.Model == before.Model && after.Tenant != before.Tenant, err), true)
	current, err := f.Read().Rules(ctx, acme.ID)
	equal(f, f.value(current.Grant("PAYER").Rank, err), doorward.RoleUser)
}
