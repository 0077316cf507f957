package samlsp

import (
	"slices"
	"strings"

	"github.com/doorward/doorward/internal/samlsp/dom"
)

// attributes are those of an assertion, in its order.
type attributes []said

type said struct {
	name, friendly string
	values         []string
}

func (j *judge) attributes() (all attributes) {
	for _, statement := range dom.Children(j.assertion, dom.Assertion, "AttributeStatement") {
		for _, el := range dom.Children(statement, dom.Assertion, "Attribute") {
			one := said{name: dom.Attribute(el, "Name"), friendly: dom.Attribute(el, "FriendlyName")}
			for _, value := range dom.Children(el, dom.Assertion, "AttributeValue") {
				if v := dom.Text(value); v != "" {
					one.values = append(one.values, v)
				}
			}
			all = append(all, one)
		}
	}
	return all
}

// values returns the values of the attribute that the name means: by Name, else by FriendlyName, else by another name
// under which products send the same.
func (all attributes) values(name string) []string {
	values, _ := all.find(name)
	return values
}

func (all attributes) find(name string) (values []string, isThere bool) {
	for _, matches := range []func(said) bool{
		func(s said) bool { return s.name == name },
		func(s said) bool { return s.friendly == name },
		func(s said) bool { return common(s.name) == common(name) },
	} {
		for _, one := range all {
			if matches(one) {
				values, isThere = append(values, one.values...), true
			}
		}
		if isThere {
			return values, true
		}
	}
	return nil, false
}

// nameAttributes are those with a whole name, the best first. Entra sends the login as "name", and so may others.
var nameAttributes = []string{"displayname", "name", "cn"}

// displayName returns what people call the person: a whole name that isn't an address, or else the given name and the
// surname. An attribute with several values says neither. Empty: there is none.
func (all attributes) displayName() string {
	only := func(name string) string {
		if values := all.values(name); len(values) == 1 && !strings.Contains(values[0], "@") {
			return strings.TrimSpace(values[0])
		}
		return ""
	}
	for _, name := range nameAttributes {
		if whole := only(name); whole != "" {
			return whole
		}
	}
	return strings.TrimSpace(only("givenname") + " " + only("surname"))
}

// groups reads the attribute with the groups. An attribute without a value is an empty list.
func (all attributes) groups(name string) Groups {
	if name == "" {
		return Groups{}
	}
	if slices.ContainsFunc(all, func(s said) bool { return strings.HasSuffix(s.name, "/"+entraOverage) }) {
		return Groups{State: GroupsOverage}
	}
	values, isThere := all.find(name)
	if !isThere {
		return Groups{}
	}
	return Groups{GroupsList, values}
}

// names returns the names of all attributes, sorted and bounded, so that a test shows what the provider sends.
func (all attributes) names() []string {
	var names []string
	for _, one := range all {
		names = append(names, one.name)
	}
	slices.Sort(names)
	return clipAll(slices.Compact(names))
}

// uriPrefixes are those of names that AD FS and Entra ID send (learn.microsoft.com, "Customize claims"); what follows
// is the name that people know.
var uriPrefixes = []string{
	"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/", "http://schemas.xmlsoap.org/claims/",
	"http://schemas.microsoft.com/identity/claims/", "http://schemas.microsoft.com/ws/2008/06/identity/claims/",
}

// sameAs has the names under which products send the same: OIDs of LDAP (RFC 4519, RFC 4524, RFC 2798, RFC 2985, eduPerson), which
// Shibboleth and SimpleSAMLphp send, and those of Okta, OneLogin, JumpCloud and Google.
var sameAs = map[string]string{
	"urn:oid:0.9.2342.19200300.100.1.3": "email", "urn:oid:1.2.840.113549.1.9.1": "email",
	"mail": "email", "emailaddress": "email", "email address": "email", "user.email": "email",
	"urn:oid:0.9.2342.19200300.100.1.1": "uid", "userid": "uid",
	"urn:oid:2.16.840.1.113730.3.1.3": "employeenumber", "urn:oid:2.16.840.1.113730.3.1.241": "displayname",
	"display name": "displayname", "urn:oid:2.5.4.3": "cn", "user.displayname": "displayname", "persondisplayname": "displayname",
	"urn:oid:2.5.4.42": "givenname", "firstname": "givenname", "first name": "givenname", "first_name": "givenname", "user.firstname": "givenname",
	"urn:oid:2.5.4.4": "surname", "sn": "surname", "lastname": "surname", "last name": "surname", "last_name": "surname", "user.lastname": "surname", "familyname": "surname",
	"urn:oid:1.3.6.1.4.1.5923.1.1.1.6": "edupersonprincipalname", "urn:oid:1.3.6.1.4.1.5923.1.1.1.13": "edupersonuniqueid",
	"urn:oasis:names:tc:saml:attribute:subject-id":  "subject-id",
	"urn:oasis:names:tc:saml:attribute:pairwise-id": "pairwise-id",
	"urn:oid:1.3.6.1.4.1.5923.1.5.1.1":              "groups", "urn:oid:1.2.840.113556.1.2.102": "groups",
	"group": "groups", "memberof": "groups", "ismemberof": "groups",
}

// common returns the name that all names of the same attribute have in common.
func common(name string) string {
	for _, prefix := range uriPrefixes {
		if rest, has := strings.CutPrefix(name, prefix); has {
			name = rest
			break
		}
	}
	name = strings.ToLower(name)
	if same, has := sameAs[name]; has {
		return same
	}
	return name
}
