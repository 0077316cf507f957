package key

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// ServicePrefix begins every service key.
const ServicePrefix = "dws_"

// ServiceDraft is a service key as an operator has typed it.
type ServiceDraft struct {
	Name    string
	May     []string // permissions of doorward.ServicePermissions
	Tenants []string // ids; none: all tenants
}

// CheckService cleans the name of the draft, and returns validation_failed unless the draft is valid. It
// doesn't check whether the tenants exist.
func CheckService(d *ServiceDraft) error {
	if err := CheckName(&d.Name); err != nil {
		return err
	}
	all := actionNames(doorward.ServicePermissions())
	if len(d.May) == 0 {
		return doorward.Invalid("/may", "required", "Say what the key may do: "+strings.Join(all, ", ")+".")
	}
	for _, permission := range d.May {
		if !slices.Contains(all, permission) {
			return doorward.Invalid("/may", "invalid", fmt.Sprintf("A service key can't have %q. It can have %s.", permission, strings.Join(all, ", ")))
		}
	}
	return nil
}

func actionNames(all []doorward.Action) (names []string) {
	for _, a := range all {
		names = append(names, string(a))
	}
	return names
}

// CreateService creates a service key and returns its secret. Only the hash is stored,
// so it can't be shown again. Errors: validation_failed, not_found for a tenant.
func (k *Keys) CreateService(ctx context.Context, by doorward.Caller, d ServiceDraft) (secret.Key, error) {
	if err := CheckService(&d); err != nil {
		return secret.Key{}, err
	}
	key := secret.NewKey(ServicePrefix)
	hash := key.Hash()
	s := doorward.ServiceKey{ID: doorward.NewID(doorward.PrefixKey), Name: d.Name, Tenants: sorted(d.Tenants)}
	for _, permission := range sorted(d.May) {
		s.May = append(s.May, doorward.Action(permission))
	}
	_, err := k.writer.Do(ctx, by, doorward.KeyCreate, object(s.ID), func(tx *access.Tx) error {
		for _, id := range s.Tenants {
			if _, err := findTenant(ctx, tx.Reader, id); err != nil {
				return err
			}
		}
		s.CreatedAt = tx.Now
		tx.Changed(doorward.FieldName, "", s.Name)
		tx.Changed("may", "", strings.Join(sorted(d.May), " "))
		if len(s.Tenants) > 0 {
			tx.Changed("tenants", "", strings.Join(s.Tenants, " "))
		}
		return tx.InsertServiceKey(ctx, s, hash[:])
	})
	if err != nil {
		return secret.Key{}, err
	}
	return key, nil
}

// sorted returns each text once, sorted.
func sorted(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }

func findTenant(ctx context.Context, read store.Reader, id string) (doorward.Tenant, error) {
	t, err := read.Tenant(ctx, id)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "There is no tenant %s.", id)
	}
	return t, err
}

// Services returns the service keys, disabled ones too, the oldest first.
func (k *Keys) Services(ctx context.Context) ([]doorward.ServiceKey, error) {
	return k.db.Read().ServiceKeys(ctx)
}

// FindServices returns the key with the id, or all keys with the name. Errors:
// not_found.
func (k *Keys) FindServices(ctx context.Context, idOrName string) ([]doorward.ServiceKey, error) {
	all, err := k.Services(ctx)
	if err != nil {
		return nil, err
	}
	var named []doorward.ServiceKey
	for _, s := range all {
		if s.ID == idOrName {
			return []doorward.ServiceKey{s}, nil
		}
		if s.Name == idOrName {
			named = append(named, s)
		}
	}
	if len(named) == 0 {
		return nil, doorward.Fail(doorward.CodeNotFound, "No service key has the name or id %s. \"doorward key list-services\" shows all.", idOrName)
	}
	return named, nil
}

// RevokeService ends a key and the pending invitations that it sent, and returns how
// many. The next request with the key is unauthenticated, on every node, since each asks
// the database. An invitation that it sends at the same time can't be accepted. Errors:
// not_found.
func (k *Keys) RevokeService(ctx context.Context, by doorward.Caller, s doorward.ServiceKey) (invitations int64, err error) {
	_, err = k.writer.Do(ctx, by, doorward.KeyRevoke, object(s.ID), func(tx *access.Tx) error {
		deleted, err := tx.DeleteServiceKey(ctx, s.ID)
		if err == nil && !deleted {
			err = doorward.Fail(doorward.CodeNotFound, "The service key %s has already been revoked.", s.Name)
		}
		if err != nil {
			return err
		}
		tx.Changed(doorward.FieldName, s.Name, "")
		invitations, err = revokeInvitations(ctx, tx, s.ID)
		return err
	})
	return invitations, err
}

