// Package joining decides whose account opens for a person whom a tenant's own provider names, and writes identity,
// account, membership and role.
//
//	who := joining.NewPerson(connection, rules, issuer, asserted)
//	found, err := joining.Look(ctx, who)                                        // Refused, MustProve, or neither
//	err = joining.Write(ctx, tx, who, found, found.AccountFor(who), isProved)   // in the transaction of the session
//
// The account is that of the identity (connection, issuer, subject). Where there is none, the account that has
// the address is joined to it, if the tenant has proved the domain and the account is the tenant's alone, or if
// the person proves the account once; or an account is made, as the connection's JIT says.
//
//	plan.go    decides, of what is known: a pure function
//	facts.go   reads what is known
//	apply.go   writes what was decided
//	role.go    the role, by the provider's groups
//
// It guarantees that no account of others opens by an address that a provider names, that a provider gives nobody
// a role above ADMIN and touches no OWNER, and that nothing is written for a person who is refused.
package joining

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/store"
)

// Joining is the feature. Make it with New.
type Joining struct {
	db      *store.DB
	factors *factor.Factors
}

// New returns the feature. factors says whether an account can be proved by a passkey.
func New(db *store.DB, factors *factor.Factors) *Joining { return &Joining{db: db, factors: factors} }

// Person is whom a connection's provider names. As JSON it is small enough for a cookie.
type Person struct {
	Connection doorward.Connection `json:"-"` // as it is now
	Issuer     string              `json:"-"` // doorward.ConnectionParameters.IdentityIssuer
	Subject    string              `json:"subject"`
	Address    string              `json:"address,omitempty"`
	// Verified reports whether the provider calls the address verified, which decides nothing.
	Verified bool               `json:"verified,omitempty"`
	Groups   answer.GroupsState `json:"groups,omitempty"`
	Group    string             `json:"group,omitempty"` // the one that gives the role
	Name     string             `json:"name,omitempty"`
}

// NewPerson returns what counts here of the provider's words. Of the groups it keeps the one that gives the role by
// the connection's mappings and the tenant's rules.
func NewPerson(c doorward.Connection, rules *doorward.Rules, issuer string, a answer.Asserted) Person {
	who := Person{
		Connection: c, Issuer: issuer, Subject: a.Subject, Address: a.Address, Verified: a.AddressVerified,
		Groups: a.Groups.State, Group: best(c.Mappings, rules, a.Groups.Names).Group,
	}
	if name := a.Name; len(doorward.CheckName("", &name)) == 0 {
		who.Name = name
	}
	return who
}

// SawGroups reports whether the provider has sent the claim with the groups.
func (p Person) SawGroups() bool {
	return p.Connection.GroupsFrom != "" && p.Groups != answer.GroupsAbsent
}

// actor returns the caller with the connection as the principal, for what it does to people.
func (p Person) actor(by doorward.Caller) doorward.Caller {
	by.Principal = doorward.Principal{Kind: doorward.ByConnection, ID: p.Connection.ID, TenantID: p.Connection.TenantID}
	return by
}
