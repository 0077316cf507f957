package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

func ssoPolicyFields(p *doorward.SSOPolicy) []any {
	return []any{
		&p.TenantID, &p.Mode, &p.GuestsRefused, &p.Revision, (*storedTime)(&p.ChangedAt), nullableTime{&p.ConfirmBy}, &p.BeforeMode, &p.BeforeGuestsRefused,
	}
}

const (
	ssoPolicyColumns = `p.tenant_id, p.mode, p.guests = 'refused', p.revision, p.changed_at, p.confirm_by, p.before_mode, p.before_guests = 'refused'`
	selectSSOPolicy  = `SELECT ` + ssoPolicyColumns + ` FROM sso_policies p `
	sqlSSOPolicy     = selectSSOPolicy + `WHERE p.tenant_id = $1`
)

// SSOPolicy returns what the tenant demands of sign-on at an instant: the mode off where it has never said
// so. Within a transaction pass its Now.
func (r Reader) SSOPolicy(ctx context.Context, tenantID string, now time.Time) (doorward.SSOPolicy, error) {
	p, err := one(ctx, r, ssoPolicyFields, sqlSSOPolicy, tenantID)
	if errors.Is(err, ErrNone) {
		return doorward.SSOPolicy{TenantID: tenantID, Mode: doorward.SSOOff}, nil
	}
	return p.At(now), err
}

const sqlSSOIsUsed = `SELECT count(*) FROM (SELECT p.tenant_id FROM sso_policies p WHERE p.mode <> 'off' OR p.before_mode NOT IN ('', 'off') LIMIT 1) used`

// SSOIsUsed reports whether connections of any tenant sign people in, or may do so again soon.
func (r Reader) SSOIsUsed(ctx context.Context) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlSSOIsUsed)
	return n > 0, err
}

const sqlOverdueSSOPolicies = selectSSOPolicy + `WHERE p.confirm_by <= $1 LIMIT $2`

// OverdueSSOPolicies returns the tenants, at most limit, whose provisional change has not been confirmed
// in time, and whose return is still to be written.
func (r Reader) OverdueSSOPolicies(ctx context.Context, now time.Time, limit int) ([]doorward.SSOPolicy, error) {
	return list(ctx, r, ssoPolicyFields, sqlOverdueSSOPolicies, micros(now), limit)
}

const sqlOverdueSSOPolicy = selectSSOPolicy + `WHERE p.tenant_id = $1 AND p.confirm_by <= $2`

// OverdueSSOPolicy returns the tenant's provisional change if its return is still to be written, or ErrNone.
func (r Reader) OverdueSSOPolicy(ctx context.Context, tenantID string, now time.Time) (doorward.SSOPolicy, error) {
	return one(ctx, r, ssoPolicyFields, sqlOverdueSSOPolicy, tenantID, micros(now))
}

const sqlSetSSOPolicy = `INSERT INTO sso_policies (tenant_id, mode, guests, revision, changed_at, confirm_by, before_mode, before_guests)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id) DO UPDATE SET mode = excluded.mode, guests = excluded.guests, revision = excluded.revision, changed_at = excluded.changed_at,
  confirm_by = excluded.confirm_by, before_mode = excluded.before_mode, before_guests = excluded.before_guests`

// SetSSOPolicy writes what the tenant demands of sign-on. The caller has locked the tenant. Nodes read its
// sessions again, for doorward.Session.SignOnUntil.
func (tx *Tx) SetSSOPolicy(ctx context.Context, p doorward.SSOPolicy) error {
	tx.announce(ChangeTenant, p.TenantID)
	before := doorward.SSOPolicy{GuestsRefused: p.BeforeGuestsRefused}
	return tx.run(ctx, sqlSetSSOPolicy, p.TenantID, p.Mode, p.Guests(), p.Revision, micros(p.ChangedAt), nullableMicros(p.ConfirmBy), p.BeforeMode, before.Guests())
}

const sqlLockTenantOfSignOn = `UPDATE tenants SET revision = revision + 1 WHERE id = $1
AND EXISTS (SELECT 1 FROM connections c WHERE c.tenant_id = tenants.id)`

// LockTenantOfSignOn is LockTenant for a tenant that has a connection; others can demand no sign-on. With it a
// sign-in and a change of the demand wait for each other.
func (tx *Tx) LockTenantOfSignOn(ctx context.Context, id string) error {
	return tx.run(ctx, sqlLockTenantOfSignOn, id)
}

const sqlConnectionIsActive = `SELECT count(*) FROM connections WHERE id = $1 AND tenant_id = $2 AND status = 'active' AND type <> 'scim'`

// ConnectionIsActive reports whether the tenant has the connection, and it is active.
func (r Reader) ConnectionIsActive(ctx context.Context, id, tenantID string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlConnectionIsActive, id, tenantID)
	return n > 0, err
}

