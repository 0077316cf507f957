package invite

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Filter selects invitations, as typed; empty fields select all.
type Filter struct {
	State    string // as it is now
	Delivery string // of the newest mail
	Role     string
	Text     string // words of the address or the name
}

// List returns invitations of the caller's tenant, the newest first. Errors:
// validation_failed.
func (i *Invitations) List(ctx context.Context, by doorward.Caller, f Filter, w doorward.Window) (doorward.Page[doorward.Invitation], error) {
	chosen := store.InvitationFilter{State: doorward.InvitationState(f.State), Delivery: doorward.Delivery(f.Delivery), Role: doorward.Role(f.Role), Text: f.Text}
	var faults []doorward.FieldError
	if f.State != "" && !slices.Contains(states, chosen.State) {
		faults = append(faults, doorward.FieldError{Parameter: "status", Code: "invalid", Message: "An invitation is PENDING, ACCEPTED, REVOKED or EXPIRED, in capitals."})
	}
	if f.Delivery != "" && !slices.Contains(deliveries, chosen.Delivery) {
		faults = append(faults, doorward.FieldError{Parameter: "delivery", Code: "invalid", Message: "The mail of an invitation is queued, sent or failed."})
	}
	if f.Role != "" && !by.Rules.Has(chosen.Role) {
		faults = append(faults, doorward.FieldError{Parameter: "role", Code: "invalid", Message: by.Rules.RolesHelp()})
	}
	if len(faults) > 0 {
		return doorward.Page[doorward.Invitation]{}, doorward.InvalidFields(faults...)
	}
	return i.db.Read().InvitationPage(ctx, by.TenantID, chosen, i.db.Now(), w)
}

// The values that a Filter may have.
var (
	states     = []doorward.InvitationState{doorward.InvitationPending, doorward.InvitationAccepted, doorward.InvitationRevoked, doorward.InvitationExpired}
	deliveries = []doorward.Delivery{doorward.DeliveryQueued, doorward.DeliverySent, doorward.DeliveryFailed}
)

// Get returns an invitation of the caller's tenant. Errors: not_found.
func (i *Invitations) Get(ctx context.Context, by doorward.Caller, id string) (doorward.Invitation, error) {
	return findInTenant(ctx, i.db.Read(), by, id)
}

