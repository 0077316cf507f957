package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
)

func accountFields(a *doorward.Account) []any {
	return []any{&a.ID, &a.Email, &a.PasswordHash, (*storedTime)(&a.CreatedAt), &a.Locale, &a.Generation, &a.Factors, &a.ManagedBy}
}

const selectAccount = `SELECT id, email, password_hash, created_at, locale, credential_generation, factors, managed_by FROM users `

const sqlAccountByEmail = selectAccount + `WHERE email = $1`

// AccountByEmail returns the account of a canonical address, or ErrNone.
func (r Reader) AccountByEmail(ctx context.Context, email string) (doorward.Account, error) {
	return one(ctx, r, accountFields, sqlAccountByEmail, email)
}

const sqlAccount = selectAccount + `WHERE id = $1`

// Account returns the account, or ErrNone.
func (r Reader) Account(ctx context.Context, id string) (doorward.Account, error) {
	return one(ctx, r, accountFields, sqlAccount, id)
}

const sqlInsertAccount = `INSERT INTO users (id, email, password_hash, created_at, locale, managed_by)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (email) DO NOTHING`

// InsertAccount adds the account and reports whether its address was free.
func (tx *Tx) InsertAccount(ctx context.Context, a doorward.Account) (bool, error) {
	return tx.affected(ctx, sqlInsertAccount, a.ID, a.Email, a.PasswordHash, micros(a.CreatedAt), a.Locale, a.ManagedBy)
}

const sqlLockAccountIfSamePassword = `UPDATE users SET revision = revision + 1
WHERE id = $1 AND (password_hash = $2 OR credential_generation = $3)`

// LockAccountIfSamePassword serializes actions on a user's sessions until the transaction ends,
// and reports whether the account still has the password with which verified was read. If not, open
// no session. Another hash of the same generation is of the same password: it was only replaced
// because its parameters were outdated.
func (tx *Tx) LockAccountIfSamePassword(ctx context.Context, verified doorward.Account) (bool, error) {
	return tx.affected(ctx, sqlLockAccountIfSamePassword, verified.ID, verified.PasswordHash, verified.Generation)
}

const sqlLockAccount = `UPDATE users SET revision = revision + 1 WHERE id = $1`

// LockAccount is LockAccountIfSamePassword for any password, and reports whether the
// account exists.
func (tx *Tx) LockAccount(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlLockAccount, id)
}

const sqlSetPassword = `UPDATE users SET password_hash = $1, revision = revision + 1,
  managed_until_sign_on = CASE WHEN managed_by = '' THEN managed_until_sign_on ELSE managed_by END, managed_by = ''
WHERE id = $2 AND password_hash = $3`

// SetPassword replaces the password hash, and reports whether the account still had oldHash. A managed
// account is managed no longer: see User.ManagedUntil. What was made while it was stays with the caller.
func (tx *Tx) SetPassword(ctx context.Context, id, oldHash, newHash string) (bool, error) {
	if oldHash == "" { // what sessions of the account must prove has changed
		tx.announce(ChangeUser, id)
	}
	return tx.affected(ctx, sqlSetPassword, newHash, id, oldHash)
}

func userFields(u *doorward.User) []any {
	return append([]any{
		&u.ID, &u.Email, &u.Name, &u.Role, &u.Status, (*words)(&u.SuspendedBy), &u.TenantID, &u.TenantName, &u.TenantStatus,
		(*storedTime)(&u.CreatedAt),
		nullableTime{&u.LastLoginAt},
		&u.Factors, &u.Passkeys, &u.DisabledPasskeys, &u.DisabledApps, &u.HasPassword, &u.ManagedBy, &u.ManagedUntil,
	}, rulesFields(&u.Rules)...)
}

// Few accounts have disabled factors, so these are counted here and not kept in a column of the
// account, as the others are.
const userColumns = `u.id, u.email, m.name, m.role, m.status, m.suspended_by, t.id, t.name, t.status, m.created_at, m.last_login_at, u.factors, u.passkeys,
  CASE WHEN u.passkeys = 0 THEN 0 ELSE (SELECT count(*) FROM factors f WHERE f.user_id = u.id AND f.disabled_at IS NOT NULL AND f.kind = 'passkey') END,
  CASE WHEN u.passkeys = u.factors THEN 0 ELSE (SELECT count(*) FROM factors f WHERE f.user_id = u.id AND f.disabled_at IS NOT NULL AND f.kind <> 'passkey') END,
  u.password_hash <> '', u.managed_by, u.managed_until_sign_on, ` + rulesColumns

