package tenant

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// The values of the setting mfa.
const (
	Optional = "optional"
	Required = "required"
)

// Demand returns the value of the setting mfa.
func Demand(f doorward.SecondFactor) string {
	if f.Since.IsZero() {
		return Optional
	}
	return Required
}

// applyDemand applies what the edit says about second factors. The days of grace begin with the
// demand, and again when it covers a role that it did not cover before. Errors:
// validation_failed, master_key_missing when people could set up no factor.
func (t *Tenants) applyDemand(e Edit, before doorward.Tenant, after *doorward.Tenant, now time.Time) error {
	old, demand := before.Settings.SecondFactor, &after.Settings.SecondFactor
	if e.MFARoles != nil {
		roles, faults := checkRoles(*e.MFARoles, before.Rules)
		if len(faults) > 0 {
			return doorward.InvalidFields(faults...)
		}
		demand.Roles = roles
	}
	required := !old.Since.IsZero()
	if e.MFA != nil {
		if *e.MFA != Optional && *e.MFA != Required {
			return doorward.Invalid("/settings/mfa", "invalid", "Second factors are optional or required.")
		}
		required = *e.MFA == Required
	}
	switch {
	case !required:
		demand.Since = time.Time{}
	case old.Since.IsZero() || !old.CoversAll(*demand):
		demand.Since = now
		return t.masterKeyReady()
	}
	return nil
}

// checkRoles returns the roles, sorted and each once, and the faults.
func checkRoles(typed []string, rules *doorward.Rules) (roles []doorward.Role, faults []doorward.FieldError) {
	for i, name := range typed {
		r := doorward.Role(name)
		if !rules.Has(r) {
			faults = append(faults, doorward.FieldError{Pointer: fmt.Sprintf("/settings/mfaRoles/%d", i), Code: "invalid", Message: rules.RolesHelp()})
		}
		roles = append(roles, r)
	}
	slices.Sort(roles)
	return slices.Compact(roles), faults
}

// endUnproved ends the sessions of assurance level 1 whose days of grace are over.
func endUnproved(ctx context.Context, tx *access.Tx, tenantID string, f doorward.SecondFactor) error {
	grace := time.Duration(f.GraceDays) * 24 * time.Hour
	if f.Since.IsZero() || tx.Now.Before(f.Since.Add(grace)) {
		return nil
	}
	return tx.DeleteUnprovedSessions(ctx, tenantID, f.Roles, tx.Now.Add(-grace))
}

// exportedMFA returns the setting mfa for an export, which leaves out the default.
func exportedMFA(f doorward.SecondFactor) string {
	if f.Since.IsZero() {
		return ""
	}
	return Required
}
