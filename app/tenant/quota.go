package tenant

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// SetQuotas sets the named quotas of a tenant, for the operator; doorward.NoQuota removes one.
// The other quotas stay, and so does what the tenant has beyond a quota. Errors: not_found,
// forbidden, validation_failed.
func (t *Tenants) SetQuotas(ctx context.Context, by doorward.Caller, id string, named map[doorward.Quota]int64) (after doorward.Tenant, err error) {
	if faults := quotaFaults(named); len(faults) > 0 {
		return after, doorward.InvalidFields(faults...)
	}
	_, err = t.writer.DoAll(ctx, by, quotaOperation(ctx, id, named, &after))
	return after, err
}

func quotaOperation(ctx context.Context, id string, named map[doorward.Quota]int64, after *doorward.Tenant) access.Operation {
	return access.Operation{Action: doorward.TenantQuota, On: object(id), Write: func(tx *access.Tx) (err error) {
		if *after, err = find(ctx, tx.Reader, id); err != nil {
			return err
		}
		if !changeQuotas(tx, &after.Quotas, named) {
			tx.SkipEvent()
			return nil
		}
		return tx.SetQuotas(ctx, id, after.Quotas)
	}}
}

// Use is how much a tenant has of what its quotas limit.
type Use struct {
	store.TenantUse
	IsCapped bool // people or keys are not counted further: there are at least so many
}

// Of returns how much counts in the quota.
func (u Use) Of(q doorward.Quota) int64 {
	switch q {
	case doorward.QuotaPeople:
		return u.Members + u.Invited
	case doorward.QuotaAPIKeys:
		return u.APIKeys
	case doorward.QuotaWebhooks:
		return u.Webhooks
	}
	return u.Events
}

// Uses returns how much each of the tenants has now, in their order. It counts at most doorward.MaxTotal members,
// invitations and keys of one, since it is for lists. Errors: unavailable.
func (t *Tenants) Uses(ctx context.Context, of []doorward.Tenant) (all []Use, err error) {
	err = t.db.Snapshot(ctx, func(read store.Reader) error {
		for _, one := range of {
			u, err := read.TenantUse(ctx, one.ID, t.db.Now(), doorward.MaxTotal)
			if err != nil {
				return err
			}
			all = append(all, Use{u, max(u.Members, u.Invited, u.APIKeys) == doorward.MaxTotal})
		}
		return nil
	})
	return all, err
}

func quotaFaults(named map[doorward.Quota]int64) (all []doorward.FieldError) {
	for _, name := range doorward.QuotaNames {
		if n, ok := named[name]; ok && n < doorward.NoQuota {
			all = append(all, doorward.FieldError{Pointer: "/quotas/" + string(name), Code: "out_of_range", Message: "A quota is 0 or more; -1 removes it."})
		}
	}
	return all
}

// changeQuotas sets the named quotas, records the changes, and reports whether there are any.
func changeQuotas(tx *access.Tx, quotas *doorward.Quotas, named map[doorward.Quota]int64) (changed bool) {
	for _, name := range doorward.QuotaNames {
		n, ok := named[name]
		if !ok {
			continue
		}
		limit := &n
		if n == doorward.NoQuota {
			limit = nil
		}
		stored := quotas.At(name)
		was, is := doorward.QuotaText(*stored), doorward.QuotaText(limit)
		if *stored = limit; was != is {
			tx.Changed("quota."+string(name), was, is)
			changed = true
		}
	}
	return changed
}