// selectUser is the head of every query for users; userFields takes its columns.
const selectUser = `SELECT ` + userColumns + `
FROM memberships m JOIN users u ON u.id = m.user_id JOIN tenants t ON t.id = m.tenant_id `

const sqlUser = selectUser + `WHERE m.tenant_id = $1 AND m.user_id = $2`

// User returns the user as a member of the tenant, or ErrNone.
func (r Reader) User(ctx context.Context, tenantID, userID string) (doorward.User, error) {
	return one(ctx, r, userFields, sqlUser, tenantID, userID)
}

const sqlUserByEmail = selectUser + `WHERE m.tenant_id = $1 AND u.email = $2`

// UserByEmail returns the member of the tenant with the canonical address, or
// ErrNone.
func (r Reader) UserByEmail(ctx context.Context, tenantID, email string) (doorward.User, error) {
	return one(ctx, r, userFields, sqlUserByEmail, tenantID, email)
}

const sqlMemberships = selectUser + `WHERE m.user_id = $1 ORDER BY m.created_at, t.id`

// Memberships returns the user in every tenant, the oldest membership first.
func (r Reader) Memberships(ctx context.Context, userID string) ([]doorward.User, error) {
	return list(ctx, r, userFields, sqlMemberships, userID)
}

// UserFilter selects members; empty fields select all.
type UserFilter struct {
	Role   doorward.Role
	Status doorward.UserStatus
	Factor string // WithFactor or WithoutFactor
	Text   string // words of the address or the name, without regard to case and accents
}

// Values of UserFilter.Factor: members who have a second factor, or have none.
const (
	WithFactor    = "any"
	WithoutFactor = "none"
)

var userPages = newPages(listing[doorward.User]{
	// Outer joins find the same rows. With inner ones SQLite would begin with the few rows of
	// tenants, and sort all members.
	head:  strings.ReplaceAll(selectUser, "JOIN", "LEFT JOIN"),
	count: `FROM memberships m `,
	where: `WHERE m.tenant_id = $1
  AND ($2 = '' OR m.role = $2) AND ($3 = '' OR m.status = $3)
  AND ($4 = '' OR EXISTS (SELECT 1 FROM users f WHERE f.id = m.user_id AND (f.factors = 0) = ($4 = 'none')))
` + contains("m.search", 5),
	args:   4 + maxWords,
	fields: userFields,
	id:     "m.user_id",
	idOf:   func(u doorward.User) string { return u.ID },
	orders: []order[doorward.User]{
		{name: "createdAt", column: "m.created_at", number: func(u doorward.User) int64 { return micros(u.CreatedAt) }},
		{name: "name", column: "m.name_key", key: func(u doorward.User) string { return fold.Key(u.Name) }},
		{name: "email", column: "m.email_key", key: func(u doorward.User) string { return fold.Key(u.Email) }},
		{name: "role", column: rankOf("m.role"), number: func(u doorward.User) int64 { return rank(u.Role) }},
		{name: "status", column: `CASE m.status WHEN 'active' THEN 0 ELSE 1 END`, number: func(u doorward.User) int64 {
			if u.Status == doorward.UserActive {
				return 0
			}
			return 1
		}},
		{name: "lastLoginAt", column: "coalesce(m.last_login_at, 0)", number: func(u doorward.User) int64 { return microsOrNone(u.LastLoginAt) }},
	},
	defaultOrder: "createdAt",
})

// rankOf is an expression for the rank of the role in a column; custom roles have 0.
func rankOf(column string) string {
	text := "CASE " + column
	for _, role := range doorward.Roles {
		text += fmt.Sprintf(" WHEN '%s' THEN %d", role, rank(role))
	}
	return text + " ELSE 0 END"
}

func rank(role doorward.Role) int64 { return int64(slices.Index(doorward.Roles, role) + 1) }

