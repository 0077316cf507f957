package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

// Factor is a factor with what its verification needs.
type Factor struct {
	doorward.Factor
	SeedSealed   []byte // of a TOTP
	LastStep     int64  // of the last code that was accepted
	CredentialID []byte // of a passkey
	Credential   []byte // of a passkey: its public key and what belongs to it
}

func factorFields(f *Factor) []any {
	return []any{
		&f.ID, &f.UserID, &f.Kind, &f.Name, (*storedTime)(&f.CreatedAt),
		nullableTime{&f.ConfirmedAt},
		nullableTime{&f.LastUsedAt},
		nullableTime{&f.DisabledAt},
		&f.Synced, &f.SeedSealed, &f.LastStep, &f.CredentialID, &f.Credential,
	}
}

const selectFactor = `SELECT id, user_id, kind, name, created_at, confirmed_at, last_used_at, disabled_at,
  synced, seed_sealed, last_step, credential_id, credential FROM factors `

const sqlFactors = selectFactor + `WHERE user_id = $1 ORDER BY created_at, id`

// IsLost reports whether nothing can verify its codes any more: the seed was sealed with a master key
// that was lost. Such a factor is disabled, too.
func (f Factor) IsLost() bool {
	return f.Kind == doorward.TOTP && f.ConfirmedAt != nil && len(f.SeedSealed) == 0
}

// Factors returns the factors of an account, the oldest first, with those that are being
// enrolled and those that are disabled.
func (r Reader) Factors(ctx context.Context, userID string) ([]Factor, error) {
	return list(ctx, r, factorFields, sqlFactors, userID)
}

const sqlFactorByCredential = selectFactor + `WHERE credential_id = $1`

// FactorByCredential returns the passkey with WebAuthn's id, or ErrNone.
func (r Reader) FactorByCredential(ctx context.Context, id []byte) (Factor, error) {
	return one(ctx, r, factorFields, sqlFactorByCredential, id)
}

const sqlInsertFactor = `INSERT INTO factors (id, user_id, kind, name, created_at, confirmed_at, seed_sealed, last_step, credential_id, credential, synced)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (credential_id) DO NOTHING`

// InsertFactor adds a factor, confirmed or not, and reports whether its credential was
// new. Call UpdateFactorCounts after a confirmed one.
func (tx *Tx) InsertFactor(ctx context.Context, f Factor) (bool, error) {
	return tx.affected(ctx, sqlInsertFactor, f.ID, f.UserID, f.Kind, f.Name, micros(f.CreatedAt), nullableMicros(f.ConfirmedAt),
		f.SeedSealed, f.LastStep, f.CredentialID, f.Credential, f.Synced)
}

const sqlConfirmFactor = `UPDATE factors SET confirmed_at = $3, last_used_at = $3, last_step = $4 WHERE id = $1 AND user_id = $2 AND confirmed_at IS NULL`

// ConfirmFactor completes the enrolment of a TOTP by its first code, and records the step of
// that code. It reports whether the TOTP was being enrolled. Call UpdateFactorCounts after it.
func (tx *Tx) ConfirmFactor(ctx context.Context, userID, id string, step int64) (bool, error) {
	return tx.affected(ctx, sqlConfirmFactor, id, userID, micros(tx.Now), step)
}

const sqlUseCode = `UPDATE factors SET last_step = $2, last_used_at = $3
WHERE id = $1 AND last_step < $2 AND confirmed_at IS NOT NULL AND disabled_at IS NULL`

// UseCode records the step of a code of a confirmed TOTP, and reports whether it is later than
// all recorded before: a code is accepted once, on one node. It reports false for a disabled
// TOTP.
func (tx *Tx) UseCode(ctx context.Context, id string, step int64) (bool, error) {
	return tx.affected(ctx, sqlUseCode, id, step, micros(tx.Now))
}

const sqlUsePasskey = `UPDATE factors SET credential = $3, synced = $4, last_used_at = $5
WHERE id = $1 AND credential = $2 AND disabled_at IS NULL`

// UsePasskey stores a passkey after its use, with its new counter. It reports false if the
// passkey was used or disabled after old was read: of concurrent uses, one succeeds.
func (tx *Tx) UsePasskey(ctx context.Context, old, updated Factor) (bool, error) {
	return tx.affected(ctx, sqlUsePasskey, old.ID, old.Credential, updated.Credential, updated.Synced, micros(tx.Now))
}

const sqlDisableFactor = `UPDATE factors SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL`

