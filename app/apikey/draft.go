package apikey

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Draft describes a new key. It has not been checked yet.
type Draft struct {
	Name        string
	Permissions []string
	Role        string // empty: USER
	Days        *int64 // of validity; nil: the longest
	AllowedIPs  []string
	PerSecond   *int64 // nil: no limit
	OwnerID     string // empty: the caller
}

// Issued is a key with a new secret, which can't be shown again. Create and Rotate pass it
// to access.Tx.KeepAnswer, which keeps the answer for a repeated request.
type Issued struct {
	Key    doorward.APIKey
	Secret secret.Key
}

// Create makes a key in the caller's tenant and returns it with its secret, which can't be shown
// again. Errors: forbidden for a role above the caller's, step_up_required, too_many_keys,
// quota_exceeded, validation_failed.
func (k *Keys) Create(ctx context.Context, by doorward.Caller, d Draft) (doorward.APIKey, secret.Key, error) {
	key, faults := k.parse(by, d)
	fresh := secret.NewKey(Prefix)
	key.Hint = fresh.Hint()
	on := object(key)
	on.Held, on.Granted = "", key.Role // the key doesn't exist yet: the decision is about the role that it gets
	_, err := k.writer.Do(ctx, by, doorward.APIKeyCreate, on, func(tx *access.Tx) error {
		if err := checkCount(ctx, tx, key.TenantID); err != nil {
			return err
		}
		txFaults, err := setOwnerRole(ctx, tx, &key)
		if err != nil {
			return err
		}
		known, err := tx.HasRole(ctx, key.TenantID, key.Role) // it may have been deleted since
		if err != nil {
			return err
		}
		if key.Role != "" && !known {
			txFaults = append(txFaults, unknownRole)
		}
		if all := slices.Concat(faults, txFaults); len(all) > 0 {
			return doorward.InvalidFields(all...)
		}
		key.CreatedAt, key.ExpiresAt = tx.Now, k.expiry(tx, d.Days)
		recordNew(tx, key)
		hash := fresh.Hash()
		if err := tx.InsertAPIKey(ctx, key, hash[:]); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, Issued{key, fresh})
	})
	if err != nil {
		return doorward.APIKey{}, secret.Key{}, err
	}
	return key, fresh, nil
}

func recordNew(tx *access.Tx, key doorward.APIKey) {
	for _, f := range fields(key) {
		if f.value != "" && f.name != "status" {
			tx.Changed(f.name, "", f.value)
		}
	}
	tx.Changed(doorward.FieldRole, "", string(key.Role))
}

// parse returns the key that the draft describes, and the faults of the draft. The role of the key
// is empty if the draft's is unknown, so that no decision depends on it.
func (k *Keys) parse(by doorward.Caller, d Draft) (doorward.APIKey, []doorward.FieldError) {
	key := doorward.APIKey{
		ID: doorward.NewID(doorward.PrefixKey), TenantID: by.TenantID, Name: d.Name, Status: doorward.APIKeyActive,
		OwnerID: d.OwnerID, CreatedBy: by.ID, Role: doorward.RoleUser, Rules: by.Rules,
	}
	if d.OwnerID == "" && by.Kind == doorward.ByUser {
		key.OwnerID = by.ID
	}
	faults := doorward.RequireName("/name", &key.Name, nameMissing)
	if role := doorward.Role(d.Role); d.Role != "" {
		if key.Role = role; !by.Rules.Has(role) {
			key.Role = ""
		}
		if key.Role == "" || role == doorward.RoleOwner {
			faults = append(faults, unknownRole)
		}
	}
	permissions, permissionFaults := parsePermissions(d.Permissions, key.Rules, key.Role)
	addresses, addressFaults := parseAddresses(d.AllowedIPs)
	key.Permissions, key.AllowedIPs = permissions, addresses
	faults = slices.Concat(faults, permissionFaults, addressFaults, k.checkDays(d.Days), checkPerSecond(d.PerSecond))
	if d.PerSecond != nil {
		key.PerSecond = int(*d.PerSecond)
	}
	return key, faults
}

var unknownRole = fault("/role", "invalid", "The role of a key is ADMIN, USER, VIEWER or a role that the tenant has made, in capitals.")

const nameMissing = "Name the key after what will use it."

func fault(pointer, code, message string) doorward.FieldError {
	return doorward.FieldError{Pointer: pointer, Code: code, Message: message}
}

