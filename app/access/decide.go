package access

import (
	"fmt"

	"github.com/doorward/doorward"
)

// Decide returns nil when the caller may do the action to the object, else a
// *doorward.Error: not_found for an object of another tenant, so that nothing
// shows that it exists, and forbidden for what the role doesn't grant.
//
// It judges the caller's role as handed in. Do reads it again inside the
// transaction; only that second judgement lets something be written.
func Decide(by doorward.Caller, act doorward.Action, on doorward.Object) error {
	verb, ok := doorward.Lookup(act)
	if !ok {
		return &doorward.Error{Code: doorward.CodeInternal, Err: fmt.Errorf("access: no such action: %q", act)}
	}
	switch verb.By {
	case doorward.ByProof:
		return nil
	case doorward.ByOperator:
		return decideOperator(by)
	default:
		return decideRole(by, verb, on)
	}
}

func decideOperator(by doorward.Caller) error {
	switch by.Kind {
	case doorward.Operator, doorward.System:
		return nil
	case doorward.Anonymous:
		return doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	return doorward.Fail(doorward.CodeForbidden, "Only the operator of the installation may do this.")
}

func decideRole(by doorward.Caller, verb doorward.Verb, on doorward.Object) error {
	switch by.Kind {
	case doorward.Operator, doorward.System:
		return nil
	case doorward.ByUser:
	default:
		return doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	own := by.User.Role
	switch {
	case on.TenantID != by.User.TenantID:
		return doorward.Fail(doorward.CodeNotFound, "")
	case by.User.Status != doorward.UserActive, !own.May(verb.Action):
		return doorward.Fail(doorward.CodeForbidden, "The role %s does not grant %s.", own, verb.Through)
	case on.Granted.Outranks(own):
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't give the higher role %s.", own, on.Granted)
	case verb.Through == doorward.UserManage && on.Held.Outranks(doorward.RoleUser) && own != doorward.RoleOwner:
		return doorward.Fail(doorward.CodeForbidden, "Only an OWNER may change someone who is %s.", on.Held)
	}
	return nil
}
