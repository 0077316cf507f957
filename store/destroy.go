package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// A destruction that has begun (closed_at is 0) goes on whatever happens to the
// tenant. A frozen one is not destroyed: the operator may need what is in it.
const due = `(t.closed_at = 0 OR t.status = 'closing' AND t.destroy_at <= $1)`

const sqlTenantsDue = selectTenant + `WHERE t.closed_at IS NOT NULL AND ` + due + ` ORDER BY t.destroy_at, t.id`

// TenantsDue returns the tenants whose data is to be destroyed by now.
func (r Reader) TenantsDue(ctx context.Context, now time.Time) ([]doorward.Tenant, error) {
	return list(ctx, r, tenantColumns, sqlTenantsDue, micros(now))
}

const sqlTenantsClosed = selectTenant + `WHERE t.closed_at IS NOT NULL ORDER BY t.destroy_at, t.id LIMIT $1`

// TenantsClosed returns so many of the tenants that are closed, frozen ones too,
// the one that is destroyed first at the front.
func (r Reader) TenantsClosed(ctx context.Context, limit int) ([]doorward.Tenant, error) {
	return list(ctx, r, tenantColumns, sqlTenantsClosed, limit)
}

// What nodes of the version before leave behind: a closing without an end, and the
// end of a closing that was taken back.
const (
	sqlPromise  = `UPDATE tenants SET destroy_at = closed_at + $1 WHERE closed_at > 0 AND destroy_at IS NULL`
	sqlReleased = `UPDATE tenants SET destroy_at = NULL WHERE destroy_at IS NOT NULL AND closed_at IS NULL`
)

// PromiseHold fixes the end of closings that have none, a hold after they began.
func (tx *Tx) PromiseHold(ctx context.Context, hold time.Duration) error {
	if err := tx.run(ctx, sqlPromise, hold.Microseconds()); err != nil {
		return err
	}
	return tx.run(ctx, sqlReleased)
}

const sqlForsakeTenant = `UPDATE tenants SET closed_at = 0, destroy_at = 0
WHERE id = $2 AND EXISTS (SELECT 1 FROM tenants t WHERE t.id = tenants.id AND t.closed_at IS NOT NULL AND ` + due + `)`

// MarkDestroyed makes the closing of a tenant one that can't be taken back, as
// if it had been closed in 1970, and reports whether its data is to be destroyed
// by now. To be called under LockTenant.
func (tx *Tx) MarkDestroyed(ctx context.Context, id string) (bool, error) {
	return tx.hit(ctx, sqlForsakeTenant, micros(tx.Now), id)
}

const sqlCountMemberships = `SELECT count(*) FROM memberships WHERE user_id = $1`

// CountMemberships counts the tenants that the user is in, suspended or not.
func (r Reader) CountMemberships(ctx context.Context, userID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountMemberships, userID)
}

// What there is of a person besides memberships, in an order that leaves no row
// without the one it refers to. Invitations that the person sent elsewhere stay
// as a record, with nobody's name; those that are pending have expired long ago,
// or they would have been revoked with the membership, and now say so.
const (
	sqlForgetInviter = `UPDATE invitations SET invited_by = NULL, state = CASE WHEN state = 'PENDING' THEN 'EXPIRED' ELSE state END
WHERE invited_by = $1`

	sqlDeleteOwnSessions = `DELETE FROM sessions WHERE user_id = $1`
	sqlDeleteResetTokens = `DELETE FROM link_tokens WHERE subject_id IN (SELECT id FROM resets WHERE user_id = $1)`
	sqlDeleteResets      = `DELETE FROM resets WHERE user_id = $1`
	sqlDeleteDevices     = `DELETE FROM devices WHERE user_id = $1`
	sqlDeleteAccount     = `DELETE FROM users WHERE id = $1`
	sqlDeleteMailsTo     = `DELETE FROM mails WHERE recipient = $1`
	sqlDeleteInboxOf     = `DELETE FROM inbox WHERE email = $1 OR source = $2`
)

// DeleteAccount deletes an account that is in no tenant any more, and all that
// there is of it outside of the audit trail.
func (tx *Tx) DeleteAccount(ctx context.Context, a doorward.Account) error {
	tx.announce(ChangeUser, a.ID)
	for _, query := range []string{sqlDeleteOwnSessions, sqlDeleteResetTokens, sqlDeleteResets, sqlDeleteDevices, sqlForgetInviter, sqlDeleteAccount} {
		if err := tx.run(ctx, query, a.ID); err != nil {
			return err
		}
	}
	if err := tx.DeleteCounters(ctx, a); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlDeleteInboxOf, a.Email, a.ID); err != nil {
		return err
	}
	return tx.run(ctx, sqlDeleteMailsTo, a.Email)
}

// DeleteCounters deletes the counters that are named after the account.
func (tx *Tx) DeleteCounters(ctx context.Context, a doorward.Account) error {
	for _, bucket := range []string{"account:" + a.Email, "forgot:" + a.Email, "newcomers:" + a.ID, "devices:" + a.ID} {
		if err := tx.ClearThrottle(ctx, bucket); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlDeleteInvitationTokens = `DELETE FROM link_tokens WHERE subject_id IN (SELECT id FROM invitations WHERE tenant_id = $1)`
	sqlDeleteInvitationMails  = `DELETE FROM mails WHERE subject_id IN (SELECT id FROM invitations WHERE tenant_id = $1)`
	sqlDeleteEventMails       = `DELETE FROM mails WHERE subject_id IN (SELECT id FROM events WHERE tenant_id = $1)`
	sqlDeleteInvitations      = `DELETE FROM invitations WHERE tenant_id = $1`
	sqlDeleteResends          = `DELETE FROM throttles WHERE substr(bucket, 1, $2) = $1`
	sqlDeleteTenant           = `DELETE FROM tenants WHERE id = $1`
)

// DeleteInvitations deletes the tenant's invitations and the mails about the
// tenant.
func (tx *Tx) DeleteInvitations(ctx context.Context, tenantID string) error {
	for _, query := range []string{sqlDeleteInvitationTokens, sqlDeleteInvitationMails, sqlDeleteEventMails, sqlDeleteInvitations} {
		if err := tx.run(ctx, query, tenantID); err != nil {
			return err
		}
	}
	resends := "resend:" + tenantID + ":"
	return tx.run(ctx, sqlDeleteResends, resends, len(resends))
}

// DeleteTenant deletes the row of a tenant of which nothing else is left, and
// reports whether it was there.
func (tx *Tx) DeleteTenant(ctx context.Context, id string) (bool, error) {
	tx.announce(ChangeTenant, id)
	return tx.hit(ctx, sqlDeleteTenant, id)
}
