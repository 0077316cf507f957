package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

// PolicyMode says whether a version of policies refuses.
type PolicyMode string

// The modes. A version that observes refuses nothing: what it would have refused is counted.
const (
	PolicyEnforces PolicyMode = "enforce"
	PolicyObserves PolicyMode = "observe"
)

// PolicyVersion is one version of a tenant's policies.
type PolicyVersion struct {
	TenantID string
	Version  int64  // from 1
	Text     string // Cedar; empty: no policies
	Mode     PolicyMode
	TimeZone string // IANA name, in which the text reads the hour and the weekday; empty: UTC
	// ConfirmUntil is when the version ends unless it is confirmed; nil: it needs no
	// confirmation, or has it.
	ConfirmUntil *time.Time
	CreatedAt    time.Time
	CreatedBy    string // id of a user
	// Enforced is set if the mode is PolicyObserves: the number of the version that refuses
	// while this one is in force; 0 for none.
	Enforced int64
}

// Policies are the versions of a tenant's policies that can be in force. If there are none,
// Latest and Confirmed are nil.
type Policies struct {
	Latest *PolicyVersion
	// Confirmed is the last version that needs no confirmation, or has it; may be Latest.
	Confirmed *PolicyVersion
	// Enforced are the versions that refuse while Latest or Confirmed observes, by number.
	Enforced map[int64]*PolicyVersion
}

// Refusing returns the version that refuses while v is in force; nil for none.
func (p Policies) Refusing(v *PolicyVersion) *PolicyVersion {
	switch {
	case v == nil || v.Mode == PolicyEnforces:
		return v
	case v.Mode == PolicyObserves:
		return p.Enforced[v.Enforced]
	}
	return nil // a mode of a newer version of Doorward
}

// At returns the version that is in force at now; nil for none.
func (p Policies) At(now time.Time) *PolicyVersion {
	if p.Latest == nil || p.Latest.ConfirmUntil == nil || now.Before(*p.Latest.ConfirmUntil) {
		return p.Latest
	}
	return p.Confirmed
}

func policyFields(v *PolicyVersion) []any {
	return []any{&v.TenantID, &v.Version, &v.Text, &v.Mode, nullableTime{&v.ConfirmUntil}, (*storedTime)(&v.CreatedAt), &v.CreatedBy, &v.Enforced, &v.TimeZone}
}

const selectPolicy = `SELECT tenant_id, version, text, mode, confirm_until, created_at, created_by, enforced, time_zone FROM policies `

const (
	sqlLatestPolicy    = selectPolicy + `WHERE tenant_id = $1 ORDER BY version DESC LIMIT 1`
	sqlConfirmedPolicy = selectPolicy + `WHERE tenant_id = $1 AND confirm_until IS NULL ORDER BY version DESC LIMIT 1`
)

// Policies returns the versions of the tenant's policies that can be in force.
func (r Reader) Policies(ctx context.Context, tenantID string) (p Policies, err error) {
	if p.Latest, err = r.onePolicy(ctx, sqlLatestPolicy, tenantID); err != nil || p.Latest == nil {
		return p, err
	}
	if p.Confirmed = p.Latest; p.Latest.ConfirmUntil != nil {
		p.Confirmed, err = r.onePolicy(ctx, sqlConfirmedPolicy, tenantID)
	}
	for _, v := range []*PolicyVersion{p.Latest, p.Confirmed} {
		if err != nil || v == nil || v.Enforced == 0 || p.Enforced[v.Enforced] != nil {
			continue
		}
		var enforced PolicyVersion
		if enforced, err = r.PolicyVersion(ctx, tenantID, v.Enforced); p.Enforced == nil {
			p.Enforced = map[int64]*PolicyVersion{}
		}
		p.Enforced[v.Enforced] = &enforced
	}
	return p, err
}

func (r Reader) onePolicy(ctx context.Context, query, tenantID string) (*PolicyVersion, error) {
	v, err := one(ctx, r, policyFields, query, tenantID)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	return &v, err
}

// The versions that can be in force are the latest, the latest that needs no confirmation, and
// those that refuse while one of these observes.
const (
	latestPolicies = `(h.version = (SELECT MAX(x.version) FROM policies x WHERE x.tenant_id = h.tenant_id)
  OR h.version = (SELECT MAX(x.version) FROM policies x WHERE x.tenant_id = h.tenant_id AND x.confirm_until IS NULL))`
	sqlEachPolicy = selectPolicy + `p WHERE text <> '' AND EXISTS (SELECT 1 FROM policies h
  WHERE h.tenant_id = p.tenant_id AND (h.version = p.version OR h.enforced = p.version) AND ` + latestPolicies + `) ORDER BY tenant_id, version`
)

// EachPolicy calls fn with the versions of all tenants' policies that can be in force, except
// empty ones, until fn fails, and returns fn's error.
func (r Reader) EachPolicy(ctx context.Context, fn func(PolicyVersion) error) error {
	return each(ctx, r, policyFields, fn, sqlEachPolicy)
}

const sqlPolicyVersion = selectPolicy + `WHERE tenant_id = $1 AND version = $2`

// PolicyVersion returns a version of the tenant's policies, or ErrNone.
func (r Reader) PolicyVersion(ctx context.Context, tenantID string, version int64) (PolicyVersion, error) {
	return one(ctx, r, policyFields, sqlPolicyVersion, tenantID, version)
}

var policyPages = newPages(listing[PolicyVersion]{
	head:   selectPolicy,
	count:  "FROM policies ",
	where:  "WHERE tenant_id = $1\n",
	args:   1,
	fields: policyFields,
	id:     "tenant_id", // decides nothing: no two versions of a tenant have the same number
	idOf:   func(v PolicyVersion) string { return v.TenantID },
	orders: []order[PolicyVersion]{
		{name: "version", column: "version", number: func(v PolicyVersion) int64 { return v.Version }},
	},
	defaultOrder: "-version",
})

// PolicyPage returns versions of the tenant's policies, usually the newest first. Errors:
// validation_failed, for an unknown order.
func (r Reader) PolicyPage(ctx context.Context, tenantID string, w doorward.Window) (doorward.Page[PolicyVersion], error) {
	return policyPages.read(ctx, r, w, tenantID)
}

const sqlInsertPolicy = `INSERT INTO policies (tenant_id, version, text, mode, confirm_until, created_at, created_by, enforced, time_zone)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// InsertPolicy adds the next version, which is in force from the commit on. The tenant must be
// locked.
func (tx *Tx) InsertPolicy(ctx context.Context, v PolicyVersion) error {
	err := tx.run(ctx, sqlInsertPolicy, v.TenantID, v.Version, v.Text, string(v.Mode), nullableMicros(v.ConfirmUntil), micros(v.CreatedAt), v.CreatedBy, v.Enforced, v.TimeZone)
	if err != nil {
		return err
	}
	return tx.changeRules(ctx, v.TenantID)
}

const sqlConfirmPolicy = `UPDATE policies SET confirm_until = NULL WHERE tenant_id = $1 AND version = $2 AND confirm_until > $3`

// ConfirmPolicy confirms a version, and reports whether it could still be confirmed.
func (tx *Tx) ConfirmPolicy(ctx context.Context, tenantID string, version int64) (bool, error) {
	confirmed, err := tx.affected(ctx, sqlConfirmPolicy, tenantID, version, micros(tx.Now))
	if err != nil || !confirmed {
		return false, err
	}
	return true, tx.changeRules(ctx, tenantID)
}
