package apikey

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Edit has the changes of a key; nil fields stay unchanged.
type Edit struct {
	Name        *string
	Permissions *[]string
	AllowedIPs  *[]string // empty: all addresses
	PerSecond   *int64
	Days        *int64 // of validity, from now
	OwnerID     *string
	Status      *string // active or disabled
	// Versions, unless empty, are the versions of the key to which the edit may be applied; see
	// doorward.APIKey.Version.
	Versions []string
}

// Edit changes the key and returns it. Every node has applied the change when Edit returns.
// Errors: not_found, forbidden, precondition_failed, key_ended, validation_failed,
// step_up_required if the key could do more than before.
func (k *Keys) Edit(ctx context.Context, by doorward.Caller, id string, e Edit) (after doorward.APIKey, revocation doorward.Revocation, err error) {
	revocation, err = k.change(ctx, by, doorward.APIKeyUpdate, id, func(tx *access.Tx, old doorward.APIKey) error {
		if err := doorward.CheckVersion(old.Version(), e.Versions); err != nil {
			return err
		}
		if old.HasEnded(tx.Now) {
			return doorward.Fail(doorward.CodeKeyEnded, "")
		}
		if after, err = k.applyEdit(ctx, tx, old, e); err != nil {
			return err
		}
		if !recordEdit(tx, old, after) {
			tx.SkipEvent()
			return nil
		}
		if old.Status == doorward.APIKeyActive && after.Status != doorward.APIKeyActive {
			tx.SkipQuota()
		}
		_, err := tx.UpdateAPIKey(ctx, after)
		return err
	})
	if err != nil {
		return doorward.APIKey{}, doorward.Revocation{}, err
	}
	return after, revocation, nil
}

// recordEdit adds the changed fields to the audit event, and reports whether there are any.
func recordEdit(tx *access.Tx, old, edited doorward.APIKey) (changed bool) {
	after := fields(edited)
	for i, before := range fields(old) {
		if before != after[i] {
			tx.Changed(before.name, before.value, after[i].value)
			changed = true
		}
	}
	return changed
}

// applyEdit returns the key with the edit. Errors: validation_failed.
func (k *Keys) applyEdit(ctx context.Context, tx *access.Tx, key doorward.APIKey, e Edit) (doorward.APIKey, error) {
	var faults, wrong []doorward.FieldError
	if e.Name != nil {
		key.Name = *e.Name
		faults = append(faults, doorward.RequireName("/name", &key.Name, nameMissing)...)
	}
	if e.Permissions != nil {
		key.Permissions, wrong = parsePermissions(*e.Permissions, key.Rules, key.Role)
		faults = append(faults, wrong...)
	}
	if e.AllowedIPs != nil {
		key.AllowedIPs, wrong = parseAddresses(*e.AllowedIPs)
		faults = append(faults, wrong...)
	}
	if e.Status != nil {
		key.Status = doorward.APIKeyStatus(*e.Status)
		if key.Status != doorward.APIKeyActive && key.Status != doorward.APIKeyDisabled {
			faults = append(faults, fault("/status", "invalid", "The status is active or disabled."))
		}
	}
	faults = slices.Concat(faults, checkPerSecond(e.PerSecond), k.checkDays(e.Days))
	if e.PerSecond != nil {
		key.PerSecond = int(*e.PerSecond)
	}
	if e.Days != nil && len(faults) == 0 {
		key.ExpiresAt = k.expiry(tx, e.Days)
	}
	if e.OwnerID != nil && *e.OwnerID != key.OwnerID {
		key.OwnerID = *e.OwnerID
		wrong, err := setOwnerRole(ctx, tx, &key)
		if err != nil {
			return key, err
		}
		faults = append(faults, wrong...)
	}
	if len(faults) > 0 {
		return key, doorward.InvalidFields(faults...)
	}
	return key, nil
}
