package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// ObservedPolicy is a policy of a version in the mode PolicyObserves.
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

// The policies of a destroyed tenant are gone, so nothing is inserted for it.
const sqlCountObserved = `INSERT INTO policy_observations (tenant_id, version, policy_id, refused)
SELECT tenant_id, version, CAST($3 AS TEXT), CAST($4 AS BIGINT) FROM policies WHERE tenant_id = $1 AND version = $2
ON CONFLICT (tenant_id, version, policy_id) DO UPDATE SET refused = policy_observations.refused + $4`

// CountObserved adds to the counts of policies, in the order of SortObserved. Counts of
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

// ObservedCounts returns how often each policy of a version would have refused, by id. Policies
// that would never have refused are left out.
func (r Reader) ObservedCounts(ctx context.Context, tenantID string, version int64) (map[string]int64, error) {
	fields := func(c *ObservedCount) []any { return []any{&c.PolicyID, &c.Refused} }
	all, err := list(ctx, r, fields, sqlObserved, tenantID, version)
	counts := make(map[string]int64, len(all))
	for _, c := range all {
		counts[c.PolicyID] = c.Refused
	}
	return counts, err
}

// KeptDecision is a decision with all that policies read, so that it can be made again.
type KeptDecision struct {
	ID, TenantID string    `json:"-"`
	At           time.Time `json:"-"`

	Kind    doorward.PrincipalKind `json:"kind"`
	ActorID string                 `json:"-"`
	Email   string                 `json:"email,omitempty"`
	OwnerID string                 `json:"owner,omitempty"`
	Role    doorward.Role          `json:"role"`
	AuthAt  time.Time              `json:"authAt,omitzero"`
	AAL     int                    `json:"aal,omitempty"`     // 0 for keys
	Closing bool                   `json:"closing,omitempty"` // the tenant was closing

	Action  doorward.Action  `json:"action"`
	Request doorward.Request `json:"request"`
	// Granted: role, rank and key allow it, whatever policies say.
	Granted bool                    `json:"granted,omitempty"`
	Allowed bool                    `json:"allowed,omitempty"`
	Refusal *doorward.PolicyRefusal `json:"refusal,omitempty"` // by a policy
}

// DecisionBytesMax bounds a kept decision; a larger one is left out.
const DecisionBytesMax = 4096

const sqlKeepDecision = `INSERT INTO decisions (id, tenant_id, at, actor_id, decided)
SELECT CAST($1 AS TEXT), id, CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($5 AS TEXT) FROM tenants WHERE id = $2`

// Fits reports whether the decision can be kept: JSON can hold it, and it is small enough.
func (d *KeptDecision) Fits() bool {
	_, fits := d.encode()
	return fits
}

func (d *KeptDecision) encode() (string, bool) {
	text, err := json.Marshal(d)
	return string(text), err == nil && len(text) <= DecisionBytesMax // err: JSON can't hold a value
}

// KeepDecision adds a decision, unless its tenant was destroyed. It reports false, and adds
// nothing, unless the decision Fits.
func (tx *Tx) KeepDecision(ctx context.Context, d KeptDecision) (bool, error) {
	decided, fits := d.encode()
	if !fits {
		return false, nil
	}
	return true, tx.run(ctx, sqlKeepDecision, d.ID, d.TenantID, micros(d.At), d.ActorID, decided)
}

// decisionJSON scans the JSON of a decision. Numbers keep all their digits.
type decisionJSON struct{ dest *KeptDecision }

// Scan implements sql.Scanner.
func (d decisionJSON) Scan(v any) error {
	var text []byte
	switch v := v.(type) {
	case string:
		text = []byte(v)
	case []byte:
		text = v
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(d.dest)
}

func decisionFields(d *KeptDecision) []any {
	return []any{decisionJSON{d}, &d.ID, &d.TenantID, (*storedTime)(&d.At), &d.ActorID}
}

const sqlDecisions = `SELECT decided, id, tenant_id, at, actor_id FROM decisions
WHERE tenant_id = $1 AND at >= $2 AND (at < $3 OR at = $3 AND id < $4) ORDER BY at DESC, id DESC LIMIT $5`

// Decisions returns what was kept of the tenant's decisions since an instant and before a
// position, the newest first.
func (r Reader) Decisions(ctx context.Context, tenantID string, since time.Time, before doorward.Position, limit int) ([]KeptDecision, error) {
	return list(ctx, r, decisionFields, sqlDecisions, tenantID, micros(since), before.At, before.ID, limit)
}

// Decisions of the future were kept while the clock was ahead.
const sqlDropDecisions = `DELETE FROM decisions WHERE id IN (
  SELECT id FROM decisions WHERE at < $1 UNION ALL SELECT id FROM decisions WHERE at > $2 LIMIT $3)`

// DropDecisions deletes decisions from before an instant or from the future, and returns how
// many, at most limit.
func (tx *Tx) DropDecisions(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDropDecisions, micros(before), micros(tx.Now.Add(ClockTolerance)), limit)
}

const sqlDropDecisionsOfTenant = `DELETE FROM decisions WHERE id IN (SELECT id FROM decisions WHERE tenant_id = $1 LIMIT $2)`

// DropDecisionsOf deletes decisions of a tenant, and returns how many, at most limit.
func (tx *Tx) DropDecisionsOf(ctx context.Context, tenantID string, limit int) (int64, error) {
	return tx.exec(ctx, sqlDropDecisionsOfTenant, tenantID, limit)
}
