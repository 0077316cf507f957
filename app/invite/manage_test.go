package invite_test

import (
	"fmt"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
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
			oneOf(f, errs, inv, doorward.InvitationRevoked, doorward.InvitationAccepted)
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
			oneOf(f, errs, inv, doorward.InvitationPending, doorward.InvitationAccepted)
		}
	})
}

// oneOf fails unless exactly one of the administrator's action and the acceptance
// succeeded and the invitation has the matching state.
func oneOf(f *apptest.Fixture, errs []error, inv doorward.Invitation, administered, accepted doorward.InvitationState) {
	f.Helper()
	now, err := f.DB.Read().Invitation(f.Context(), inv.ID)
	f.NoError(err)
	switch {
	case errs[0] == nil && apptest.Code(errs[1]) == doorward.CodeInvitationRevoked && now.State == administered:
	case errs[1] == nil && apptest.Code(errs[0]) == doorward.CodeInvitationNotPending && now.State == accepted:
	default:
		f.Fatalf("the action ended with %v, the acceptance with %v, and the invitation is %s", errs[0], errs[1], now.State)
	}
}
