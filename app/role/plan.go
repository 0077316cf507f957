package role

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// Plan is what an edit of a role would do.
type Plan struct {
	Was, Is Role
	Use     store.RoleUse
}

// Plan returns what Edit would do, and its errors, and writes nothing.
func (r *Roles) Plan(ctx context.Context, by doorward.Caller, id string, e Edit) (Plan, error) {
	read := r.db.Read()
	was, err := current(ctx, read, by.TenantID, id)
	if err != nil {
		return Plan{}, err
	}
	rules, err := read.Rules(ctx, by.TenantID)
	if err != nil {
		return Plan{}, err
	}
	on := object(by, id, was.Name)
	e.setGrant(rules, was, &on)
	if err := decide.May(&by.Principal, &decide.Question{Action: doorward.RoleUpdate, On: on, Request: by.RequestAt(r.db.Now())}).Err(); err != nil {
		return Plan{}, err
	}
	is, err := e.apply(rules, was)
	if err != nil {
		return Plan{}, err
	}
	if was.Name != is.Name && rules.Has(is.Name) {
		return Plan{}, nameTaken()
	}
	use, err := r.CountUse(ctx, by, was.Name)
	if err == nil && !sameForHolders(was, is) {
		err = checkPolicies(&by, r.db.Now(), use)
	}
	return Plan{view(rules, was, use.Members), view(rules, is, use.Members), use}, err
}

// CountUse counts what has the role in the caller's tenant: members, invitations that can be
// accepted, API keys that have not ended.
func (r *Roles) CountUse(ctx context.Context, by doorward.Caller, name doorward.Role) (store.RoleUse, error) {
	return r.db.Read().RoleUse(ctx, by.TenantID, name, r.db.Now())
}
