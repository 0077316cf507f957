package joining

import (
	"testing"

	"github.com/doorward/doorward"
)

// TestPlan: what follows from what is known. An account opens by its identity; by an address only where the tenant
// speaks for it.
func TestPlan(t *testing.T) {
	account := &doorward.Account{ID: "usr_ann"}
	withFactor := &doorward.Account{ID: "usr_ann", Factors: 1}
	as := func(role doorward.Role, status doorward.UserStatus) *doorward.User {
		return &doorward.User{ID: "usr_ann", Role: role, Status: status}
	}
	member, owner := as(doorward.RoleUser, doorward.UserActive), as(doorward.RoleOwner, doorward.UserActive)
	const address, jit = "ann@acme.example", doorward.JITDomains
	for name, c := range map[string]struct {
		known
		want plan
	}{
		"the identity of a member": {known{identified: true, Account: account, member: member}, plan{step: enter}},
		"… whatever the address":   {known{identified: true, Account: account, member: member, Address: address, elsewhere: true}, plan{step: enter}},
		"… who is suspended":       {known{identified: true, Account: account, member: as(doorward.RoleUser, doorward.UserSuspended)}, plan{check: CheckSuspended}},
		"… by a former address":    {known{former: true, Account: account, member: as(doorward.RoleUser, doorward.UserSuspended), Address: address, CanProve: true}, plan{check: CheckJoining}},
		"no address":               {known{jit: jit}, plan{check: CheckEmail}},

		"a member of this tenant alone":      {known{Address: address, Account: account, member: member, inTenant: true, CanProve: true}, plan{step: link}},
		"… with an address not proved":       {known{Address: address, Account: account, member: member, CanProve: true}, plan{step: prove}},
		"… who is elsewhere, too":            {known{Address: address, Account: account, member: member, inTenant: true, elsewhere: true, CanProve: true}, plan{step: prove}},
		"… with an identity: recycled":       {known{Address: address, Account: account, member: member, inTenant: true, hasIdentity: true, CanProve: true}, plan{step: prove}},
		"… with a factor":                    {known{Address: address, Account: withFactor, member: member, inTenant: true, CanProve: true}, plan{step: prove}},
		"… with a factor, managed":           {known{Address: address, Account: withFactor, member: member, inTenant: true, managed: true}, plan{step: link}},
		"… who is OWNER":                     {known{Address: address, Account: account, member: owner, inTenant: true, CanProve: true}, plan{step: prove}},
		"… with nothing to prove it with":    {known{Address: address, Account: account, member: owner, inTenant: true}, plan{check: CheckJoining}},
		"… made by the directory":            {known{Address: address, Account: withFactor, member: member, described: true, elsewhere: true, CanProve: true}, plan{step: link}},
		"… and with an identity: recycled":   {known{Address: address, Account: account, member: member, described: true, hasIdentity: true, CanProve: true}, plan{step: prove}},
		"somebody else's account":            {known{jit: jit, Address: address, Account: account, inTenant: true, inConnection: true, allowed: true, CanProve: true}, plan{step: prove, joins: true}},
		"… with nothing to prove it with, 2": {known{jit: jit, Address: address, Account: account, inTenant: true, inConnection: true, allowed: true}, plan{check: CheckJoining}},

		"a new person":                    {known{jit: jit, Address: address, inConnection: true, allowed: true}, plan{step: create, joins: true}},
		"… JIT off":                       {known{jit: doorward.JITOff, Address: address, inConnection: true, allowed: true}, plan{check: CheckJIT}},
		"… not in a domain":               {known{jit: jit, Address: address, allowed: true}, plan{check: CheckDomain}},
		"… in a domain of the tenant":     {known{jit: jit, Address: address, inTenant: true, allowed: true}, plan{check: CheckDomain}},
		"… in a domain not allowed":       {known{jit: jit, Address: address, inConnection: true}, plan{check: CheckDomain}},
		"… not invited":                   {known{jit: doorward.JITInvited, Address: address, inConnection: true, allowed: true}, plan{check: CheckJIT}},
		"… invited":                       {known{jit: doorward.JITInvited, Address: address, inConnection: true, allowed: true, invitation: &doorward.Invitation{}}, plan{step: create, joins: true}},
		"… removed before":                {known{jit: jit, Address: address, inConnection: true, allowed: true, removed: true}, plan{check: CheckRemoved}},
		"… removed before, invited again": {known{jit: jit, Address: address, inConnection: true, allowed: true, removed: true, invitation: &doorward.Invitation{}}, plan{step: create, joins: true}},
		"an identity without membership":  {known{jit: jit, Address: address, identified: true, Account: account, inConnection: true, allowed: true}, plan{step: enter, joins: true}},
	} {
		if got := c.plan(); got != c.want {
			t.Errorf("%s: %+v follows, want %+v", name, got, c.want)
		}
	}
}
