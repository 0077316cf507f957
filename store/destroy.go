package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// A destruction that has begun (closed_at is 0) always continues. A frozen tenant
// is not destroyed: the operator may need its data.
const destructionDue = `(t.closed_at = 0 OR t.status = 'closing' AND t.destroy_at <= $1)`

const sqlTenantsDue = selectTenant + `WHERE t.closed_at IS NOT NULL AND ` + destructionDue + ` ORDER BY t.destroy_at, t.id`

// TenantsDue returns the tenants whose data is to be destroyed at now.
func (r Reader) TenantsDue(ctx context.Context, now time.Time) ([]doorward.Tenant, error) {
	return list(ctx, r, tenantFields, sqlTenantsDue, micros(now))
}

const sqlTenantsClosed = selectTenant + `WHERE t.closed_at IS NOT NULL ORDER BY t.destroy_at, t.id LIMIT $1`

// TenantsClosed returns at most limit closed tenants, frozen ones too, in the
// order of their destruction.
func (r Reader) TenantsClosed(ctx context.Context, limit int) ([]doorward.Tenant, error) {
	return list(ctx, r, tenantFields, sqlTenantsClosed, limit)
}

const sqlMarkDestroyed = `UPDATE tenants SET closed_at = 0, destroy_at = 0
WHERE id = $2 AND EXISTS (SELECT 1 FROM tenants t WHERE t.id = tenants.id AND t.closed_at IS NOT NULL AND ` + destructionDue + `)`

// MarkDestroyed makes the closing of a tenant irreversible, by setting closed_at to 0,
// if its data is to be destroyed now, and reports whether it is. Call it under LockTenant.
func (tx *Tx) MarkDestroyed(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlMarkDestroyed, micros(tx.Now), id)
}

const sqlCountMemberships = `SELECT count(*) FROM memberships WHERE user_id = $1`

// CountMemberships counts the tenants that the user is in, suspended or not.
func (r Reader) CountMemberships(ctx context.Context, userID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountMemberships, userID)
}

// A person's rows besides memberships, in an order that respects references.
// Invitations that the person sent stay, without an inviter. Those that are pending must
// have expired, since the end of a membership revokes all others, and are marked as expired.
const (
	sqlForgetInviter = `UPDATE invitations SET invited_by = NULL, state = CASE WHEN state = 'PENDING' THEN 'EXPIRED' ELSE state END
WHERE invited_by = $1`

	sqlDeleteOwnSessions = `DELETE FROM sessions WHERE user_id = $1`
	sqlDeleteResetTokens = `DELETE FROM link_tokens WHERE subject_id IN (SELECT id FROM resets WHERE user_id = $1)`
	sqlDeleteResets      = `DELETE FROM resets WHERE user_id = $1`
	sqlDeleteDevices     = `DELETE FROM devices WHERE user_id = $1`
	sqlDeleteAccount     = `DELETE FROM users WHERE id = $1`

	sqlDeleteDecisionsOf = `DELETE FROM decisions WHERE actor_id = $1`
)

// DeleteAccount deletes an account that is in no tenant, with its rows outside of the audit
// trail. The invitations that it sent stay.
func (tx *Tx) DeleteAccount(ctx context.Context, a doorward.Account) error {
	tx.announce(ChangeUser, a.ID)
	if err := tx.DeleteEntriesAbout(ctx, a.ID); err != nil {
		return err
	}
	for _, query := range []string{
		sqlDeleteOwnSessions, sqlDeleteResetTokens, sqlDeleteResets, sqlDeleteEmailChangeTokens, sqlDeleteEmailChangeMails,
		sqlDeleteDevices, sqlForgetInviter, sqlDeleteDecisionsOf, sqlDeleteInboxBy, sqlDeleteCallsBy, sqlDeleteAccount,
	} {
		if err := tx.run(ctx, query, a.ID); err != nil {
			return err
		}
	}
	if err := tx.DeleteCounters(ctx, a); err != nil {
		return err
	}
	return tx.ForgetAddress(ctx, a.Email)
}

// DeleteCounters deletes the counters that are named after the account.
func (tx *Tx) DeleteCounters(ctx context.Context, a doorward.Account) error {
	for _, bucket := range []string{"account:" + a.Email, "forgot:" + a.Email, "newcomers:" + a.ID, "devices:" + a.ID, "change-email:" + a.ID, "codes:" + a.ID, "challenges:" + a.ID, "changes:" + a.ID} {
		if err := tx.ClearThrottle(ctx, bucket); err != nil {
			return err
		}
	}
	return nil
}

const (
	someInvitations           = `SELECT id FROM invitations WHERE tenant_id = $1 ORDER BY created_at, id LIMIT $2`
	sqlDeleteInvitationTokens = `DELETE FROM link_tokens WHERE subject_id IN (` + someInvitations + `)`
	sqlDeleteInvitationMails  = `DELETE FROM mails WHERE subject_id IN (` + someInvitations + `)`
	sqlDeleteInvitations      = `DELETE FROM invitations WHERE id IN (` + someInvitations + `)`
	sqlDeleteResends          = `DELETE FROM throttles WHERE substr(bucket, 1, $2) = $1`
	sqlDeleteTenant           = `DELETE FROM tenants WHERE id = $1`
)

// DeleteInvitations deletes up to limit invitations of a locked tenant with their links and
// mails, and with the last of them the counters of repeated mails. It returns the number
// deleted; fewer than limit means that nothing is left.
func (tx *Tx) DeleteInvitations(ctx context.Context, tenantID string, limit int) (int64, error) {
	for _, query := range []string{sqlDeleteInvitationTokens, sqlDeleteInvitationMails} {
		if err := tx.run(ctx, query, tenantID, limit); err != nil {
			return 0, err
		}
	}
	n, err := tx.exec(ctx, sqlDeleteInvitations, tenantID, limit)
	if err != nil || n == int64(limit) {
		return n, err
	}
	resends := "resend:" + tenantID + ":"
	return n, tx.run(ctx, sqlDeleteResends, resends, len(resends))
}

// DeleteTenant deletes the row of a tenant that has no other rows, and reports
// whether it existed.
func (tx *Tx) DeleteTenant(ctx context.Context, id string) (bool, error) {
	tx.announce(ChangeTenant, id)
	return tx.affected(ctx, sqlDeleteTenant, id)
}
