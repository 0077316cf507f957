package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/store"
)

// BrokenPolicy is a policy of a tenant that names something that a new model no longer has.
type BrokenPolicy struct {
	TenantID string
	ID       string
}

// brokenPolicies returns the policies of all tenants that are valid under the model base but
// not under the model next, sorted by tenant. A policy that several versions in force have is
// there once.
func brokenPolicies(ctx context.Context, read store.Reader, base Version, next string) (all []BrokenPolicy, err error) {
	if base.Version == 0 {
		base.Text = "" // the built-in model
	}
	before, err := rules.SchemaOf(base.Text)
	if err != nil {
		return nil, err
	}
	after, err := rules.SchemaOf(next)
	if err != nil {
		return nil, err
	}
	err = read.EachPolicy(ctx, func(v store.PolicyVersion) error {
		ids, err := rules.PoliciesLost(v.Text, before, after)
		for _, id := range ids {
			all = append(all, BrokenPolicy{v.TenantID, id})
		}
		return err
	})
	slices.SortFunc(all, func(a, b BrokenPolicy) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.ID, b.ID))
	})
	return slices.Compact(all), err
}

// maxListed bounds the policies in an error.
const maxListed = 100

func inUseError(broken []BrokenPolicy) *doorward.Error {
	e := doorward.Fail(doorward.CodeModelInUse, "%d policies of tenants name what the model takes away.", len(broken))
	if len(broken) == 1 {
		e = doorward.Fail(doorward.CodeModelInUse, "A policy of a tenant names what the model takes away.")
	}
	for _, p := range broken[:min(len(broken), maxListed)] {
		e.Fields = append(e.Fields, doorward.FieldError{Pointer: "/text", Code: "policy", Message: fmt.Sprintf("The policy %q of the tenant %s would be off.", p.ID, p.TenantID)})
	}
	return e
}