// DisableFactor disables the factor, and reports false if it was disabled already.
func (tx *Tx) DisableFactor(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDisableFactor, id, micros(tx.Now))
}

const (
	sqlDisableFactorsSince = `UPDATE factors SET disabled_at = $3 WHERE user_id = $1 AND confirmed_at >= $2 AND disabled_at IS NULL`
	sqlDeleteCodesSince    = `DELETE FROM recovery_codes WHERE user_id = $1 AND created_at >= $2`
)

// DisableFactorsSince disables the factors that were confirmed at the instant or later, and deletes
// the recovery codes that were made then. It returns how many. Call UpdateFactorCounts after it.
func (tx *Tx) DisableFactorsSince(ctx context.Context, userID string, since time.Time) (factors, codes int64, err error) {
	if factors, err = tx.exec(ctx, sqlDisableFactorsSince, userID, micros(since), micros(tx.Now)); err != nil {
		return 0, 0, err
	}
	codes, err = tx.exec(ctx, sqlDeleteCodesSince, userID, micros(since))
	return factors, codes, err
}

const sqlFactorOwner = `SELECT user_id FROM factors WHERE id = $1`

// FactorOwner returns the account that has the factor, or ErrNone.
func (r Reader) FactorOwner(ctx context.Context, id string) (string, error) {
	return one(ctx, r, func(s *string) []any { return []any{s} }, sqlFactorOwner, id)
}

const (
	sqlLoseSeed      = `UPDATE factors SET seed_sealed = NULL, disabled_at = COALESCE(disabled_at, $2) WHERE id = $1 AND confirmed_at IS NOT NULL`
	sqlLoseEnrolment = `DELETE FROM factors WHERE id = $1 AND confirmed_at IS NULL`
)

// LoseSeed disables a TOTP whose seed nothing can open any more, and reports whether it was confirmed; it
// goes on to count as a factor. One that was being enrolled is deleted. The account must be locked. Call
// UpdateFactorCounts after it.
func (tx *Tx) LoseSeed(ctx context.Context, id string) (bool, error) {
	lost, err := tx.affected(ctx, sqlLoseSeed, id, micros(tx.Now))
	if err != nil || lost {
		return lost, err
	}
	return false, tx.run(ctx, sqlLoseEnrolment, id)
}

const sqlRenameFactor = `UPDATE factors SET name = $3 WHERE id = $1 AND user_id = $2 AND confirmed_at IS NOT NULL`

// RenameFactor renames a confirmed factor, and reports whether the account has it.
func (tx *Tx) RenameFactor(ctx context.Context, userID, id, name string) (bool, error) {
	return tx.affected(ctx, sqlRenameFactor, id, userID, name)
}

const sqlDeleteFactor = `DELETE FROM factors WHERE id = $1 AND user_id = $2`

// DeleteFactor deletes a factor, and reports whether the account had it. Call UpdateFactorCounts
// after it.
func (tx *Tx) DeleteFactor(ctx context.Context, userID, id string) (bool, error) {
	if err := tx.noteFactorLost(ctx, userID); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlDeleteFactor, id, userID)
}

const sqlDeleteUnconfirmed = `DELETE FROM factors WHERE user_id = $1 AND confirmed_at IS NULL`

// DeleteUnconfirmedFactors ends all enrolments of the account.
func (tx *Tx) DeleteUnconfirmedFactors(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlDeleteUnconfirmed, userID)
}

// The condition is repeated outside, so that a factor that is confirmed at the same time stays.
const sqlDeleteOldEnrolments = `DELETE FROM factors WHERE confirmed_at IS NULL AND id IN (
  SELECT id FROM factors WHERE confirmed_at IS NULL AND created_at <= $1 ORDER BY created_at LIMIT $2)`

// DeleteOldEnrolments deletes factors that were created at an instant or before and never
// confirmed. It returns how many, at most limit.
func (tx *Tx) DeleteOldEnrolments(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldEnrolments, micros(until), limit)
}

const sqlDeleteFactors = `DELETE FROM factors WHERE user_id = $1`

// DeleteFactors deletes all factors and recovery codes of the account.
func (tx *Tx) DeleteFactors(ctx context.Context, userID string) error {
	if err := tx.noteFactorLost(ctx, userID); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlDeleteFactors, userID); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlDeleteRecoveryCodes, userID); err != nil {
		return err
	}
	return tx.UpdateFactorCounts(ctx, userID)
}

