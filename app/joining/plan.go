package joining

import (
	"github.com/doorward/doorward"
)

// known is what the database says of a person whom a provider names, at one moment.
type known struct {
	jit doorward.JIT
	// Address is what the provider says; empty if it says none that can be used. It identifies nobody.
	Address string
	// Account is that of the identity, or else that of the address; nil: there is none.
	Account *doorward.Account
	// identified reports whether the account is that of the identity.
	identified bool
	// former reports whether the account is that of a member who had the address before it was changed.
	former bool
	// described reports whether the connection's directory has made the membership, and Address is the userName that it
	// wrote last.
	described bool
	// member is the account here; nil: no member.
	member *doorward.User
	// elsewhere reports whether the account is in another tenant, or suspended there.
	elsewhere bool
	// hasIdentity reports whether the account has an identity of this connection that counts: another
	// subject of the provider is that person.
	hasIdentity bool
	// managed reports whether this tenant manages the account.
	managed bool
	// CanProve reports whether the account has something to prove it with: a password or a passkey.
	CanProve bool
	// proved here: inTenant by this tenant, and not for another connection; inConnection for this one.
	inTenant, inConnection bool
	// allowed reports whether the tenant takes addresses of this domain.
	allowed bool
	// invitation is one to the address that can be accepted by a sign-in now; nil: none.
	invitation *doorward.Invitation
	// removed reports whether somebody with the address was removed from the tenant.
	removed bool
}

// The checks of this package, by the names that the protocol has for them.
const (
	CheckEmail     = "email"
	CheckDomain    = "domain"
	CheckJIT       = "jit"
	CheckRemoved   = "removed"
	CheckSuspended = "suspended"
	CheckJoining   = "joining"
)

// Checks are all of them.
var Checks = []string{CheckEmail, CheckDomain, CheckJIT, CheckRemoved, CheckSuspended, CheckJoining}

// step is what a sign-in does about the account before its session.
type step uint8

const (
	refuse step = iota
	enter       // the identity is the account's already
	link        // the account that exists is joined to the identity, without another proof
	prove       // the person proves the account once; then it is joined to the identity
	create      // an account is made
)

// plan is what follows from known.
type plan struct {
	step  step
	check string // which refused
	// joins reports whether a membership is made.
	joins bool
}

func refused(check string) plan { return plan{check: check} }

// plan decides. It never opens an account by its address alone (law 4): the tenant must have proved the
// domain, and the account must be the tenant's alone; else the person proves it. For an address that isn't
// in a domain of the connection it says the same whether there is an account or not.
func (k known) plan() plan {
	switch {
	case k.former && k.member != nil && k.member.Status != doorward.UserActive:
		return refused(CheckJoining) // most likely a new holder of the address, whom reinstating that member wouldn't help
	case k.member != nil && k.member.Status != doorward.UserActive:
		return refused(CheckSuspended)
	case k.identified && k.member != nil:
		return plan{step: enter}
	case k.Address == "":
		return refused(CheckEmail)
	case k.member != nil:
		return k.join()
	}
	if check := k.admit(); check != "" {
		return refused(check)
	}
	switch {
	case k.identified:
		return plan{step: enter, joins: true}
	case k.Account == nil:
		return plan{step: create, joins: true}
	case k.CanProve:
		return plan{step: prove, joins: true}
	}
	return refused(CheckJoining)
}

// join decides how a member's account gets the identity: what the directory has made is joined to whom it has named (law
// 4 (a)), and an account of the tenant alone by its address (b); else the person proves it (c).
func (k known) join() plan {
	switch {
	case k.described && !k.hasIdentity:
		return plan{step: link}
	case k.isTenantsAlone() && !k.hasIdentity && (k.Account.Factors == 0 || k.managed):
		return plan{step: link}
	case k.CanProve:
		return plan{step: prove}
	}
	return refused(CheckJoining)
}

// isTenantsAlone reports whether the tenant speaks for the account: it has proved the domain of its address, and the account
// is a member here and nowhere else, and has no role of the rank of OWNER.
func (k known) isTenantsAlone() bool {
	return k.inTenant && !k.former && !k.elsewhere && k.member.Rules.Rank(k.member.Role) != doorward.RoleOwner
}

// admit says what keeps somebody from becoming a member by a sign-in; empty: nothing.
func (k known) admit() string {
	switch {
	case k.jit == doorward.JITOff:
		return CheckJIT
	case !k.inConnection, !k.allowed:
		return CheckDomain
	case k.invitation != nil:
		return ""
	case k.removed:
		return CheckRemoved
	case k.jit == doorward.JITDomains:
		return ""
	}
	return CheckJIT
}