// revokeInvitations revokes the pending invitations that the service key has sent, and records
// in the trail of each tenant how many.
func revokeInvitations(ctx context.Context, tx *access.Tx, id string) (total int64, err error) {
	revoked, err := tx.RevokeInvitationsOfService(ctx, id)
	if err != nil {
		return 0, err
	}
	for _, ofTenant := range revoked {
		total += ofTenant.Invitations
		on := doorward.Object{Type: "key", ID: id, TenantID: ofTenant.TenantID}
		change := doorward.Change{Field: doorward.FieldInvitationsRevoked, To: strconv.FormatInt(ofTenant.Invitations, 10)}
		if err := tx.RecordAlso(ctx, doorward.KeyRevoke, on, change); err != nil {
			return 0, err
		}
	}
	tx.RecordEnded(doorward.Ended{Invitations: total})
	return total, nil
}

// EndLeakedService ends the leaked key with the hash, as RevokeService does. It notifies the
// operator by mail to mailTo, unless that is empty. It returns the key, and whether there
// was one.
func (k *Keys) EndLeakedService(ctx context.Context, by doorward.Caller, hash secret.Hash, mailTo string) (leaked doorward.ServiceKey, found bool, err error) {
	leaked, err = k.db.Read().ServiceKeyByHash(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return leaked, false, nil
	}
	if err != nil {
		return leaked, false, err
	}
	_, err = k.writer.Do(ctx, by, doorward.APIKeyLeak, object(leaked.ID), func(tx *access.Tx) (err error) {
		if found, err = tx.DeleteServiceKey(ctx, leaked.ID); err != nil {
			return err
		}
		if !found {
			tx.SkipEvent()
			return nil
		}
		tx.Changed(doorward.FieldName, leaked.Name, "")
		if _, err := revokeInvitations(ctx, tx, leaked.ID); err != nil || mailTo == "" {
			return err
		}
		return tx.Notify(ctx, store.MailServiceKeyLeaked, mailTo)
	})
	return leaked, found && err == nil, err
}

// HashOfService returns the hash under which a service key is stored. The error never quotes
// the text.
func HashOfService(text string) (secret.Hash, error) {
	token, err := secret.ParseKey(text)
	if err != nil || token.Prefix() != ServicePrefix {
		return secret.Hash{}, secret.ErrMalformedKey
	}
	return token.Hash(), nil
}

// EnableService enables a key that a restore has disabled. Errors: not_found.
func (k *Keys) EnableService(ctx context.Context, by doorward.Caller, s doorward.ServiceKey) error {
	_, err := k.writer.Do(ctx, by, doorward.KeyEnable, object(s.ID), func(tx *access.Tx) error {
		enabled, err := tx.EnableServiceKey(ctx, s.ID)
		if err == nil && !enabled {
			err = doorward.Fail(doorward.CodeNotFound, "The service key %s is not disabled.", s.Name)
		}
		tx.Changed(doorward.FieldName, s.Name, s.Name) // unchanged: the event names the key
		return err
	})
	return err
}

// checkService returns the caller as the service that the key belongs to, in no tenant yet; see
// InTenant. Errors: unauthenticated, also for a disabled key.
func (k *Keys) checkService(ctx context.Context, by doorward.Caller, bearer string) (doorward.Caller, error) {
	hash, err := HashOfService(bearer)
	if err != nil {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	s, err := k.db.Read().ServiceKeyByHash(ctx, hash[:])
	switch {
	case errors.Is(err, store.ErrNone):
		return by, k.refuseUnknown(ctx, by)
	case err != nil:
		return by, err
	case s.Disabled:
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	by.Principal = doorward.PrincipalOfService(s)
	return by, nil
}

// InTenant returns a service as an ADMIN of the tenant with its key's permissions.
// Errors: not_found, also for a tenant that its key doesn't cover.
func (k *Keys) InTenant(ctx context.Context, by doorward.Caller, id string) (doorward.Caller, error) {
	if !by.Service.Covers(id) {
		return by, doorward.Fail(doorward.CodeNotFound, "")
	}
	t, err := k.db.Read().Tenant(ctx, id)
	if errors.Is(err, store.ErrNone) {
		return by, doorward.Fail(doorward.CodeNotFound, "")
	}
	if err == nil {
		by.Principal = by.Principal.InTenant(t)
	}
	return by, err
}