// parsePermissions returns the permissions, sorted and without duplicates, and their faults. If the
// role is empty, which parse reports, it doesn't check whether the role grants them.
func parsePermissions(typed []string, rules *doorward.Rules, role doorward.Role) (all []doorward.Action, faults []doorward.FieldError) {
	switch {
	case len(typed) == 0:
		return nil, []doorward.FieldError{fault("/permissions", "required", "Say what the key may do: at least one permission.")}
	case len(typed) > doorward.APIKeyPermissionsMax:
		return nil, []doorward.FieldError{fault("/permissions", "out_of_range", fmt.Sprintf("A key has %d permissions at most.", doorward.APIKeyPermissionsMax))}
	}
	granted, model := rules.Grant(role), rules.Model()
	for i, text := range typed {
		a, pointer := doorward.Action(text), fmt.Sprintf("/permissions/%d", i)
		switch {
		case !model.ForKeys(a):
			faults = append(faults, fault(pointer, "not_for_keys", "API keys can't have this permission."))
		case granted != nil && !slices.Contains(granted.Actions, a):
			faults = append(faults, fault(pointer, "not_granted", fmt.Sprintf("The role %s does not grant this permission.", role)))
		default:
			all = append(all, a)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), faults
}

// parseAddresses returns the addresses and CIDRs, in the order in which they were typed,
// and their faults.
func parseAddresses(typed []string) (all []netip.Prefix, faults []doorward.FieldError) {
	if len(typed) > doorward.APIKeyAddressesMax {
		return nil, []doorward.FieldError{fault("/allowedIps", "out_of_range", fmt.Sprintf("A key has %d addresses at most.", doorward.APIKeyAddressesMax))}
	}
	all = []netip.Prefix{}
	for i, text := range typed {
		prefix, ok := parseAddress(text)
		if !ok {
			faults = append(faults, fault(fmt.Sprintf("/allowedIps/%d", i), "invalid", "Write an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32. The bits of a network after its length must be zero."))
			continue
		}
		if !slices.Contains(all, prefix) {
			all = append(all, prefix)
		}
	}
	return all, faults
}

// parseAddress parses an address or a CIDR. It turns an IPv4-mapped IPv6 address into IPv4. It
// refuses a CIDR with bits set after its length, which is probably a mistake.
func parseAddress(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), addr.Zone() == ""
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix != prefix.Masked() {
		return netip.Prefix{}, false
	}
	if prefix.Addr().Is4In6() {
		if prefix.Bits() < 96 {
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix, true
}

func (k *Keys) checkDays(days *int64) []doorward.FieldError {
	if days == nil || *days >= 1 && *days <= int64(k.maxDays) {
		return nil
	}
	return []doorward.FieldError{fault("/expiresInDays", "out_of_range", fmt.Sprintf("A key is valid for 1 to %d days.", k.maxDays))}
}

func checkPerSecond(n *int64) []doorward.FieldError {
	if n == nil || *n >= 1 && *n <= doorward.APIKeyPerSecondMax {
		return nil
	}
	return []doorward.FieldError{fault("/perSecond", "out_of_range", fmt.Sprintf("The limit is 1 to %d requests a second.", doorward.APIKeyPerSecondMax))}
}

// expiry returns the end of a validity that begins now. Without days it is the longest one.
func (k *Keys) expiry(tx *access.Tx, days *int64) time.Time {
	n := int64(k.maxDays)
	if days != nil {
		n = *days
	}
	return tx.Now.Add(time.Duration(n) * 24 * time.Hour)
}

// checkCount returns an error if the tenant can't have another key. The tenant must be locked.
// Errors: too_many_keys, quota_exceeded, unavailable.
func checkCount(ctx context.Context, tx *access.Tx, tenantID string) error {
	n, err := tx.CountLiveAPIKeys(ctx, tenantID, tx.Now)
	if err == nil && n >= doorward.APIKeysMax {
		err = doorward.Fail(doorward.CodeTooManyKeys, "")
	}
	if err != nil {
		return err
	}
	t, err := tx.Tenant(ctx, tenantID)
	if err != nil {
		return err
	}
	return t.Quotas.Check(doorward.QuotaAPIKeys, int64(n)+1)
}

// setOwnerRole sets the owner's role, and returns a fault unless the owner is an active member.
func setOwnerRole(ctx context.Context, tx *access.Tx, key *doorward.APIKey) ([]doorward.FieldError, error) {
	if key.OwnerID == "" {
		return []doorward.FieldError{fault("/ownerId", "required", "Say which member owns the key.")}, nil
	}
	owner, err := tx.User(ctx, key.TenantID, key.OwnerID)
	if errors.Is(err, store.ErrNone) || err == nil && owner.Status != doorward.UserActive {
		return []doorward.FieldError{fault("/ownerId", "invalid", "Choose an active member of the tenant as the owner of the key.")}, nil
	}
	key.OwnerRole = owner.Role
	return nil, err
}

// field is a field of a key that can be edited, with its value in the trail.
type field struct{ name, value string }

func fields(k doorward.APIKey) []field {
	permissions := make([]string, len(k.Permissions))
	for i, a := range k.Permissions {
		permissions[i] = string(a)
	}
	addresses := make([]string, len(k.AllowedIPs))
	for i, p := range k.AllowedIPs {
		addresses[i] = doorward.AddressText(p)
	}
	limit := ""
	if k.PerSecond > 0 {
		limit = fmt.Sprint(k.PerSecond)
	}
	return []field{
		{doorward.FieldName, k.Name},
		{"permissions", strings.Join(permissions, " ")},
		{"expiresAt", k.ExpiresAt.Format(time.RFC3339)},
		{"allowedIps", strings.Join(addresses, " ")},
		{"perSecond", limit},
		{"ownerId", k.OwnerID},
		{"status", string(k.Status)},
	}
}
