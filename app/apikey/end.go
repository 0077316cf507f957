package apikey

import (
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
)

// Rotated is a key with its new secret.
type Rotated struct {
	Issued
	// Revocation says how many nodes have confirmed the end of the older secrets.
	Revocation doorward.Revocation
}

// Rotate gives the key a new secret. The present secret stays valid for graceHours (nil: the
// default), but not longer than the key. A secret that an earlier rotation has replaced ends at
// once. Errors: not_found, forbidden, step_up_required, key_ended, validation_failed.
func (k *Keys) Rotate(ctx context.Context, by doorward.Caller, id string, graceHours *int64) (Rotated, error) {
	grace := int64(doorward.APIKeyGraceHours)
	if graceHours != nil {
		grace = *graceHours
	}
	fresh := secret.NewKey(Prefix)
	var after doorward.APIKey
	revocation, err := k.change(ctx, by, doorward.APIKeyRotate, id, func(tx *access.Tx, old doorward.APIKey) (err error) {
		if err := tx.NeedProof(); err != nil { // again, and for the console; not for EndPrevious, which takes access away
			return err
		}
		if old.HasEnded(tx.Now) {
			return doorward.Fail(doorward.CodeKeyEnded, "")
		}
		if grace < 0 || grace > doorward.APIKeyGraceHoursMax {
			return doorward.Invalid("/graceHours", "out_of_range", fmt.Sprintf("The present secret may stay valid for 0 to %d hours.", doorward.APIKeyGraceHoursMax))
		}
		if after, err = rotate(ctx, tx, old, fresh, time.Duration(grace)*time.Hour); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, Issued{after, fresh})
	})
	if err != nil {
		return Rotated{}, err
	}
	return Rotated{Issued{after, fresh}, revocation}, nil
}

func rotate(ctx context.Context, tx *access.Tx, old doorward.APIKey, fresh secret.Key, grace time.Duration) (doorward.APIKey, error) {
	ends := tx.Now.Add(grace)
	if end := old.EndsAt(); end.Before(ends) {
		ends = end
	}
	tx.Changed("hint", old.Hint, fresh.Hint())
	tx.Changed("previousEndsAt", "", ends.Format(time.RFC3339))
	hash := fresh.Hash()
	rotated, err := tx.RotateAPIKey(ctx, old.ID, hash[:], fresh.Hint(), ends)
	if err != nil {
		return old, err
	}
	if !rotated { // a safeguard: under the lock on the tenant, the key can't have ended since
		return old, doorward.Fail(doorward.CodeKeyEnded, "")
	}
	return tx.APIKey(ctx, old.ID, tx.Now)
}

// EndPrevious ends the secret that a rotation has replaced. Errors: not_found, also if the
// key has no replaced secret; forbidden.
func (k *Keys) EndPrevious(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	return k.change(ctx, by, doorward.APIKeyRotate, id, func(tx *access.Tx, old doorward.APIKey) error {
		ended, err := tx.EndReplacedSecrets(ctx, id)
		if err == nil && !ended {
			err = doorward.Fail(doorward.CodeNotFound, "The key has no secret beside the current one.")
		}
		if old.Previous != nil {
			tx.Changed("previousEndsAt", old.Previous.EndsAt.Format(time.RFC3339), tx.Now.Format(time.RFC3339))
		}
		return err
	})
}

// Revoke ends the key for good. If the key has ended already, Revoke succeeds once every node
// knows that. If versions are given, the key must have one of them. Errors: not_found,
// forbidden, precondition_failed.
func (k *Keys) Revoke(ctx context.Context, by doorward.Caller, id string, versions ...string) (doorward.Revocation, error) {
	return k.change(ctx, by, doorward.APIKeyRevoke, id, func(tx *access.Tx, old doorward.APIKey) error {
		if err := doorward.CheckVersion(old.Version(), versions); err != nil {
			return err
		}
		tx.Changed("status", string(old.Status), string(doorward.APIKeyRevoked))
		revoked, err := tx.RevokeAPIKey(ctx, id)
		if !revoked {
			tx.SkipEvent()
		}
		return err
	})
}
