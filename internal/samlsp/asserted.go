package samlsp

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// Asserted is what a provider says of somebody.
type Asserted struct {
	Subject          string
	SubjectIsAddress bool   // it can be given to somebody else later
	Address          string // empty: absent, several, or it can't be an address
	Name             string // of the person; empty: none is sent. The caller bounds it
	Groups           Groups
	Methods          []string  // how the person signed in: AuthnContextClassRef, and Microsoft's attribute for it
	At               time.Time // the latest AuthnInstant
	SessionUntil     time.Time // the earliest SessionNotOnOrAfter; zero: none

	// AssertionID is good once. After AcceptedUntil, Finish refuses the assertion anyway.
	AssertionID   string
	AcceptedUntil time.Time
	RequestID     string
	IssuedAt      time.Time
	SignedBy      []string // fingerprints of the certificates by which this is authentic: one, or that of each signature

	// Values are the NameID, its format, and the attributes that Config names; bounded. Names are those of all
	// attributes, sorted.
	Values map[string][]string
	Names  []string
	Passed []string // the checks that were made, in their order
}

// Groups are those of the attribute that Config.GroupsFrom names.
type Groups struct {
	State GroupsState
	Names []string // of GroupsList
}

// GroupsState says in which form groups came.
type GroupsState string

// The forms of groups.
const (
	GroupsAbsent  GroupsState = ""            // no attribute, or none is asked for
	GroupsList    GroupsState = "list"        // the attribute, which may have no value
	GroupsOverage GroupsState = "overage"     // too many for an assertion; the provider names an address instead
	addressMax                = 254           // bytes of an address (RFC 5321, errata 1690)
	shownMax                  = 100           // names and values that are shown
	methodsMax                = 20            // contexts; each of at most subjectMax bytes
	fromNameID                = "NameID"      // as Config.AddressFrom
	entraOverage              = "groups.link" // learn.microsoft.com, "Groups overage claim": that address is never called
)

func isControl(r rune) bool { return unicode.IsControl(r) }

// read returns what the assertion says, before it is judged.
func (j *judge) read() Asserted {
	attributes := j.attributes()
	nameID := dom.Only(dom.Only(j.assertion, dom.Assertion, "Subject"), dom.Assertion, "NameID")
	a := Asserted{
		Subject: dom.Text(nameID), AssertionID: dom.Attribute(j.assertion, "ID"), RequestID: j.asked.RequestID,
		Groups: attributes.groups(j.GroupsFrom), Methods: j.methods(), At: j.signedInAt(), SessionUntil: j.sessionUntil(),
		Name: attributes.displayName(), Names: attributes.names(),
	}
	if j.SubjectFrom != "" {
		if values := attributes.values(j.SubjectFrom); len(values) == 1 {
			a.Subject = values[0]
		}
	}
	isEmail := dom.Attribute(nameID, "Format") == NameIDEmail
	a.SubjectIsAddress = j.SubjectFrom == "" && isEmail || strings.Contains(a.Subject, "@")
	a.Address = j.address(attributes, dom.Text(nameID), isEmail)
	a.IssuedAt, _ = dom.Time(j.assertion, "IssueInstant")
	a.AcceptedUntil = a.IssuedAt.Add(IssuedMax)
	a.Values = map[string][]string{fromNameID: {fault.Clip(dom.Text(nameID))}, "NameIDFormat": {fault.Clip(dom.Attribute(nameID, "Format"))}}
	for _, name := range []string{j.SubjectFrom, j.addressFrom(), j.GroupsFrom} {
		if values := attributes.values(name); name != "" && name != fromNameID && len(values) > 0 {
			a.Values[name] = clipAll(values)
		}
	}
	return a
}

func clipAll(values []string) []string {
	shown := slices.Clone(values[:min(len(values), shownMax)])
	for i, value := range shown {
		shown[i] = fault.Clip(value)
	}
	return shown
}

func (c Config) addressFrom() string {
	if c.AddressFrom == "" {
		return "email"
	}
	return c.AddressFrom
}

// address returns the one value of the attribute, which may stand under several names; or the NameID: where it is asked
// for, or is an address by its format and the attribute that is usual isn't there.
func (j *judge) address(from attributes, nameID string, isEmail bool) string {
	values := from.values(j.addressFrom())
	if j.addressFrom() == fromNameID || isEmail && len(values) == 0 && j.addressFrom() == "email" {
		values = []string{nameID}
	}
	slices.Sort(values)
	if values = slices.Compact(values); len(values) != 1 || len(values[0]) > addressMax || strings.ContainsFunc(values[0], isControl) {
		return ""
	}
	return values[0]
}

// methods returns the names of how the person signed in, bounded.
func (j *judge) methods() (all []string) {
	for _, statement := range dom.Children(j.assertion, dom.Assertion, "AuthnStatement") {
		for _, context := range dom.Children(statement, dom.Assertion, "AuthnContext") {
			for _, class := range dom.Children(context, dom.Assertion, "AuthnContextClassRef") {
				all = append(all, dom.Text(class))
			}
		}
	}
	all = append(all, j.attributes().values(microsoftMethods)...)
	all = slices.DeleteFunc(all, func(name string) bool { return name == "" || len(name) > subjectMax })
	return all[:min(len(all), methodsMax)]
}

// microsoftMethods is the attribute in which Entra ID and AD FS say that there was a second factor: their
// AuthnContextClassRef doesn't tell (learn.microsoft.com, "SAML token claims reference").
const microsoftMethods = "http://schemas.microsoft.com/claims/authnmethodsreferences"

func (j *judge) signedInAt() (latest time.Time) {
	for _, statement := range dom.Children(j.assertion, dom.Assertion, "AuthnStatement") {
		if at, _ := dom.Time(statement, "AuthnInstant"); at.After(latest) {
			latest = at
		}
	}
	return latest
}

func (j *judge) sessionUntil() (earliest time.Time) {
	for _, statement := range dom.Children(j.assertion, dom.Assertion, "AuthnStatement") {
		if until, _ := dom.Time(statement, "SessionNotOnOrAfter"); !until.IsZero() && (earliest.IsZero() || until.Before(earliest)) {
			earliest = until
		}
	}
	return earliest
}
