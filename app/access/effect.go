package access

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// judge decides on what the statements of the transaction have changed, whatever the actions are
// called, before the commit. No feature has to remember it. Raising somebody asks people who have a
// second factor, or whose tenant demands one, for a recent proof; loosening a demand and widening a key
// ask everybody. Keys never loosen a demand: nobody could ask them. Who accepts an offer raises nobody,
// since the offer was judged.
// To give the rank of OWNER, the word of a connection is no proof. Errors: step_up_required, not_for_keys.
func judge(tx *store.Tx, by doorward.Caller) error {
	effects := &tx.Effects
	isKey := by.Kind == doorward.ByKey || by.Kind == doorward.ByService
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
