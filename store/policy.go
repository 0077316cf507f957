package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

// PolicyMode says what a policy does.
type PolicyMode string

// The modes.
const (
	PolicyEnforces PolicyMode = "enforce"
	PolicyObserves PolicyMode = "observe" // it refuses nothing, and counts what it would
)

// PolicyVersion is one version of a tenant's policies.
type PolicyVersion struct {
	TenantID string
	Version  int64  // from 1
	Text     string // Cedar; empty: no policies
	Mode     PolicyMode
	// ConfirmUntil is when the version ends that was confirmed by nobody; nil: it needs no
	// confirmation, or has it.
	ConfirmUntil *time.Time
	CreatedAt    time.Time
	CreatedBy    string // id of a user
}

// Policies are the versions of a tenant's policies that can hold. Without any, both are
// nil.
type Policies struct {
	Latest *PolicyVersion
	// Confirmed is the last one that needs no confirmation; may be Latest.
	Confirmed *PolicyVersion
}

// At is the version that holds at an instant; nil for none.
func (p Policies) At(now time.Time) *PolicyVersion {
	if p.Latest == nil || p.Latest.ConfirmUntil == nil || now.Before(*p.Latest.ConfirmUntil) {
		return p.Latest
	}
	return p.Confirmed
}

func policyColumns(v *PolicyVersion) []any {
	return []any{&v.TenantID, &v.Version, &v.Text, &v.Mode, nullableTime{&v.ConfirmUntil}, (*storedTime)(&v.CreatedAt), &v.CreatedBy}
}

const selectPolicy = `SELECT tenant_id, version, text, mode, confirm_until, created_at, created_by FROM policies `

const (
	sqlLatestPolicy    = selectPolicy + `WHERE tenant_id = $1 ORDER BY version DESC LIMIT 1`
	sqlConfirmedPolicy = selectPolicy + `WHERE tenant_id = $1 AND confirm_until IS NULL ORDER BY version DESC LIMIT 1`
)

// Policies returns the versions of the tenant's policies that can hold.
func (r Reader) Policies(ctx context.Context, tenantID string) (p Policies, err error) {
	if p.Latest, err = r.onePolicy(ctx, sqlLatestPolicy, tenantID); err != nil || p.Latest == nil {
		return p, err
	}
	if p.Confirmed = p.Latest; p.Latest.ConfirmUntil != nil {
		p.Confirmed, err = r.onePolicy(ctx, sqlConfirmedPolicy, tenantID)
	}
	return p, err
}

func (r Reader) onePolicy(ctx context.Context, query, tenantID string) (*PolicyVersion, error) {
	v, err := one(ctx, r, policyColumns, query, tenantID)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	return &v, err
}

const sqlPolicyVersion = selectPolicy + `WHERE tenant_id = $1 AND version = $2`

// PolicyVersion returns a version of the tenant's policies, or ErrNone.
func (r Reader) PolicyVersion(ctx context.Context, tenantID string, version int64) (PolicyVersion, error) {
	return one(ctx, r, policyColumns, sqlPolicyVersion, tenantID, version)
}

var policyPages = pages[PolicyVersion]{
	next:    selectPolicy + `WHERE tenant_id = $1 AND ((version, tenant_id) < ($2, $3) OR $2 = 0) ORDER BY version DESC LIMIT $4`,
	before:  selectPolicy + `WHERE tenant_id = $1 AND (version, tenant_id) > ($2, $3) ORDER BY version LIMIT $4`,
	columns: policyColumns,
	at: func(v PolicyVersion) doorward.Position {
		return doorward.Position{At: v.Version, ID: v.TenantID}
	},
}

// PolicyPage returns versions of the tenant's policies, the newest first.
func (r Reader) PolicyPage(ctx context.Context, tenantID string, w doorward.Window) (doorward.Page[PolicyVersion], error) {
	return policyPages.read(ctx, r, w, tenantID)
}

const sqlInsertPolicy = `INSERT INTO policies (tenant_id, version, text, mode, confirm_until, created_at, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

// InsertPolicy adds the next version, which holds from the commit on. The tenant must be
// locked.
func (tx *Tx) InsertPolicy(ctx context.Context, v PolicyVersion) error {
	err := tx.run(ctx, sqlInsertPolicy, v.TenantID, v.Version, v.Text, string(v.Mode), nullableMicros(v.ConfirmUntil), micros(v.CreatedAt), v.CreatedBy)
	if err != nil {
		return err
	}
	return tx.changeRules(ctx, v.TenantID)
}

const sqlConfirmPolicy = `UPDATE policies SET confirm_until = NULL WHERE tenant_id = $1 AND version = $2 AND confirm_until > $3`

// ConfirmPolicy lets a version hold for good that still does, and reports whether it did.
func (tx *Tx) ConfirmPolicy(ctx context.Context, tenantID string, version int64) (bool, error) {
	confirmed, err := tx.affected(ctx, sqlConfirmPolicy, tenantID, version, micros(tx.Now))
	if err != nil || !confirmed {
		return false, err
	}
	return true, tx.changeRules(ctx, tenantID)
}
