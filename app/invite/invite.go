// Package invite offers memberships and lets people accept them.
//
// An invitation belongs to an address. A new person registers and so creates the
// account; a person with an account accepts with a session or the password, which
// an invitation never changes. Either way a single conditional statement marks the
// invitation as used before anything else is written, and the inviter's authority
// is checked again at that moment.
package invite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/sealed"
	"github.com/doorward/doorward/store"
)

// Invitations is the feature. Make it with New.
type Invitations struct {
	writer   *access.Writer
	db       *store.DB
	verifier *proof.Verifier
	factors  *factor.Factors
	rules    *atomic.Pointer[proof.Rules]
	wait     atomic.Int64 // a time.Duration
	plans    *sealed.Texts
}

// New returns the feature. wait is the minimum time between two mails of an invitation.
func New(writer *access.Writer, db *store.DB, verifier *proof.Verifier, factors *factor.Factors, rules *atomic.Pointer[proof.Rules], wait time.Duration) *Invitations {
	i := &Invitations{writer: writer, db: db, verifier: verifier, factors: factors, rules: rules, plans: sealed.New(writer, "plans", "plans of invitations")}
	i.SetWait(wait)
	return i
}

// SetWait changes the minimum time between two mails of an invitation.
func (i *Invitations) SetWait(wait time.Duration) { i.wait.Store(int64(wait)) }

// Send invites a person to the caller's tenant and queues the mail. Errors:
// forbidden when the role outranks the caller's, step_up_required, invitation_pending
// (with invitationId), already_member, validation_failed, resend_too_soon, quota_exceeded.
func (i *Invitations) Send(ctx context.Context, by doorward.Caller, o Offer) (doorward.Invitation, error) {
	inv, faults := o.invitation(by)
	_, err := i.writer.Do(ctx, by, doorward.UserInvite, object(inv), func(tx *access.Tx) error {
		if err := send(ctx, tx, &inv, o, faults); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, inv)
	})
	return inv, err
}

// send checks the offer, parsed as inv and faults, against the database, before it
// writes anything except counters.
func send(ctx context.Context, tx *access.Tx, inv *doorward.Invitation, o Offer, faults []doorward.FieldError) error {
	if err := checkFree(ctx, tx, *inv); err != nil {
		return err
	}
	known, err := tx.HasRole(ctx, inv.TenantID, inv.Role) // may have been deleted since the request began
	if err != nil {
		return err
	}
	if inv.Role != "" && !known {
		faults = append(slices.Clone(faults), doorward.FieldError{Pointer: "/role", Code: "invalid", Message: tx.By.Rules.RolesHelp()})
	}
	tenant, err := tx.Tenant(ctx, inv.TenantID)
	if err != nil {
		return err
	}
	if all := slices.Concat(faults, o.violations(tenant.Settings, inv.Email)); len(all) > 0 {
		return doorward.InvalidFields(all...)
	}
	if err := countFurtherInvitation(ctx, tx, *inv); err != nil {
		return err
	}
	if err := checkQuota(ctx, tx, tenant); err != nil {
		return err
	}
	if err := tx.CheckEvents(ctx, tenant); err != nil {
		return err
	}
	inv.Days = o.days(tenant.Settings)
	setInviter(inv, tx.By) // the caller's API key may have got another owner since
	tx.Changed(doorward.FieldEmail, "", inv.Email)
	tx.Changed(doorward.FieldRole, "", string(inv.Role))
	inv.CreatedAt, inv.ExpiresAt = tx.Now.Add(-o.backdatedBy), expiry(tx, *inv).Add(-o.backdatedBy)
	return insert(ctx, tx, *inv)
}

// setInviter puts the invitation under the caller's authority.
func setInviter(inv *doorward.Invitation, by doorward.Caller) {
	inv.InvitedBy, inv.ServiceKeyID = by.UserID(), ""
	if by.Kind == doorward.ByService {
		inv.ServiceKeyID = by.ID
	}
}

// inviter returns the id that setInviter has set; empty for the operator.
func inviter(inv doorward.Invitation) string { return cmp.Or(inv.InvitedBy, inv.ServiceKeyID) }

func object(inv doorward.Invitation) doorward.Object {
	return doorward.Object{Type: "invitation", ID: inv.ID, TenantID: inv.TenantID, Granted: inv.Role}
}

// expiry returns when an invitation expires whose mail is sent now.
func expiry(tx *access.Tx, inv doorward.Invitation) time.Time {
	return tx.Now.Add(time.Duration(inv.Days) * 24 * time.Hour)
}

// checkQuota counts open invitations as people, so that the quota stops the one who
// invites and not the one who accepts.
func checkQuota(ctx context.Context, tx *access.Tx, t doorward.Tenant) error {
	if t.Quotas.People == nil {
		return nil
	}
	members, invited, err := tx.CountPeople(ctx, t.ID, tx.Now)
	if err != nil {
		return err
	}
	return t.Quotas.Check(doorward.QuotaPeople, members+invited+1)
}

// checkFree returns an error if the address has a membership, suspended or not, or
// a pending invitation.
func checkFree(ctx context.Context, tx *access.Tx, inv doorward.Invitation) error {
	_, err := tx.UserByEmail(ctx, inv.TenantID, inv.Email)
	if err == nil {
		return doorward.Fail(doorward.CodeAlreadyMember, "")
	}
	if !errors.Is(err, store.ErrNone) {
		return err
	}
	old, err := tx.PendingInvitation(ctx, inv.TenantID, inv.Email)
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil || old.StateAt(tx.Now) != doorward.InvitationPending {
		return err
	}
	return alreadyPending(old.ID)
}

func alreadyPending(id string) error {
	fail := doorward.Fail(doorward.CodeInvitationPending, "")
	fail.InvitationID = id
	return fail
}

func insert(ctx context.Context, tx *access.Tx, inv doorward.Invitation) error {
	if err := tx.RetireExpiredInvitation(ctx, inv.TenantID, inv.Email); err != nil {
		return err
	}
	added, err := tx.InsertInvitation(ctx, inv)
	if err != nil {
		return err
	}
	if !added { // a safeguard: under the lock on the tenant no other one can have been added
		return alreadyPending("")
	}
	return tx.QueueMail(ctx, store.MailInvitation, inv.Email, inv.ID)
}
