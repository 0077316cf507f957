package access

import (
	"context"

	"github.com/doorward/doorward"
)

// countsInQuota reports whether the action counts in its tenant's quota of events a day. The
// quota limits people, keys and services: not the operator, who sets it, nor Doorward's own
// work, which carries out earlier decisions.
func countsInQuota(by doorward.Caller, action doorward.Action) bool {
	verb, _ := doorward.Lookup(action)
	return verb.CountsInQuota && by.Kind != doorward.Operator && by.Kind != doorward.System
}

// SkipQuota marks the change as one that only takes access away. It then doesn't count in the
// quota of events a day, and a used-up quota doesn't refuse it.
func (tx *Tx) SkipQuota() { tx.isCounted = false }

// CheckEvents returns quota_exceeded if the tenant has used up its quota of events a day. The end
// of the transaction checks the quota for all operations together. A call that invites several
// people also calls CheckEvents for each person, to refuse one and continue with the others.
func (tx *Tx) CheckEvents(ctx context.Context, t doorward.Tenant) error {
	if !tx.isCounted || t.Quotas.EventsPerDay == nil {
		return nil
	}
	n, err := tx.CountedEvents(ctx, t.ID)
	if err != nil {
		return err
	}
	return t.Quotas.CheckEvents(n+1, tx.Now)
}
