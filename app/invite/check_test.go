package invite_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/tenant"
)

// A check says of each offer what sending says afterwards, and leaves nothing behind.
func TestCheckIsAsSending(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		_, owner := f.Tenant()
		admin, member := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser)
		_, err := f.Node(0).Tenants.Edit(ctx, owner.Caller, tenant.Edit{Settings: map[string]any{"allowedEmailDomains": []string{"example.com"}}})
		f.NoError(err)
		_, err = f.Node(0).Invitations.Send(ctx, owner.Caller, apptest.Offer("open@example.com", "USER"))
		f.NoError(err)
		offers := []invite.Offer{
			apptest.Offer("new@example.com", "USER"), apptest.Offer(member.User.Email, "USER"), apptest.Offer("open@example.com", "USER"),
			apptest.Offer("new@elsewhere.example", "USER"), apptest.Offer("owner2@example.com", "OWNER"), apptest.Offer("new@example.com", "USER"),
			apptest.Offer("nobody", "USER"), apptest.Offer("x@example.com", "NONE"),
		}
		before := f.RowsWithoutNodes()
		checked, err := f.Node(0).Invitations.CheckAll(ctx, admin.Caller, offers)
		f.NoError(err)
		if after := f.RowsWithoutNodes(); !slices.Equal(before, after) {
			t.Errorf("a check has written: %q, before %q", after, before)
		}
		sent, err := f.Node(0).Invitations.SendAll(ctx, admin.Caller, offers)
		f.NoError(err)
		for n, s := range sent {
			if apptest.Code(checked[n]) != apptest.Code(s.Err) || (n == 0) != (checked[n] == nil) {
				t.Errorf("%s: the check says %v, sending %v", offers[n].Email, checked[n], s.Err)
			}
		}
	})
}
