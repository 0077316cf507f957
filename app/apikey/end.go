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

// Rotate gives the key a new secret. The present one stays valid for graceHours, nil for
// the default, but never beyond the end of the key; one that was replaced before ends at
// once. Errors: not_found, forbidden, step_up_required, key_ended, validation_failed.
func (k *Keys) Rotate(ctx context.Context, by doorward.Caller, id string, graceHours *int64) (Rotated, error) {
	grace := int64(doorward.APIKeyGraceHours)
	if graceHours != nil {
		grace = *graceHours
	}
	fresh := secret.NewKey(Prefix)
	var after doorward.APIKey
	revocation, err := k.change(ctx, by, doorward.APIKeyRotate, id, func(tx *access.Tx, was doorward.APIKey) (err error) {
		if err := tx.NeedProof(); err != nil { // not for EndPrevious, which takes access away
			return err
		}
		if was.Ended(tx.Now) {
			return doorward.Fail(doorward.CodeKeyEnded, "")
		}
		if grace < 0 || grace > doorward.APIKeyGraceHoursMax {
			return doorward.Invalid("/graceHours", "out_of_range", fmt.Sprintf("The present secret may stay valid for 0 to %d hours.", doorward.APIKeyGraceHoursMax))
		}
		if after, err = rotate(ctx, tx, was, fresh, time.Duration(grace)*time.Hour); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, Issued{after, fresh})
	})
	if err != nil {
		return Rotated{}, err
	}
	return Rotated{Issued{after, fresh}, revocation}, nil
}

func rotate(ctx context.Context, tx *access.Tx, was doorward.APIKey, fresh secret.Key, grace time.Duration) (doorward.APIKey, error) {
	ends := tx.Now.Add(grace)
	if end := was.EndsAt(); end.Before(ends) {
		ends = end
	}
	tx.Changed("hint", was.Hint, fresh.Hint())
	tx.Changed("previousEndsAt", "", ends.Format(time.RFC3339))
	hash := fresh.Hash()
	rotated, err := tx.RotateAPIKey(ctx, was.ID, hash[:], fresh.Hint(), ends)
	if err != nil {
		return was, err
	}
	if !rotated { // a safeguard: under the lock on the tenant, the key can't have ended since
		return was, doorward.Fail(doorward.CodeKeyEnded, "")
	}
	return tx.APIKey(ctx, was.ID, tx.Now)
}

// EndPrevious ends the secret that a rotation has replaced. Errors: not_found, also if the
// key has no replaced secret; forbidden.
func (k *Keys) EndPrevious(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	return k.change(ctx, by, doorward.APIKeyRotate, id, func(tx *access.Tx, was doorward.APIKey) error {
		ended, err := tx.EndReplacedSecrets(ctx, id)
		if err == nil && !ended {
			err = doorward.Fail(doorward.CodeNotFound, "The key has no secret beside the current one.")
		}
		if was.Previous != nil {
			tx.Changed("previousEndsAt", was.Previous.EndsAt.Format(time.RFC3339), tx.Now.Format(time.RFC3339))
		}
		return err
	})
}

// Revoke ends the key for good. For a key that has ended it succeeds as well, once every
// node knows of that end. If versions are given it ends the key only in one of them. Errors:
// not_found, forbidden, precondition_failed.
func (k *Keys) Revoke(ctx context.Context, by doorward.Caller, id string, versions ...string) (doorward.Revocation, error) {
	return k.change(ctx, by, doorward.APIKeyRevoke, id, func(tx *access.Tx, was doorward.APIKey) error {
		if err := doorward.CheckVersion(was.Version(), versions); err != nil {
			return err
		}
		tx.Changed("status", string(was.Status), string(doorward.APIKeyRevoked))
		revoked, err := tx.RevokeAPIKey(ctx, id)
		if !revoked {
			tx.SkipEvent()
		}
		return err
	})
}
