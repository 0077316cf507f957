package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// ObservedPolicy is a policy of a version that observes.
type ObservedPolicy struct {
	TenantID string
	Version  int64
	PolicyID string
}

// ObservedCount is how often a policy would have refused.
type ObservedCount struct {
	ObservedPolicy
	Refused int64
}

// SortObserved puts counts into the order in which they are written, so that no two
// transactions wait for each other.
func SortObserved(all []ObservedCount) {
	slices.SortFunc(all, func(a, b ObservedCount) int {
		return cmp.Or(strings.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Version, b.Version), strings.Compare(a.PolicyID, b.PolicyID))
	})
}

// A tenant that was destroyed has no version any more.
const sqlCountObserved = `INSERT INTO policy_observations (tenant_id, version, policy_id, refused)
SELECT tenant_id, version, CAST($3 AS TEXT), CAST($4 AS BIGINT) FROM policies WHERE tenant_id = $1 AND version = $2
ON CONFLICT (tenant_id, version, policy_id) DO UPDATE SET refused = policy_observations.refused + $4`

// CountObserved adds to the counts of policies, in the order of SortObserved. Those of
// destroyed tenants are left out.
func (tx *Tx) CountObserved(ctx context.Context, counts []ObservedCount) error {
	for _, c := range counts {
		if err := tx.run(ctx, sqlCountObserved, c.TenantID, c.Version, c.PolicyID, c.Refused); err != nil {
			return err
		}
	}
	return nil
}

const sqlObserved = `SELECT policy_id, refused FROM policy_observations WHERE tenant_id = $1 AND version = $2`

// Observed returns how often each policy of a version would have refused, by id. Policies
// that never would have are left out.
func (r Reader) Observed(ctx context.Context, tenantID string, version int64) (map[string]int64, error) {
	columns := func(c *ObservedCount) []any { return []any{&c.PolicyID, &c.Refused} }
	all, err := list(ctx, r, columns, sqlObserved, tenantID, version)
	counts := make(map[string]int64, len(all))
	for _, c := range all {
		counts[c.PolicyID] = c.Refused
	}
	return counts, err
}