// UserPage returns members of the tenant, usually the oldest membership first. Errors:
// validation_failed, for an unknown order.
func (r Reader) UserPage(ctx context.Context, tenantID string, f UserFilter, w doorward.Window) (doorward.Page[doorward.User], error) {
	return userPages.read(ctx, r, w, append([]any{tenantID, string(f.Role), string(f.Status), f.Factor}, searchArgs(f.Text)...)...)
}

// Browsers that another tenant, or an earlier membership, remembers don't count in the new one.
const sqlInsertMembership = `INSERT INTO memberships (tenant_id, user_id, role, status, name, search, created_at, name_key, email_key, forgotten_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (tenant_id, user_id) DO NOTHING`

// InsertMembership adds u to its tenant, and reports false if u is a member already.
func (tx *Tx) InsertMembership(ctx context.Context, u doorward.User) (bool, error) {
	tx.Effects.Roles = append(tx.Effects.Roles, doorward.RoleEffect{After: activeRole(u)})
	return tx.affected(ctx, sqlInsertMembership, u.TenantID, u.ID, u.Role, u.Status, u.Name, searchable(u.Email, u.Name), micros(u.CreatedAt),
		fold.Key(u.Name), fold.Key(u.Email), micros(tx.Now)-1)
}

const sqlStrictestStepUp = `SELECT COALESCE(min(CASE WHEN t.step_up_minutes = 0 THEN $2 ELSE t.step_up_minutes END), $2)
FROM memberships m JOIN tenants t ON t.id = m.tenant_id WHERE m.user_id = $1 AND m.status = 'active' AND t.status = 'active'`

// StrictestProofAge returns the smallest age that a proof of the user may have in the active tenants of
// which they are an active member; the default where there is none.
func (r Reader) StrictestProofAge(ctx context.Context, userID string) (time.Duration, error) {
	minutes, err := one(ctx, r, countColumn, sqlStrictestStepUp, userID, int64(doorward.DefaultStepUp/time.Minute))
	return time.Duration(minutes) * time.Minute, err
}

const sqlRecordLogin = `UPDATE memberships SET last_login_at = $1 WHERE tenant_id = $2 AND user_id = $3 AND status = 'active'`

// RecordLogin records a login and reports whether the membership is active; it
// locks the membership until the transaction ends.
func (tx *Tx) RecordLogin(ctx context.Context, tenantID, userID string) (bool, error) {
	return tx.affected(ctx, sqlRecordLogin, micros(tx.Now), tenantID, userID)
}

const sqlSignedInBefore = `SELECT (SELECT count(*) FROM memberships WHERE user_id = $1 AND last_login_at IS NOT NULL)
  + (SELECT count(*) FROM devices WHERE user_id = $1)`

// SignedInBefore reports whether the user has signed in before: to a current
// membership, or with a known browser.
func (r Reader) SignedInBefore(ctx context.Context, userID string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlSignedInBefore, userID)
	return n > 0, err
}

const sqlSetUserStatus = `UPDATE memberships SET status = $3, suspended_by = $4 WHERE tenant_id = $1 AND user_id = $2 AND (status <> $3 OR suspended_by <> $4)`

// SetUserStatus sets the status of a member, without a reason (User.Suspensions), and reports whether that changed
// anything. A suspension ends the tenant's word for a reset of the person's factors.
func (tx *Tx) SetUserStatus(ctx context.Context, tenantID, userID string, status doorward.UserStatus) (bool, error) {
	return tx.setStatus(ctx, tenantID, userID, status, nil)
}

// SetSuspensions suspends a member for the reasons, in place of those that there were; with none it makes the member
// active. It reports whether that changed anything. The caller has locked the tenant, or another change of the reasons
// could be lost.
func (tx *Tx) SetSuspensions(ctx context.Context, tenantID, userID string, reasons []string) (bool, error) {
	status := doorward.UserActive
	if len(reasons) > 0 {
		status = doorward.UserSuspended
	}
	return tx.setStatus(ctx, tenantID, userID, status, reasons)
}

func (tx *Tx) setStatus(ctx context.Context, tenantID, userID string, status doorward.UserStatus, reasons []string) (bool, error) {
	if status != doorward.UserActive {
		if err := tx.run(ctx, sqlDeleteFactorWord, tenantID, userID); err != nil {
			return false, err
		}
	}
	return tx.changeMembership(ctx, tenantID, userID, sqlSetUserStatus, status, joined(reasons, plainText))
}

