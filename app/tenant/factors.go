package tenant

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

func checkMFA(typed string) []doorward.FieldError {
	if typed == doorward.MFAOptional || typed == doorward.MFARequired {
		return nil
	}
	return []doorward.FieldError{{Pointer: "/settings/mfa", Code: "invalid", Message: "Second factors are optional or required."}}
}

// checkRoles sorts the roles that the demand covers, each once, and returns those that aren't the tenant's.
func checkRoles(demand *doorward.SecondFactor, rules *doorward.Rules) (faults []doorward.FieldError) {
	for i, r := range demand.Roles {
		if !rules.Has(r) {
			faults = append(faults, doorward.FieldError{Pointer: fmt.Sprintf("/settings/mfaRoles/%d", i), Code: "invalid", Message: rules.RolesHelp()})
		}
	}
	demand.Roles = slices.Compact(slices.Sorted(slices.Values(demand.Roles)))
	return faults
}

// endUnproved ends the sessions of assurance level 1 whose days of grace are over.
func endUnproved(ctx context.Context, tx *access.Tx, tenantID string, f doorward.SecondFactor) error {
	grace := time.Duration(f.GraceDays) * 24 * time.Hour
	if f.Since.IsZero() || tx.Now.Before(f.Since.Add(grace)) {
		return nil
	}
	return tx.DeleteUnprovedSessions(ctx, tenantID, f.Roles, tx.Now.Add(-grace))
}
