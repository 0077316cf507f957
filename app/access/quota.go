package access

import (
	"context"

	"github.com/doorward/doorward"
)

// countsInQuota reports whether the action counts in its tenant's quota of events a day: a
// change by a person, a key or a service. The operator sets the quota, and Doorward's own
// work only carries out what was decided before.
func countsInQuota(by doorward.Caller, action doorward.Action) bool {
	verb, _ := doorward.Lookup(action)
	return verb.Counted && by.Kind != doorward.Operator && by.Kind != doorward.System
}

// SkipQuota says that the change only takes access away, so that it doesn't count in the
// quota of events a day, and is never refused for it.
func (tx *Tx) SkipQuota() { tx.isCounted = false }

// CheckEvents returns quota_exceeded if the tenant has used up its quota of events a day. The
// end of the transaction checks the quota for all of its operations together. Inviting
// several people also calls CheckEvents for each, to refuse one and go on with the others.
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