const sqlSetUserRole = `UPDATE memberships SET role = $3 WHERE tenant_id = $1 AND user_id = $2 AND role <> $3`

// SetUserRole sets the role of a member, and reports whether that changed it.
func (tx *Tx) SetUserRole(ctx context.Context, tenantID, userID string, role doorward.Role) (bool, error) {
	return tx.changeMembership(ctx, tenantID, userID, sqlSetUserRole, role)
}

// changeMembership announces a change of a membership, makes it, and notes its effect. values are the arguments of the
// query after the ids.
func (tx *Tx) changeMembership(ctx context.Context, tenantID, userID, query string, values ...any) (bool, error) {
	tx.announce(ChangeUser, userID)
	before, err := tx.User(ctx, tenantID, userID)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	changed, err := tx.affected(ctx, query, append([]any{tenantID, userID}, values...)...)
	if err != nil || !changed {
		return changed, err
	}
	after, err := tx.User(ctx, tenantID, userID)
	tx.Effects.Roles = append(tx.Effects.Roles, doorward.RoleEffect{Before: activeRole(before), After: activeRole(after)})
	tx.noteOwner(tenantID, activeRole(before), activeRole(after))
	return changed, err
}

// activeRole returns the role of a member who may use it.
func activeRole(u doorward.User) doorward.Role {
	if u.Status != doorward.UserActive {
		return ""
	}
	return u.Role
}

const sqlRenameUser = `UPDATE memberships SET name = $1, search = $2, name_key = $3 WHERE tenant_id = $4 AND user_id = $5`

// RenameUser changes the member's name in its tenant.
func (tx *Tx) RenameUser(ctx context.Context, u doorward.User, name string) error {
	return tx.run(ctx, sqlRenameUser, name, searchable(u.Email, name), fold.Key(name), u.TenantID, u.ID)
}

const sqlDeleteMembership = `DELETE FROM memberships WHERE tenant_id = $1 AND user_id = $2`

// DeleteMembership removes the user from the tenant, and from the groups of its directories. It reports whether it was
// a member.
func (tx *Tx) DeleteMembership(ctx context.Context, tenantID, userID string) (bool, error) {
	tx.announce(ChangeUser, userID)
	before, err := tx.User(ctx, tenantID, userID)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	tx.noteOwner(tenantID, activeRole(before), "")
	if err := tx.removePlacesOf(ctx, tenantID, userID); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlDeleteMembership, tenantID, userID)
}

const sqlCountActiveMembers = `SELECT count(*) FROM memberships WHERE tenant_id = $1 AND status = 'active'`

// CountActiveMembers counts the active members of the tenant.
func (r Reader) CountActiveMembers(ctx context.Context, tenantID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountActiveMembers, tenantID)
}

const sqlCountActiveOwners = `SELECT count(*) FROM memberships WHERE tenant_id = $1 AND role = 'OWNER' AND status = 'active'`

// CountActiveOwners counts active OWNERs. The count is right only under LockTenant.
func (r Reader) CountActiveOwners(ctx context.Context, tenantID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountActiveOwners, tenantID)
}

const sqlExpireStrandedResets = `UPDATE resets SET expires_at = created_at WHERE used_at IS NULL AND expires_at > $1
AND user_id IN (SELECT m.user_id FROM memberships m WHERE m.tenant_id = $2)
AND NOT EXISTS (SELECT 1 FROM memberships m JOIN tenants t ON t.id = m.tenant_id
  WHERE m.user_id = resets.user_id AND m.status = 'active' AND t.status = 'active')`

// ExpireStrandedResets ends the open resets of the tenant's members who can't sign
// in to any tenant.
func (tx *Tx) ExpireStrandedResets(ctx context.Context, tenantID string) error {
	return tx.run(ctx, sqlExpireStrandedResets, micros(tx.Now), tenantID)
}

const sqlCountActiveMemberships = `SELECT count(*) FROM memberships WHERE user_id = $1 AND status = 'active'`

// CountActiveMemberships counts the tenants in which the user is active.
func (r Reader) CountActiveMemberships(ctx context.Context, userID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountActiveMemberships, userID)
}

func countColumn(n *int) []any { return []any{n} }
