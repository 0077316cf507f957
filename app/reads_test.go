package app_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
)

// TestReadsThatDecide: what counts, previews or plans decides by itself, since it writes nothing
// through access.Do. An OWNER may; a USER, who has few permissions, may not; for the OWNER of
// another tenant the object isn't there.
func TestReadsThatDecide(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, stranger := f.Tenant()
		few, bob := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		node, ctx, name := f.Node(0), f.Context(), "SHOP"
		desk, err := node.Roles.Create(ctx, owner.Caller, role.Draft{Name: "DESK", Permissions: []string{"message.read"}})
		f.NoError(err)
		for _, read := range []struct {
			name  string
			do    func(by doorward.Caller) error
			names bool // an object in the tenant
			want  doorward.Code
		}{
			{"count of what a suspension ends", func(by doorward.Caller) error {
				return apptest.ErrorOf(node.Overviews.CountAffected(ctx, by, bob.User))
			}, true, ""},
			{"count of what closing ends", func(by doorward.Caller) error { return apptest.ErrorOf(node.Overviews.CountAllAffected(ctx, by)) }, false, ""},
			{"preview of a demand", func(by doorward.Caller) error {
				return apptest.ErrorOf(node.Tenants.PreviewDemand(ctx, by, tenant.Edit{}))
			}, false, ""},
			{"logo that is no picture", func(by doorward.Caller) error {
				return apptest.ErrorOf(node.Tenants.SetLogo(ctx, by, []byte("x"), nil))
			}, false, doorward.CodeLogoRefused},
			{"list by second factor", func(by doorward.Caller) error {
				return apptest.ErrorOf(node.Users.List(ctx, by, user.Filter{Factor: "none"}, doorward.Window{Limit: 1}))
			}, false, ""},
			{"dry run of an edit", func(by doorward.Caller) error {
				_, _, err := node.Users.Edit(ctx, by, bob.User, user.Edit{DryRun: true})
				return err
			}, true, ""},
			{"dry run of a removal", func(by doorward.Caller) error {
				return apptest.ErrorOf(node.Users.TryRemove(ctx, by, bob.User, user.Handover{}, nil))
			}, true, ""},
			{"count of second factors", func(by doorward.Caller) error { return apptest.ErrorOf(node.Factors.CountMembers(ctx, by)) }, false, ""},
			{"sessions of a member", func(by doorward.Caller) error { return apptest.ErrorOf(node.Sessions.Of(ctx, by, bob.User)) }, true, ""},
			{"plan of a role", func(by doorward.Caller) error {
				return apptest.ErrorOf(node.Roles.Plan(ctx, by, desk.ID, role.Edit{Name: &name}))
			}, true, ""},
			{"one of several invitations", func(by doorward.Caller) error {
				sent, err := node.Invitations.SendAll(ctx, by, []invite.Offer{apptest.Offer("new@example.com", doorward.RoleUser)})
				f.NoError(err)
				return sent[0].Err
			}, false, ""},
		} {
			if got := apptest.Code(read.do(few.Caller)); got != doorward.CodeForbidden {
				t.Errorf("%s by a USER: %q, want forbidden", read.name, got)
			}
			if got := apptest.Code(read.do(stranger.Caller)); read.names && got != doorward.CodeNotFound {
				t.Errorf("%s by another tenant's OWNER: %q, want not_found", read.name, got)
			}
			if got := apptest.Code(read.do(owner.Caller)); got != read.want {
				t.Errorf("%s by the OWNER: %q, want %q", read.name, got, read.want)
			}
		}
		got, err := node.Overviews.Of(ctx, few.Caller, 1)
		f.NoError(err)
		if got.People != 3 || got.Pending != 0 || got.Changes != 0 || len(got.SignIns) > 0 {
			t.Errorf("a USER's overview has more than people: %+v", got)
		}
		if all, err := node.Overviews.Of(ctx, owner.Caller, 1); err != nil || all.Pending != 1 || all.Changes == 0 || len(all.SignIns) == 0 {
			t.Errorf("the OWNER's overview: %+v, %v", all, err)
		}
	})
}
