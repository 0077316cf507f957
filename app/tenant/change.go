package tenant

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Change is what the operator, or a service, changes of a tenant.
type Change struct {
	Status doorward.TenantStatus    // active, frozen or closing; empty: unchanged
	Quotas map[doorward.Quota]int64 // the quotas that change; doorward.NoQuota removes one
	// Versions, unless empty, are the versions that the change is based on; see
	// doorward.Tenant.Version.
	Versions []string
}

// Change changes the status and the quotas of a tenant in one transaction. Freeze, Thaw and
// CloseFor say what each status means. Only the operator may change quotas or close a tenant.
// Errors: validation_failed, not_found, forbidden, precondition_failed, tenant_closing.
func (t *Tenants) Change(ctx context.Context, by doorward.Caller, id string, c Change) (doorward.Tenant, doorward.Ended, error) {
	ended, err := t.change(ctx, by, id, c)
	if err != nil {
		return doorward.Tenant{}, doorward.Ended{}, err
	}
	after, err := t.Get(ctx, id)
	return after, ended, err
}

func (t *Tenants) change(ctx context.Context, by doorward.Caller, id string, c Change) (ended doorward.Ended, err error) {
	if faults := c.faults(); len(faults) > 0 {
		return ended, doorward.InvalidFields(faults...)
	}
	if c.Status == doorward.TenantClosing {
		if err := t.requireOperator(ctx, by, doorward.TenantClose, id); err != nil {
			return ended, err
		}
	}
	operations := t.operations(ctx, id, c, &ended)
	// The first operation also checks the version, in the transaction of all of them.
	first := operations[0].Write
	operations[0].Write = func(tx *access.Tx) error {
		before, err := find(ctx, tx.Reader, id)
		if err == nil {
			err = doorward.CheckVersion(before.Version(), c.Versions)
		}
		if err != nil {
			return err
		}
		return first(tx)
	}
	return t.perform(ctx, by, &ended, operations...)
}

func (c Change) faults() (all []doorward.FieldError) {
	switch c.Status {
	case doorward.TenantActive, doorward.TenantFrozen, doorward.TenantClosing:
	case "":
		if c.Quotas == nil {
			all = append(all, doorward.FieldError{Pointer: "/status", Code: "required", Message: "Send a status, or quotas."})
		}
	default:
		all = append(all, doorward.FieldError{Pointer: "/status", Code: "invalid", Message: "The status is active, frozen or closing."})
	}
	return append(all, quotaFaults(c.Quotas)...)
}

// operations returns the operations of a change without faults, at least one. They set ended to
// what they have ended.
func (t *Tenants) operations(ctx context.Context, id string, c Change, ended *doorward.Ended) (all []access.Operation) {
	if c.Quotas != nil {
		all = append(all, quotaOperation(ctx, id, c.Quotas, new(doorward.Tenant))) // Change reads the tenant afterwards
	}
	switch c.Status {
	case doorward.TenantActive:
		all = append(all, t.thawOperation(ctx, id))
	case doorward.TenantFrozen:
		all = append(all, t.freezeOperation(ctx, id, ended))
	case doorward.TenantClosing:
		all = append(all, t.closeOperation(ctx, id, ended))
	}
	return all
}