func findInTenant(ctx context.Context, read store.Reader, by doorward.Caller, id string) (doorward.Invitation, error) {
	inv, err := read.Invitation(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && inv.TenantID != by.TenantID {
		return doorward.Invitation{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return inv, err
}

// Revoke withdraws a pending invitation. Errors: not_found, forbidden when its
// role outranks the caller's, invitation_not_pending.
func (i *Invitations) Revoke(ctx context.Context, by doorward.Caller, id string) error {
	inv, err := i.Get(ctx, by, id)
	if err != nil {
		return err
	}
	_, err = i.change(ctx, by, doorward.InvitationRevoke, inv, func(tx *access.Tx) error {
		revoked, err := tx.RevokeInvitation(ctx, id)
		if err == nil && !revoked {
			err = doorward.Fail(doorward.CodeInvitationNotPending, "")
		}
		tx.Changed("status", string(doorward.InvitationPending), string(doorward.InvitationRevoked))
		return err
	})
	return err
}

// change decides and runs write, as access.Writer.Do does, but decides again on the invitation
// as it is under the lock on the tenant: by then it may have a higher role.
func (i *Invitations) change(ctx context.Context, by doorward.Caller, action doorward.Action, inv doorward.Invitation, write func(*access.Tx) error) (doorward.Revocation, error) {
	return i.writer.DoAll(ctx, by, access.Operation{
		Action: action, On: object(inv), Write: write,
		ReadObject: func(tx *store.Tx) (doorward.Object, error) {
			current, err := findInTenant(ctx, tx.Reader, by, inv.ID)
			return object(current), err
		},
	})
}

// maxResends is how many mails of a tenant's invitations an address gets in resendWindow
// besides the first one, to prevent harassment. store.Tx.DeleteInvitations deletes
// the counters by their common prefix.
const (
	maxResends   = 5
	resendWindow = 24 * time.Hour
)

// Resend sends the mail of a pending invitation again, with a new token: earlier
// tokens become invalid, and the invitation gets its full validity again. Errors:
// not_found, forbidden when its role outranks the caller's or the tenant no longer allows
// the domain, invitation_not_pending, resend_too_soon.
func (i *Invitations) Resend(ctx context.Context, by doorward.Caller, id string) (doorward.Invitation, error) {
	inv, err := i.Get(ctx, by, id)
	if err != nil {
		return inv, err
	}
	_, err = i.change(ctx, by, doorward.InvitationResend, inv, func(tx *access.Tx) error {
		inv, err = findInTenant(ctx, tx.Reader, by, id)
		if err != nil {
			return err
		}
		if inv.StateAt(tx.Now) != doorward.InvitationPending {
			return doorward.Fail(doorward.CodeInvitationNotPending, "")
		}
		if err := i.checkResend(ctx, tx, inv); err != nil {
			return err
		}
		if err := renew(ctx, tx, &inv); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, inv)
	})
	return inv, err
}

func (i *Invitations) checkResend(ctx context.Context, tx *access.Tx, inv doorward.Invitation) error {
	last, err := tx.LastMail(ctx, inv.ID)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	if wait := last.Add(time.Duration(i.wait.Load())).Sub(tx.Now); wait > 0 {
		return tooSoon(wait, "The last mail of this invitation was sent a moment ago.")
	}
	return countResend(ctx, tx, inv)
}

// countFurtherInvitation counts a further invitation to an address on one day as a resend:
// otherwise somebody could fill a mailbox by inviting and revoking in turn. There is no wait
// after the last mail: revoking and inviting again is how an invitation gets another role.
func countFurtherInvitation(ctx context.Context, tx *access.Tx, inv doorward.Invitation) error {
	t, err := tx.HitThrottle(ctx, "resend:"+inv.TenantID+":first:"+inv.Email, resendWindow)
	if err != nil || t.Hits == 1 {
		return err
	}
	return countResend(ctx, tx, inv)
}

func countResend(ctx context.Context, tx *access.Tx, inv doorward.Invitation) error {
	t, err := tx.HitThrottle(ctx, "resend:"+inv.TenantID+":"+inv.Email, resendWindow)
	if err == nil && t.Hits > maxResends {
		err = tooSoon(t.Since.Add(resendWindow).Sub(tx.Now), "No more invitation mails can be sent to this address today.")
	}
	return err
}

func tooSoon(wait time.Duration, why string) error {
	return &doorward.Error{Code: doorward.CodeResendTooSoon, Detail: why, RetryAfter: wait}
}

// renew renews the invitation, in the caller's name if the original inviter may no
// longer invite.
func renew(ctx context.Context, tx *access.Tx, inv *doorward.Invitation) error {
	tenant, err := tx.Tenant(ctx, inv.TenantID)
	if err != nil {
		return err
	}
	err = checkAuthorised(ctx, tx.Reader, *inv, tenant)
	if doorward.HasCode(err, doorward.CodeInvitationRevoked) {
		was := inviter(*inv)
		setInviter(inv, tx.By)
		tx.Changed("invitedBy", was, inviter(*inv))
		err = nil
	}
	if err != nil {
		return err
	}
	if !IsAllowed(tenant.Settings, inv.Email) {
		return doorward.Fail(doorward.CodeForbidden, "The settings of the tenant no longer allow addresses of this domain.")
	}
	was := inv.ExpiresAt
	inv.Days = min(inv.Days, tenant.Settings.MaxInvitationDays())
	inv.ExpiresAt, inv.Delivery = expiry(tx, *inv), doorward.DeliveryQueued
	tx.Changed("expiresAt", was.Format(time.RFC3339), inv.ExpiresAt.Format(time.RFC3339))
	renewed, err := tx.RenewInvitation(ctx, *inv)
	if err != nil {
		return err
	}
	if !renewed {
		return doorward.Fail(doorward.CodeInvitationNotPending, "")
	}
	if err := tx.RetireTokens(ctx, inv.ID); err != nil {
		return err
	}
	return tx.QueueMail(ctx, store.MailInvitation, inv.Email, inv.ID)
}
