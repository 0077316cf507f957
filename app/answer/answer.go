// Package answer has what a provider answers of somebody who signs in, in words of neither protocol.
//
//	asserted := answer.OfOIDC(token)    // of internal/oidcrp
//	asserted := answer.OfSAML(response) // of internal/samlsp
//
// What follows from it, and in which order, is the same for both: see packages signon and joining. A Fault is what one
// of the checks of either has found.
package answer

import (
	"slices"
	"time"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp"
)

// Asserted is what a provider says of somebody. As JSON it is what a SAML response leaves until the browser comes for
// it.
type Asserted struct {
	Subject          string
	SubjectIsAddress bool   `json:",omitempty"` // it can be given to somebody else later
	Session          string `json:",omitempty"` // of the provider, by which it can end this sign-in; empty: it names none
	Address          string `json:",omitempty"` // empty: absent, or it can't be an address
	// AddressVerified reports whether the provider calls the address verified, which decides nothing.
	AddressVerified bool   `json:",omitempty"`
	Name            string `json:",omitempty"`
	Groups          Groups
	// Methods are how the person signed in (amr of OpenID Connect), and Contexts what that amounts to (acr). SAML has
	// one list for both.
	Methods  []string  `json:",omitempty"`
	Contexts []string  `json:",omitempty"`
	At       time.Time `json:",omitzero"` // when the person signed in there; zero: it doesn't say
	Until    time.Time `json:",omitzero"` // when the session has to end; zero: it doesn't say

	// Claims are those that Doorward reads, with bounded values, for a test to show. They are there with a Fault, too.
	Claims map[string]any `json:",omitempty"`
	Passed []string       `json:",omitempty"` // the checks that were made, in their order
}

// Groups are those of the claim, or attribute, that groupsFrom names.
type Groups struct {
	State GroupsState `json:",omitempty"`
	Names []string    `json:",omitempty"` // of GroupsList
}

// GroupsState says in which form groups came.
type GroupsState string

// The forms of groups.
const (
	GroupsAbsent    = GroupsState(oidcrp.GroupsAbsent)    // none came, or none are asked for
	GroupsList      = GroupsState(oidcrp.GroupsList)      // a list, which may be empty
	GroupsOverage   = GroupsState(oidcrp.GroupsOverage)   // too many; the provider names an address instead
	GroupsMalformed = GroupsState(oidcrp.GroupsMalformed) // anything else
)

// OfOIDC returns what an ID token says, of which all checks but those from failed on have passed; empty: none has
// failed.
func OfOIDC(a oidcrp.Asserted, failed string) Asserted {
	s := Asserted{
		Subject: a.Subject, Session: a.Session, Address: a.Address, AddressVerified: a.AddressVerified,
		Groups:  Groups{GroupsState(a.Groups.State), a.Groups.Names},
		Methods: a.AMR, At: a.AuthTime, Claims: a.Claims, Passed: before(failed),
	}
	if a.ACR != "" {
		s.Contexts = []string{a.ACR}
	}
	s.Name, _ = a.Claims["name"].(string)
	return s
}

// before returns the checks of OpenID Connect that are made before one; none for another, such as that of a provider that
// can't be reached.
func before(failed string) []string {
	if failed == "" {
		return oidcrp.Checks
	}
	return oidcrp.Checks[:max(0, slices.Index(oidcrp.Checks, failed))]
}

// AttributeNames is the claim of OfSAML that has the names of all attributes.
const AttributeNames = "attributes"

// OfSAML returns what a response says.
func OfSAML(a samlsp.Asserted) Asserted {
	claims := map[string]any{}
	if len(a.Names) > 0 {
		claims[AttributeNames] = a.Names
	}
	for name, values := range a.Values {
		claims[name] = values
	}
	return Asserted{
		Subject: a.Subject, SubjectIsAddress: a.SubjectIsAddress, Address: a.Address, Name: a.Name,
		Groups:  Groups{GroupsState(a.Groups.State), a.Groups.Names},
		Methods: a.Methods, Contexts: a.Methods, At: a.At, Until: a.SessionUntil, Claims: claims, Passed: a.Passed,
	}
}
