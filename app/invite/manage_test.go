package invite_test

import (
	"fmt"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/role"
)

// TestRevokeOrAccept: of a concurrent revocation and acceptance one succeeds, and
// the other gets an error.
func TestRevokeOrAccept(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for round := range apptest.Rounds(20, 60) {
			inv, token := f.Invite(owner, fmt.Sprintf("new%d@example.com", round), doorward.RoleUser)
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					return f.Node(round).Invitations.Revoke(f.Context(), owner.Caller, inv.ID)
				}
				_, err := f.Node(round+i).Invitations.Complete(f.Context(), apptest.Anonymous(i), token, apptest.FirstPassword, apptest.FirstPassword)
				return err
			})
			wantOneOf(f, errs, inv, doorward.InvitationRevoked, doorward.InvitationAccepted)
		}
	})
}

// TestResendOrAccept: of a concurrent resend and acceptance with the previous mail
// one succeeds, and the other gets an error.
func TestResendOrAccept(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for round := range apptest.Rounds(20, 60) {
			inv, token := f.Invite(owner, fmt.Sprintf("new%d@example.com", round), doorward.RoleUser)
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					_, err := f.Node(round).Invitations.Resend(f.Context(), owner.Caller, inv.ID)
					return err
				}
				_, err := f.Node(round+i).Invitations.Complete(f.Context(), apptest.Anonymous(i), token, apptest.FirstPassword, apptest.FirstPassword)
				return err
			})
			wantOneOf(f, errs, inv, doorward.InvitationPending, doorward.InvitationAccepted)
		}
	})
}

// wantOneOf fails unless exactly one of the administrator's action and the acceptance
// succeeded and the invitation has the matching state.
func wantOneOf(f *apptest.Fixture, errs []error, inv doorward.Invitation, administered, accepted doorward.InvitationState) {
	f.Helper()
	current, err := f.DB.Read().Invitation(f.Context(), inv.ID)
	f.NoError(err)
	switch {
	case errs[0] == nil && apptest.Code(errs[1]) == doorward.CodeInvitationRevoked && current.State == administered:
	case errs[1] == nil && apptest.Code(errs[0]) == doorward.CodeInvitationNotPending && current.State == accepted:
	default:
		f.Fatalf("the action ended with %v, the acceptance with %v, and the invitation is %s", errs[0], errs[1], current.State)
	}
}

// hookPolicy is a policy that forbids nothing and calls hook when it is first asked: after a
// feature has read its object, before it has locked the tenant.
type hookPolicy struct {
	doorward.PrincipalPolicies
	hook func()
}

func (p *hookPolicy) DependsOnRequest(doorward.Action) bool { return false }

func (p *hookPolicy) Observes() bool { return false }

func (p *hookPolicy) Refusal(doorward.Action, *doorward.Request) *doorward.PolicyRefusal {
	hook := p.hook
	p.hook = func() {}
	hook()
	return nil
}

// TestInvitationsAreDecidedUnderTheLock: an invitation whose role was deleted in favour of
// a higher one, between reading it and locking the tenant, can't be changed by an ADMIN.
func TestInvitationsAreDecidedUnderTheLock(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		admin := f.Join(owner, doorward.RoleAdmin)
		for name, act := range map[string]func(doorward.Caller, string) error{
			"resend": func(by doorward.Caller, id string) error {
				_, err := f.Node(0).Invitations.Resend(f.Context(), by, id)
				return err
			},
			"revoke": func(by doorward.Caller, id string) error { return f.Node(0).Invitations.Revoke(f.Context(), by, id) },
		} {
			made, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "DESK", Permissions: []string{"message.read"}})
			f.NoError(err)
			owner.Rules, err = f.DB.Read().Rules(f.Context(), owner.User.TenantID)
			f.NoError(err)
			inv, _ := f.Invite(owner, f.NewEmail("later"), "DESK")
			by, wasCalled := admin.Caller, false
			by.Policy = &hookPolicy{hook: func() {
				wasCalled = true
				_, err := f.Node(1).Roles.Delete(f.Context(), owner.Caller, made.ID, doorward.RoleOwner)
				f.NoError(err)
			}}
			if err := act(by, inv.ID); !wasCalled || !doorward.HasCode(err, doorward.CodeForbidden) {
				t.Errorf("%s: %v, want forbidden; the policy was asked: %v", name, err, wasCalled)
			}
			current, err := f.DB.Read().Invitation(f.Context(), inv.ID)
			f.NoError(err)
			if current.State != doorward.InvitationPending || current.Role != doorward.RoleOwner || !current.ExpiresAt.Equal(inv.ExpiresAt) {
				t.Errorf("%s: the invitation is %+v", name, current)
			}
		}
	})
}

// TestRaisedRoleIsNotGiven: an ADMIN can't invite to a role whose rank was raised since the
// first decision, neither one person nor several.
func TestRaisedRoleIsNotGiven(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		admin := f.Join(owner, doorward.RoleAdmin)
		made, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "DESK", Permissions: []string{"message.read"}})
		f.NoError(err)
		for name, send := range map[string]func(doorward.Caller) error{
			"one": func(by doorward.Caller) error {
				return apptest.ErrorOf(f.Node(0).Invitations.Send(f.Context(), by, apptest.Offer("one@example.com", "DESK")))
			},
			"many": func(by doorward.Caller) error {
				return apptest.ErrorOf(f.Node(0).Invitations.SendAll(f.Context(), by, []invite.Offer{apptest.Offer("two@example.com", "DESK"), apptest.Offer("three@example.com", "USER")}))
			},
		} {
			set := func(permissions ...string) {
				_, _, err := f.Node(1).Roles.Edit(f.Context(), owner.Caller, made.ID, role.Edit{Permissions: &permissions})
				f.NoError(err)
			}
			set("message.read")
			by := admin.Caller
			by.Rules, err = f.DB.Read().Rules(f.Context(), owner.User.TenantID)
			f.NoError(err)
			by.Policy = &hookPolicy{hook: func() { set("tenant.destroy") }}
			if err := send(by); !doorward.HasCode(err, doorward.CodeForbidden) {
				t.Errorf("%s: %v, want forbidden", name, err)
			}
		}
		if n := f.Int("SELECT count(*) FROM invitations WHERE state = 'PENDING'"); n > 0 {
			t.Errorf("%d are invited", n)
		}
	})
}
