package apikey

import (
	"context"
	"net/netip"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Edit has the changes to a key; nil fields stay unchanged.
type Edit struct {
	Name        *string
	Permissions *[]string
	AllowedIPs  *[]string // empty: all addresses
	PerSecond   *int64
	Days        *int64 // of validity, from now
	OwnerID     *string
	Status      *string // active or disabled
	// Versions, unless empty, are the versions that the edit is based on; see
	// doorward.APIKey.Version.
	Versions []string
}

// Edit changes the key and returns it. The edit is atomic, and every node applies it before
// Edit returns. Errors: not_found, forbidden, precondition_failed, key_ended,
// validation_failed, step_up_required if it widens what the key can do.
func (k *Keys) Edit(ctx context.Context, by doorward.Caller, id string, e Edit) (after doorward.APIKey, revocation doorward.Revocation, err error) {
	revocation, err = k.change(ctx, by, doorward.APIKeyUpdate, id, func(tx *access.Tx, was doorward.APIKey) error {
		if err := doorward.CheckVersion(was.Version(), e.Versions); err != nil {
			return err
		}
		if was.Ended(tx.Now) {
			return doorward.Fail(doorward.CodeKeyEnded, "")
		}
		if after, err = k.applyEdit(ctx, tx, was, e); err != nil {
			return err
		}
		if !recordEdit(tx, was, after) {
			tx.SkipEvent()
			return nil
		}
		if was.Status == doorward.APIKeyActive && after.Status != doorward.APIKeyActive {
			tx.SkipQuota()
		}
		if widens(was, after) {
			if err := tx.NeedProof(); err != nil {
				return err
			}
		}
		_, err := tx.UpdateAPIKey(ctx, after)
		return err
	})
	if err != nil {
		return doorward.APIKey{}, doorward.Revocation{}, err
	}
	return after, revocation, nil
}

// widens reports whether a key can do more than it could, faster, for longer, from more
// addresses, or for somebody else.
func widens(was, is doorward.APIKey) bool {
	more := func(p doorward.Action) bool { return !slices.Contains(was.Permissions, p) }
	outside := func(p netip.Prefix) bool {
		return !slices.ContainsFunc(was.AllowedIPs, func(in netip.Prefix) bool { return in.Bits() <= p.Bits() && in.Contains(p.Addr()) })
	}
	return slices.ContainsFunc(is.Permissions, more) ||
		len(was.AllowedIPs) > 0 && (len(is.AllowedIPs) == 0 || slices.ContainsFunc(is.AllowedIPs, outside)) ||
		was.PerSecond > 0 && (is.PerSecond == 0 || is.PerSecond > was.PerSecond) ||
		is.ExpiresAt.After(was.ExpiresAt) || is.OwnerID != was.OwnerID ||
		was.Status != doorward.APIKeyActive && is.Status == doorward.APIKeyActive
}

// recordEdit adds what changes to the audit event and reports whether anything does.
func recordEdit(tx *access.Tx, was, is doorward.APIKey) (changed bool) {
	after := fields(is)
	for i, before := range fields(was) {
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
		faults = append(faults, doorward.RequireName("/name", key.Name, nameMissing)...)
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
		wrong, err := checkOwner(ctx, tx, &key)
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
