package factor

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// forgetSeeds disables authenticator apps whose seeds nothing can open any more. They go on to count as factors
// of their accounts, so that nobody's password opens more than before: recovery codes, other factors, and resets
// remain. Remembered browsers, which stand in for a factor, stay as well. The trail of each tenant of such a
// person has an event.
func (f *Factors) forgetSeeds(ctx context.Context, tx *access.Tx, ids []string) error {
	owners, byOwner, err := ownersOf(ctx, tx, ids)
	if err != nil {
		return err
	}
	people := 0
	for _, userID := range owners { // in order, as other transactions that lock several accounts do
		lost, err := loseSeeds(ctx, tx, userID, byOwner[userID])
		if err != nil {
			return err
		}
		if lost > 0 {
			people++
		}
	}
	if tx.Changed("people", "", strconv.Itoa(people)); people == 0 {
		tx.SkipEvent()
	}
	return nil
}

// ownersOf returns the accounts that have the factors, in order, and the factors by account.
func ownersOf(ctx context.Context, tx *access.Tx, ids []string) (owners []string, byOwner map[string][]string, err error) {
	byOwner = map[string][]string{}
	for _, id := range ids {
		userID, err := tx.FactorOwner(ctx, id)
		if errors.Is(err, store.ErrNone) { // removed since it was read
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if byOwner[userID] == nil {
			owners = append(owners, userID)
		}
		byOwner[userID] = append(byOwner[userID], id)
	}
	slices.Sort(owners)
	return owners, byOwner, nil
}

// loseSeeds disables an account's apps and returns how many were confirmed.
func loseSeeds(ctx context.Context, tx *access.Tx, userID string, ids []string) (lost int, err error) {
	if locked, err := tx.LockAccount(ctx, userID); err != nil || !locked {
		return 0, err
	}
	for _, id := range ids {
		confirmed, err := tx.LoseSeed(ctx, id)
		if err != nil {
			return 0, err
		}
		if confirmed {
			lost++
		}
	}
	if lost == 0 {
		return 0, nil
	}
	// Challenges offer what can't be answered any more.
	err = errors.Join(tx.UpdateFactorCounts(ctx, userID), tx.EndChallenges(ctx, userID))
	return lost, errors.Join(err, recordLoss(ctx, tx, userID, lost))
}

// recordLoss records in the trails of the person's tenants, or without one in the installation's, how many apps are lost.
func recordLoss(ctx context.Context, tx *access.Tx, userID string, lost int) error {
	memberships, err := tx.Memberships(ctx, userID)
	if err != nil {
		return err
	}
	change := doorward.Change{Field: "factorsDisabled", To: strconv.Itoa(lost)}
	if len(memberships) == 0 {
		return tx.RecordAlso(ctx, doorward.MasterKeyReplace, userObject(userID, ""), change)
	}
	for _, m := range memberships {
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.MasterKeyReplace, userObject(userID, m.TenantID), change))
	}
	return err
}