// Conditions and columns about a member m with the account u.
const (
	// An address without the characters of domains at its end is what stands before its domain. Both are in
	// canonical form: A-labels in lower case.
	isAddressIn = `u.email = rtrim(u.email, 'abcdefghijklmnopqrstuvwxyz0123456789-.') || d.domain`

	domainsOfMember = `FROM domains d LEFT JOIN connections c ON c.id = d.connection_id AND c.status = 'active' AND c.type <> 'scim'
  LEFT JOIN former_domains o ON o.tenant_id = d.tenant_id AND o.user_id = m.user_id AND o.domain = d.domain
  WHERE d.tenant_id = m.tenant_id AND d.status <> 'pending' AND `
	domainOfMember = domainsOfMember + isAddressIn
	// An address may have left several.
	formerDomainOfMember = domainsOfMember + `o.domain IS NOT NULL ORDER BY o.left_at DESC, d.id LIMIT 1`

	identityOfMember = `FROM identities i JOIN connections c ON c.id = i.connection_id AND c.status = 'active'
  WHERE i.user_id = m.user_id AND i.tenant_id = m.tenant_id`
	isCovered = `(EXISTS (SELECT 1 ` + domainsOfMember + `(` + isAddressIn + ` OR o.domain IS NOT NULL)) OR EXISTS (SELECT 1 ` + identityOfMember + `))`
	// OWNERs by name: they alone always have sso.manage, to take a demand back. A custom role may have the rank of
	// OWNER and not that permission. An account that a tenant manages has no password, and its passkeys are second factors.
	hasWayBack = `(m.role = 'OWNER' AND m.status = 'active' AND u.managed_by = '' AND u.managed_until_sign_on <> m.tenant_id AND EXISTS (
  SELECT 1 FROM factors f WHERE f.user_id = u.id AND f.confirmed_at IS NOT NULL AND f.disabled_at IS NULL AND (f.kind = 'passkey' OR u.password_hash <> '')))`
)

const selectSSOMember = `SELECT m.user_id, u.email, m.role,
  COALESCE((SELECT d.status ` + domainOfMember + `), (SELECT d.status ` + formerDomainOfMember + `), ''),
  COALESCE((SELECT c.id ` + domainOfMember + `), (SELECT c.id ` + formerDomainOfMember + `), ''),
  COALESCE((SELECT i.connection_id ` + identityOfMember + ` ORDER BY i.last_used_at DESC, i.id LIMIT 1), ''),
  COALESCE((SELECT max(i.last_used_at) ` + identityOfMember + `), 0), ` + hasWayBack + `
FROM memberships m JOIN users u ON u.id = m.user_id `

func ssoMemberFields(m *doorward.SSOMember) []any {
	return []any{&m.UserID, &m.Email, &m.Role, &m.Domain, &m.HomeID, &m.IdentityID, optionalTime{&m.IdentityUsedAt}, &m.HasWayBack}
}

const (
	sqlSSOMember  = selectSSOMember + `WHERE m.tenant_id = $1 AND m.user_id = $2`
	sqlSSOMembers = selectSSOMember + `WHERE m.tenant_id = $1 AND m.status = 'active' AND m.user_id > $2 ORDER BY m.user_id LIMIT $3`
)

// SSOMember returns what the tenant's demand for sign-on reads of a member, or ErrNone.
func (r Reader) SSOMember(ctx context.Context, tenantID, userID string) (doorward.SSOMember, error) {
	return one(ctx, r, ssoMemberFields, sqlSSOMember, tenantID, userID)
}

// SSOMembers returns the tenant's active members with greater ids than after, in the order of their ids, at most limit.
func (r Reader) SSOMembers(ctx context.Context, tenantID, after string, limit int) ([]doorward.SSOMember, error) {
	return list(ctx, r, ssoMemberFields, sqlSSOMembers, tenantID, after, limit)
}

const sqlSSOBasis = `SELECT (SELECT count(*) FROM connections WHERE tenant_id = $1 AND status = 'active' AND type <> 'scim'),
  (SELECT count(*) FROM domains d JOIN connections c ON c.id = d.connection_id AND c.status = 'active' AND c.type <> 'scim' WHERE d.tenant_id = $1 AND d.status = 'verified'),
  (SELECT count(*) FROM domains d JOIN connections c ON c.id = d.connection_id AND c.status = 'active' AND c.type <> 'scim' WHERE d.tenant_id = $1 AND d.status <> 'pending'),
  (SELECT count(*) FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.tenant_id = $1 AND ` + hasWayBack + `)`

// SSOBasis returns what the tenant has of what a demand for sign-on needs. It is right only under LockTenant.
func (r Reader) SSOBasis(ctx context.Context, tenantID string) (doorward.SSOBasis, error) {
	fields := func(b *doorward.SSOBasis) []any { return []any{&b.Connections, &b.Proved, &b.Held, &b.WaysBack} }
	return one(ctx, r, fields, sqlSSOBasis, tenantID)
}

