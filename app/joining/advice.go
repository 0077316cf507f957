package joining

import (
	"maps"
	"slices"
)

// CheckGroups is the check of the groups. It refuses nobody: groups that can't be read leave roles as they are.
const CheckGroups = "groups"

// adviceOf has what to do about each check: keys of texts, as those of oidcrp.
var adviceOf = map[string]string{
	CheckEmail:     "email_claim",  // the claim that emailFrom names has no address
	CheckDomain:    "domain",       // the domain isn't proved for the connection
	CheckJIT:       "invite",       // invite the person, or change jit
	CheckRemoved:   "invite",       // the same
	CheckSuspended: "reinstate",    // an administrator has suspended the person
	CheckJoining:   "joining",      // somebody else's account has the address
	CheckGroups:    "groups_claim", // the claim that groupsFrom names has no list of texts
}

// Advices are all of them.
var Advices = slices.Sorted(maps.Values(adviceOf))

// AdviceOf returns what to do about a check of this package; one of Advices.
func AdviceOf(check string) string { return adviceOf[check] }
