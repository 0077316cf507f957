package user

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// Memberships returns the caller's memberships, the oldest first; for a session that a connection vouches
// for, that in its tenant.
func (u *Users) Memberships(ctx context.Context, by doorward.Caller) ([]doorward.User, error) {
	all, err := u.db.Read().Memberships(ctx, by.ID)
	return slices.DeleteFunc(all, func(m doorward.User) bool { return !by.Sees(m.TenantID) }), err
}

// FactorDue is the instant from which a tenant demands a second factor of somebody who has none.
type FactorDue struct {
	Tenant string // its name
	At     time.Time
}

// FactorDue returns the earliest FactorDue of the memberships of one person; nil if no tenant demands a
// factor that the person lacks. Errors: unavailable.
func (u *Users) FactorDue(ctx context.Context, memberships []doorward.User) (earliest *FactorDue, err error) {
	for _, m := range memberships {
		if m.Factors > 0 || !m.IsActive() {
			continue
		}
		tenant, err := u.db.Read().Tenant(ctx, m.TenantID)
		if err != nil {
			return nil, err
		}
		at, isDemanded := tenant.Settings.SecondFactor.DueFrom(m.Role, m.CreatedAt)
		if isDemanded && (earliest == nil || at.Before(earliest.At)) {
			earliest = &FactorDue{tenant.Name, at}
		}
	}
	return earliest, nil
}

// Get returns a member of the caller's tenant. Errors: not_found.
func (u *Users) Get(ctx context.Context, by doorward.Caller, id string) (doorward.User, error) {
	user, err := current(ctx, u.db.Read(), doorward.User{ID: id, TenantID: by.TenantID})
	if err != nil {
		return user, err
	}
	return user, u.addResets(ctx, by.TenantID, []*doorward.User{&user})
}