const sqlUpdateFactorCounts = `UPDATE users SET
  factors = (SELECT count(*) FROM factors f WHERE f.user_id = users.id AND f.confirmed_at IS NOT NULL),
  passkeys = (SELECT count(*) FROM factors f WHERE f.user_id = users.id AND f.confirmed_at IS NOT NULL AND f.kind = 'passkey')
WHERE id = $1`

// UpdateFactorCounts updates the numbers of factors in the account's row, and makes all nodes
// read its sessions again. A disabled factor counts: else the password alone would do for
// somebody who has copied a passkey.
func (tx *Tx) UpdateFactorCounts(ctx context.Context, userID string) error {
	tx.announce(ChangeUser, userID)
	return tx.run(ctx, sqlUpdateFactorCounts, userID)
}

// FactorTotals count the factors of the installation that can be used, and the accounts that
// have one. Apps are TOTPs.
type FactorTotals struct{ Apps, Passkeys, Accounts int }

const sqlCountFactors = `SELECT COALESCE(sum(CASE WHEN kind = 'totp' THEN 1 ELSE 0 END), 0), COALESCE(sum(CASE WHEN kind = 'passkey' THEN 1 ELSE 0 END), 0), count(DISTINCT user_id)
FROM factors WHERE confirmed_at IS NOT NULL AND disabled_at IS NULL`

func totalsFields(t *FactorTotals) []any { return []any{&t.Apps, &t.Passkeys, &t.Accounts} }

// CountFactors counts the factors. It reads all of them.
func (r Reader) CountFactors(ctx context.Context) (FactorTotals, error) {
	return one(ctx, r, totalsFields, sqlCountFactors)
}

const sqlFactorTotals = `SELECT apps, passkeys, accounts FROM factor_totals WHERE id = 1`

// FactorTotals returns what PutFactorTotals has written last; zero before.
func (r Reader) FactorTotals(ctx context.Context) (FactorTotals, error) {
	totals, err := one(ctx, r, totalsFields, sqlFactorTotals)
	if errors.Is(err, ErrNone) {
		return FactorTotals{}, nil
	}
	return totals, err
}

const sqlPutFactorTotals = `INSERT INTO factor_totals (id, apps, passkeys, accounts) VALUES (1, $1, $2, $3)
ON CONFLICT (id) DO UPDATE SET apps = $1, passkeys = $2, accounts = $3`

// PutFactorTotals writes what CountFactors has returned.
func (tx *Tx) PutFactorTotals(ctx context.Context, t FactorTotals) error {
	return tx.run(ctx, sqlPutFactorTotals, t.Apps, t.Passkeys, t.Accounts)
}

// FactorCount counts the members of a tenant, and those of them who have no factor.
type FactorCount struct{ People, WithoutFactor int }

const sqlCountMembersFactors = `SELECT count(*), COALESCE(sum(CASE WHEN u.factors = 0 THEN 1 ELSE 0 END), 0)
FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.tenant_id = $1`

// CountMembersFactors counts the members of a tenant by whether they have a factor.
func (r Reader) CountMembersFactors(ctx context.Context, tenantID string) (FactorCount, error) {
	fields := func(c *FactorCount) []any { return []any{&c.People, &c.WithoutFactor} }
	return one(ctx, r, fields, sqlCountMembersFactors, tenantID)
}

// RoleCount is a role and how many members have it.
type RoleCount struct {
	Role  doorward.Role
	Count int
}

// As in sqlDueMails, a list contains a role if removing it makes the text shorter.
const sqlCountWithoutFactor = `SELECT m.role, count(*) FROM memberships m JOIN users u ON u.id = m.user_id
WHERE m.tenant_id = $1 AND u.factors = 0 AND ($2 = '' OR replace($2, ' ' || m.role || ' ', '') <> $2) GROUP BY m.role`

// CountWithoutFactor counts the members of the roles, or of all if there are none, who have
// no second factor, by role.
func (r Reader) CountWithoutFactor(ctx context.Context, tenantID string, roles []doorward.Role) ([]RoleCount, error) {
	fields := func(c *RoleCount) []any { return []any{&c.Role, &c.Count} }
	return list(ctx, r, fields, sqlCountWithoutFactor, tenantID, roleList(roles))
}

const sqlMembersWithoutFactor = selectUser + `WHERE m.tenant_id = $1 AND u.factors = 0 AND ($2 = '' OR replace($2, ' ' || m.role || ' ', '') <> $2)
ORDER BY m.created_at, u.id LIMIT $3`