const sqlSSODefaultHome = `SELECT c.id FROM connections c WHERE c.tenant_id = $1 AND c.status = 'active' AND c.type <> 'scim'
AND EXISTS (SELECT 1 FROM domains d WHERE d.connection_id = c.id AND d.status <> 'pending') ORDER BY c.created_at, c.id LIMIT 1`

// SSODefaultHome returns the oldest active connection of the tenant that has a domain, for members of
// whom nothing says by which one they sign in, or ErrNone.
func (r Reader) SSODefaultHome(ctx context.Context, tenantID string) (string, error) {
	return one(ctx, r, textField, sqlSSODefaultHome, tenantID)
}

const sqlSSOHome = `SELECT c.id, c.name, ` + ssoPolicyColumns + `
FROM domains d JOIN connections c ON c.id = d.connection_id AND c.status = 'active' AND c.type <> 'scim' JOIN sso_policies p ON p.tenant_id = d.tenant_id
WHERE d.domain = $1 AND d.status = 'verified'`

// SSOHome returns the active connection of a proved domain, with the policy of its tenant at now, or ErrNone.
func (r Reader) SSOHome(ctx context.Context, domain string, now time.Time) (doorward.SSOHome, error) {
	fields := func(h *doorward.SSOHome) []any {
		return append([]any{&h.ConnectionID, &h.ConnectionName}, ssoPolicyFields(&h.Policy)...)
	}
	h, err := one(ctx, r, fields, sqlSSOHome, domain)
	h.Policy = h.Policy.At(now)
	return h, err
}

const sqlDeleteSignOnSessions = `DELETE FROM sessions WHERE tenant_id = $5 AND issuer <> '' RETURNING NOT ` + expired

// DeleteSignOnSessions ends the tenant's sessions that connections vouch for, and returns how many had not
// expired.
func (tx *Tx) DeleteSignOnSessions(ctx context.Context, life SessionLifetime, tenantID string) (int64, error) {
	tx.announce(ChangeTenant, tenantID)
	return tx.endSessions(ctx, life, sqlDeleteSignOnSessions, tenantID)
}

const sqlDeleteShutOutSessions = `DELETE FROM sessions WHERE tenant_id = $5 AND issuer = '' AND ($6 OR user_id IN (
  SELECT m.user_id FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.tenant_id = $5 AND ` + isCovered + `)) RETURNING NOT ` + expired

// DeleteShutOutSessions ends the sessions in the tenant that Doorward vouches for: those of covered members,
// and with guests those of all. It returns how many had not expired.
func (tx *Tx) DeleteShutOutSessions(ctx context.Context, life SessionLifetime, tenantID string, guests bool) (int64, error) {
	tx.announce(ChangeTenant, tenantID)
	return tx.endSessions(ctx, life, sqlDeleteShutOutSessions, tenantID, guests)
}

const sqlTenantsOwned = `SELECT m.tenant_id FROM memberships m WHERE m.user_id = $1 AND m.role = 'OWNER' AND m.status = 'active'
AND EXISTS (SELECT 1 FROM connections c WHERE c.tenant_id = m.tenant_id)`

// noteFactorLost notes that the account loses a factor, where it is an OWNER of a tenant that has connections.
func (tx *Tx) noteFactorLost(ctx context.Context, userID string) error {
	tenants, err := list(ctx, tx.Reader, textField, sqlTenantsOwned, userID)
	tx.Effects.WaysBack = append(tx.Effects.WaysBack, tenants...)
	return err
}

// noteOwner notes that somebody is no longer an active OWNER.
func (tx *Tx) noteOwner(tenantID string, before, after doorward.Role) {
	if before == doorward.RoleOwner && after != doorward.RoleOwner {
		tx.Effects.WaysBack = append(tx.Effects.WaysBack, tenantID)
	}
}

const sqlHomeLost = `SELECT c.tenant_id FROM connections c WHERE c.id = $1 AND c.status = 'active'
AND EXISTS (SELECT 1 FROM domains d WHERE d.connection_id = c.id AND d.status <> 'pending')`

// noteHomeLost notes that the connection will be active no longer, if people of a domain sign in by it.
func (tx *Tx) noteHomeLost(ctx context.Context, connectionID string) error {
	tenants, err := list(ctx, tx.Reader, textField, sqlHomeLost, connectionID)
	tx.Effects.HomesLost = append(tx.Effects.HomesLost, tenants...)
	return err
}

// noteDomain notes that a domain is taken away, or given to another connection.
func (tx *Tx) noteDomain(ctx context.Context, id string) error {
	d, err := tx.Domain(ctx, id)
	if errors.Is(err, ErrNone) {
		return nil
	}
	if d.Status != doorward.DomainPending {
		tx.Effects.SignOn = append(tx.Effects.SignOn, d.TenantID)
	}
	return err
}