// GetByEmail returns the member of the caller's tenant with an address, in any form that
// mailaddr.Parse takes. Errors: not_found, also for a text that is no address.
func (u *Users) GetByEmail(ctx context.Context, by doorward.Caller, address string) (doorward.User, error) {
	email, err := mailaddr.Parse(address)
	if err != nil {
		return doorward.User{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return orNotFound(u.db.Read().UserByEmail(ctx, by.TenantID, email))
}

// Filter selects members; empty fields select all.
type Filter struct{ Role, Status, Factor, Text string }

// faults returns what is wrong with the filter whatever the tenant's rules.
func (f Filter) faults() []doorward.FieldError {
	switch doorward.UserStatus(f.Status) {
	case "", doorward.UserActive, doorward.UserSuspended:
		return nil
	}
	return []doorward.FieldError{{Parameter: "status", Code: "invalid", Message: "The status is active or suspended."}}
}

func (f Filter) chosen() store.UserFilter {
	return store.UserFilter{Role: doorward.Role(f.Role), Status: doorward.UserStatus(f.Status), Factor: f.Factor, Text: f.Text}
}

// List returns members of the caller's tenant, the oldest membership first. Only those who may
// manage people can filter by second factor. Errors: validation_failed, forbidden.
func (u *Users) List(ctx context.Context, by doorward.Caller, f Filter, w doorward.Window) (doorward.Page[doorward.User], error) {
	faults := f.faults()
	if f.Role != "" && !by.Rules.Has(doorward.Role(f.Role)) {
		faults = append(faults, doorward.FieldError{Parameter: "role", Code: "invalid", Message: by.Rules.RolesHelp()})
	}
	if f.Factor != "" && f.Factor != store.WithFactor && f.Factor != store.WithoutFactor {
		faults = append(faults, doorward.FieldError{Parameter: "factor", Code: "invalid", Message: "The factor is any or none."})
	}
	if len(faults) > 0 {
		return doorward.Page[doorward.User]{}, doorward.InvalidFields(faults...)
	}
	if f.Factor != "" {
		if err := u.writer.Require(ctx, by, doorward.UserManage, by.Tenant()); err != nil {
			return doorward.Page[doorward.User]{}, err
		}
	}
	page, err := u.db.Read().UserPage(ctx, by.TenantID, f.chosen(), w)
	if err != nil {
		return page, err
	}
	members := make([]*doorward.User, len(page.Items))
	for i := range page.Items {
		members[i] = &page.Items[i]
	}
	return page, u.addResets(ctx, by.TenantID, members)
}

// addResets sets when the tenant gave its word for a reset of the members' factors.
func (u *Users) addResets(ctx context.Context, tenantID string, members []*doorward.User) error {
	words, err := u.db.Read().FactorWordsOf(ctx, tenantID, u.db.Now())
	for _, w := range words {
		for _, m := range members {
			if m.ID == w.UserID {
				m.ResetAskedAt = &w.AskedAt
			}
		}
	}
	return err
}

// rowsAtOnce is how many rows All reads at once.
const rowsAtOnce = 500

// All returns the members that the filter selects of the tenant, or of every tenant if tenantID is empty, for an
// operator: the oldest tenant first, and in it the oldest membership. It doesn't check the filter's role and
// factor. Errors: validation_failed; not_found if there is no such tenant.
func (u *Users) All(ctx context.Context, tenantID string, f Filter) iter.Seq2[doorward.User, error] {
	return func(yield func(doorward.User, error) bool) {
		if faults := f.faults(); len(faults) > 0 {
			yield(doorward.User{}, doorward.InvalidFields(faults...))
			return
		}
		for tenant, err := range u.tenants(ctx, tenantID) {
			if err != nil {
				yield(doorward.User{}, err)
				return
			}
			for member, err := range u.members(ctx, tenant.ID, f) {
				if !yield(member, err) || err != nil {
					return
				}
			}
		}
	}
}

// members returns the members of one tenant that the filter selects.
func (u *Users) members(ctx context.Context, tenantID string, f Filter) iter.Seq2[doorward.User, error] {
	return doorward.EachRow(rowsAtOnce, func(w doorward.Window) (doorward.Page[doorward.User], error) {
		return u.db.Read().UserPage(ctx, tenantID, f.chosen(), w)
	})
}

// tenants returns the tenant with the id, or all tenants without one.
func (u *Users) tenants(ctx context.Context, id string) iter.Seq2[doorward.Tenant, error] {
	if id == "" {
		return doorward.EachRow(rowsAtOnce, func(w doorward.Window) (doorward.Page[doorward.Tenant], error) {
			return u.db.Read().TenantPage(ctx, store.TenantFilter{}, w)
		})
	}
	return func(yield func(doorward.Tenant, error) bool) {
		tenant, err := u.db.Read().Tenant(ctx, id)
		if errors.Is(err, store.ErrNone) {
			err = errNoTenant(id)
		}
		yield(tenant, err)
	}
}

func errNoTenant(id string) error {
	return doorward.Fail(doorward.CodeNotFound, "No tenant has the id %s. \"doorward tenant list\" shows all.", id)
}

// Find returns the memberships of an address or user id in the tenant, or in every tenant if
// tenantID is empty. Errors: not_found.
func (u *Users) Find(ctx context.Context, addressOrID, tenantID string) ([]doorward.User, error) {
	id, err := u.accountID(ctx, addressOrID)
	if err != nil {
		return nil, err
	}
	all, err := u.db.Read().Memberships(ctx, id)
	if err != nil {
		return nil, err
	}
	var found []doorward.User
	for _, m := range all {
		if tenantID == "" || m.TenantID == tenantID {
			found = append(found, m)
		}
	}
	if len(all) == 0 {
		return nil, doorward.Fail(doorward.CodeNotFound, "Nobody with the address or id %s is in a tenant. \"doorward user list\" shows all.", addressOrID)
	}
	if len(found) == 0 {
		return nil, doorward.Fail(doorward.CodeNotFound, "%s is not in that tenant. \"doorward user list\" shows who is where.", addressOrID)
	}
	return found, nil
}

func (u *Users) accountID(ctx context.Context, addressOrID string) (string, error) {
	email, err := mailaddr.Parse(addressOrID)
	if err != nil {
		return addressOrID, nil // an id
	}
	account, err := u.db.Read().AccountByEmail(ctx, email)
	if errors.Is(err, store.ErrNone) {
		return "", doorward.Fail(doorward.CodeNotFound, "No account has the address %s. \"doorward user list\" shows all.", email)
	}
	return account.ID, err
}