// MembersWithoutFactor returns those whom CountWithoutFactor counts, the oldest memberships
// first, at most limit.
func (r Reader) MembersWithoutFactor(ctx context.Context, tenantID string, roles []doorward.Role, limit int) ([]doorward.User, error) {
	return list(ctx, r, userFields, sqlMembersWithoutFactor, tenantID, roleList(roles), limit)
}

// FactorDemand is a tenant's demand for second factors of which members are still to be notified.
type FactorDemand struct {
	TenantID string
	EventID  string // of the change of the settings
	AfterID  string // the members up to this user id are notified; empty: none is
}

func factorDemandFields(d *FactorDemand) []any { return []any{&d.TenantID, &d.EventID, &d.AfterID} }

const (
	sqlAddFactorDemand = `INSERT INTO factor_demands (tenant_id, event_id, after_id) VALUES ($1, $2, '')
ON CONFLICT (tenant_id) DO UPDATE SET event_id = excluded.event_id, after_id = ''`
	sqlFactorDemands      = `SELECT tenant_id, event_id, after_id FROM factor_demands ORDER BY tenant_id LIMIT $1`
	sqlAdvanceDemand      = `UPDATE factor_demands SET after_id = $1 WHERE tenant_id = $2 AND event_id = $3 AND after_id = $4`
	sqlDeleteFactorDemand = `DELETE FROM factor_demands WHERE tenant_id = $1 AND event_id = $2 AND after_id = $3`
	sqlMembersToNotify    = selectUser + `WHERE m.tenant_id = $1 AND m.user_id > $2 ORDER BY m.user_id LIMIT $3`
)

// AddFactorDemand records that the members whom the tenant's demand concerns are to be notified of it.
// It replaces an earlier demand.
func (tx *Tx) AddFactorDemand(ctx context.Context, tenantID, eventID string) error {
	return tx.run(ctx, sqlAddFactorDemand, tenantID, eventID)
}

// FactorDemands returns demands of tenants, at most limit.
func (r Reader) FactorDemands(ctx context.Context, limit int) ([]FactorDemand, error) {
	return list(ctx, r, factorDemandFields, sqlFactorDemands, limit)
}

// TakeFactorDemand returns the next members of the tenant after d.AfterID, at most limit, and moves
// d.AfterID behind them; with the last ones it deletes the demand. It returns no members if another node
// has moved it, or it was replaced.
func (tx *Tx) TakeFactorDemand(ctx context.Context, d FactorDemand, limit int) ([]doorward.User, error) {
	members, err := list(ctx, tx.Reader, userFields, sqlMembersToNotify, d.TenantID, d.AfterID, limit)
	if err != nil {
		return nil, err
	}
	var isOurs bool
	if len(members) == limit {
		isOurs, err = tx.affected(ctx, sqlAdvanceDemand, members[limit-1].ID, d.TenantID, d.EventID, d.AfterID)
	} else {
		isOurs, err = tx.affected(ctx, sqlDeleteFactorDemand, d.TenantID, d.EventID, d.AfterID)
	}
	if !isOurs {
		return nil, err
	}
	return members, err
}

const (
	sqlDeleteRecoveryCodes = `DELETE FROM recovery_codes WHERE user_id = $1`
	sqlInsertRecoveryCode  = `INSERT INTO recovery_codes (hash, user_id, created_at) VALUES ($1, $2, $3)`
	sqlUseRecoveryCode     = `DELETE FROM recovery_codes WHERE hash = $1 AND user_id = $2`
	sqlCountRecoveryCodes  = `SELECT count(*) FROM recovery_codes WHERE user_id = $1`
)

// SetRecoveryCodes replaces the recovery codes of the account by those with the hashes.
func (tx *Tx) SetRecoveryCodes(ctx context.Context, userID string, hashes [][]byte) error {
	if err := tx.run(ctx, sqlDeleteRecoveryCodes, userID); err != nil {
		return err
	}
	for _, hash := range hashes {
		if err := tx.run(ctx, sqlInsertRecoveryCode, hash, userID, micros(tx.Now)); err != nil {
			return err
		}
	}
	return nil
}

// UseRecoveryCode deletes the code, which can be used once, and reports whether the account
// had it.
func (tx *Tx) UseRecoveryCode(ctx context.Context, userID string, hash []byte) (bool, error) {
	return tx.affected(ctx, sqlUseRecoveryCode, hash, userID)
}

// CountRecoveryCodes counts the codes that are left.
func (r Reader) CountRecoveryCodes(ctx context.Context, userID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountRecoveryCodes, userID)
}
