package user

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Outcome is the result of ChangeAll for one member.
type Outcome struct {
	ID        string
	Ended     doorward.Ended
	Unchanged bool  // the member had this role or status already
	Err       error // as the change of that member alone would return it
}

// Bulk is one change of several members: exactly one of its fields is set.
type Bulk struct {
	Role   *doorward.Role
	Status *doorward.UserStatus
	Remove bool
}

const oneOfThem = "Send exactly one of role, status and remove: true."

func (b Bulk) faults(rules *doorward.Rules) []doorward.FieldError {
	chosen := 0
	for _, isSet := range []bool{b.Role != nil, b.Status != nil, b.Remove} {
		if isSet {
			chosen++
		}
	}
	switch {
	case chosen < 1:
		return []doorward.FieldError{{Pointer: "/role", Code: "required", Message: oneOfThem}}
	case chosen > 1:
		return []doorward.FieldError{{Pointer: "/role", Code: "invalid", Message: oneOfThem}}
	}
	return Edit{Role: b.Role, Status: b.Status}.faults(rules)
}

// ChangeAll changes several members of the caller's tenant, each in its own transaction,
// see access.RunSeparately. Errors: validation_failed; step_up_required and unavailable if
// nothing was done.
func (u *Users) ChangeAll(ctx context.Context, by doorward.Caller, ids []string, b Bulk) ([]Outcome, error) {
	if faults := b.faults(by.Rules); len(faults) > 0 {
		return nil, doorward.InvalidFields(faults...)
	}
	outcomes := make([]Outcome, len(ids))
	errs, err := access.RunSeparately(ctx, ids, func(i int, id string) (err error) {
		outcomes[i], err = u.changeOne(ctx, by, id, b)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		outcomes[i].ID, outcomes[i].Err = id, errs[i]
	}
	return outcomes, nil
}

// isStatus reports whether the member has the status by an administrator's hand already.
func isStatus(m doorward.User, s doorward.UserStatus) bool {
	return m.Status == s && (s == doorward.UserActive || slices.Contains(m.Suspensions(), doorward.ByAdministrator))
}

func (u *Users) changeOne(ctx context.Context, by doorward.Caller, id string, b Bulk) (o Outcome, err error) {
	target, err := u.Get(ctx, by, id)
	if err != nil {
		return o, err
	}
	if b.Remove {
		o.Ended, err = u.Remove(ctx, by, target, Handover{}, nil)
		return o, err
	}
	done, err := u.edit(ctx, by, target, Edit{Role: b.Role, Status: b.Status})
	o.Ended = done.ended
	o.Unchanged = b.Role != nil && *b.Role == target.Role && !done.kept || b.Status != nil && isStatus(target, *b.Status)
	return o, err
}
