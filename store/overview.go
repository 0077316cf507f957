package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// MemberCount is how many members of a tenant have a role and a status.
type MemberCount struct {
	Role   doorward.Role
	Status doorward.UserStatus
	People int64
}

const sqlCountMembers = `SELECT role, status, count(*) FROM memberships WHERE tenant_id = $1 GROUP BY role, status`

// CountMembers counts the members of the tenant, in no order.
func (r Reader) CountMembers(ctx context.Context, tenantID string) ([]MemberCount, error) {
	fields := func(c *MemberCount) []any { return []any{&c.Role, &c.Status, &c.People} }
	return list(ctx, r, fields, sqlCountMembers, tenantID)
}

// PendingInvitations counts invitations that can be accepted.
type PendingInvitations struct {
	Pending int64
	Failed  int64 // those of them whose newest mail could not be delivered
}

const sqlCountPendingInvitations = `SELECT count(*), coalesce(sum(CASE WHEN 'failed' =
  (SELECT x.state FROM mails x WHERE x.subject_id = i.id ORDER BY x.created_at DESC, x.id DESC LIMIT 1) THEN 1 ELSE 0 END), 0)
FROM invitations i WHERE i.tenant_id = $1 AND i.state = 'PENDING' AND i.expires_at > $2`

// CountPendingInvitations counts the tenant's invitations that can be accepted at now.
func (r Reader) CountPendingInvitations(ctx context.Context, tenantID string, now time.Time) (PendingInvitations, error) {
	fields := func(w *PendingInvitations) []any { return []any{&w.Pending, &w.Failed} }
	return one(ctx, r, fields, sqlCountPendingInvitations, tenantID, micros(now))
}

const sqlLastInvitationFault = `SELECT m.last_error FROM invitations i JOIN mails m ON m.subject_id = i.id
WHERE i.tenant_id = $1 AND i.state = 'PENDING' AND i.expires_at > $2 AND m.state = 'failed'
  AND m.id = (SELECT x.id FROM mails x WHERE x.subject_id = i.id ORDER BY x.created_at DESC, x.id DESC LIMIT 1)
ORDER BY m.created_at DESC LIMIT 1`

// LastInvitationFault returns why the newest of the mails that PendingInvitations.Failed counts could not be delivered,
// or ErrNone.
func (r Reader) LastInvitationFault(ctx context.Context, tenantID string, now time.Time) (string, error) {
	return one(ctx, r, func(fault *string) []any { return []any{fault} }, sqlLastInvitationFault, tenantID, micros(now))
}

const sqlCountInvitationsBy = `SELECT count(*) FROM invitations
WHERE tenant_id = $1 AND invited_by = $2 AND state = 'PENDING' AND expires_at > $3`

// CountInvitationsBy counts the invitations that the user sent in the tenant and that can be
// accepted at now.
func (r Reader) CountInvitationsBy(ctx context.Context, tenantID, userID string, now time.Time) (int64, error) {
	n, err := one(ctx, r, countColumn, sqlCountInvitationsBy, tenantID, userID, micros(now))
	return int64(n), err
}

// The condition expired uses $1 to $4, see SessionLifetime.args.
const sqlCountMemberSessions = `SELECT count(*) FROM sessions WHERE tenant_id = $5 AND user_id = $6 AND NOT ` + expired

// CountMemberSessions counts the user's sessions in the tenant that have not expired at now.
func (r Reader) CountMemberSessions(ctx context.Context, life SessionLifetime, tenantID, userID string, now time.Time) (int64, error) {
	n, err := one(ctx, r, countColumn, sqlCountMemberSessions, life.args(now, tenantID, userID)...)
	return int64(n), err
}

const sqlCountTenantSessions = `SELECT count(*) FROM sessions WHERE tenant_id = $5 AND NOT ` + expired

// CountTenantSessions counts the sessions in the tenant that have not expired at now.
func (r Reader) CountTenantSessions(ctx context.Context, life SessionLifetime, tenantID string, now time.Time) (int64, error) {
	n, err := one(ctx, r, countColumn, sqlCountTenantSessions, life.args(now, tenantID)...)
	return int64(n), err
}

// FactorCoverage is how many active members of a role have a second factor.
type FactorCoverage struct {
	Role         doorward.Role
	People, With int64
}

const sqlFactorCoverage = `SELECT m.role, count(*), sum(CASE WHEN u.factors > 0 THEN 1 ELSE 0 END)
FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.tenant_id = $1 AND m.status = 'active' GROUP BY m.role`

// FactorCoverage counts the active members of the tenant, and those with a second factor, by role, in no order.
func (r Reader) FactorCoverage(ctx context.Context, tenantID string) ([]FactorCoverage, error) {
	fields := func(c *FactorCoverage) []any { return []any{&c.Role, &c.People, &c.With} }
	return list(ctx, r, fields, sqlFactorCoverage, tenantID)
}
