package access

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// judge decides on what the statements of the transaction have changed, whatever the actions are
// called, before the commit. No feature has to remember it. Raising somebody asks people who have a
// second factor, or whose tenant demands one, for a recent proof; loosening a demand and widening a key
// ask everybody. Keys never loosen a demand: nobody could ask them. Who accepts an offer raises nobody,
// since the offer was judged. To give the rank of OWNER, the word of a connection is no proof. Errors:
// step_up_required, not_for_keys, those of judgeSignOn.
func judge(ctx context.Context, tx *store.Tx, by doorward.Caller) error {
	effects := &tx.Effects
	isKey := by.Kind == doorward.ByKey || by.Kind == doorward.ByService
	if err := judgeSignOn(ctx, tx, by); err != nil {
		return err
	}
	switch {
	case isKey && effects.Loosen():
		return doorward.Fail(doorward.CodeNotForKeys, "")
	case by.Kind != doorward.ByUser:
		return nil
	case by.Issuer != doorward.OwnIssuer && effects.GiveOwner(by.Rules): // or a provider could take over the tenant
		if err := needOwnProof(&by, tx.Now); err != nil {
			return err
		}
	}
	switch {
	case effects.Loosen(), effects.Widen(),
		effects.Raise(by.Rules) && decide.Concerns(doorward.ProofIfDemanded, &by.Principal):
		return needProof(&by, tx.Now)
	}
	return nil
}

// judgeSignOn refuses to take away what a demand for sign-on rests on: a connection by which the people of
// a domain sign in, the last domain, and the last OWNER with a way back. The operator and Doorward itself
// may. Errors: sso_required_here, no_way_back, unavailable.
func judgeSignOn(ctx context.Context, tx *store.Tx, by doorward.Caller) error {
	e := &tx.Effects
	if by.Kind == doorward.Operator || by.Kind == doorward.System {
		return nil
	}
	tenants := slices.Sorted(slices.Values(slices.Concat(e.WaysBack, e.SignOn, e.HomesLost)))
	for _, tenantID := range slices.Compact(tenants) {
		if err := judgeSignOnOf(ctx, tx, tenantID); err != nil {
			return err
		}
	}
	return nil
}

// judgeSignOnOf counts under the lock on the tenant, as a change of the demand does: of two OWNERs who give
// up their ways back at once, one sees that the other has.
func judgeSignOnOf(ctx context.Context, tx *store.Tx, tenantID string) error {
	if err := tx.LockTenantOfSignOn(ctx, tenantID); err != nil {
		return err
	}
	policy, err := tx.SSOPolicy(ctx, tenantID, tx.Now)
	if err != nil || policy.Mode != doorward.SSORequired {
		return err
	}
	basis, err := tx.SSOBasis(ctx, tenantID)
	e := &tx.Effects
	switch {
	case err != nil:
		return err
	case slices.Contains(e.HomesLost, tenantID), slices.Contains(e.SignOn, tenantID) && basis.Held == 0:
		return doorward.Fail(doorward.CodeSSORequiredHere, "")
	case slices.Contains(e.WaysBack, tenantID) && !e.MayEndWaysBack && basis.WaysBack == 0:
		return doorward.Fail(doorward.CodeNoWayBack, "")
	}
	return nil
}
