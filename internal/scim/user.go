package scim

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// User is what a directory says about a person, as it says it: userName isn't canonical, and e-mails
// needn't be addresses. Its JSON has SCIM's names, and is for storing and answering.
type User struct {
	UserName    string      `json:"userName"`
	ExternalID  string      `json:"externalId,omitempty"`
	DisplayName string      `json:"displayName,omitempty"`
	Name        Name        `json:"name,omitzero"`
	Active      *bool       `json:"active,omitempty"` // nil: nothing was said
	Emails      []EmailItem `json:"emails,omitempty"`
	Enterprise  Enterprise  `json:"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User,omitzero"`
}

// Name has the parts of a name (RFC 7643, section 4.1.1).
type Name struct {
	Formatted       string `json:"formatted,omitempty"`
	FamilyName      string `json:"familyName,omitempty"`
	GivenName       string `json:"givenName,omitempty"`
	MiddleName      string `json:"middleName,omitempty"`
	HonorificPrefix string `json:"honorificPrefix,omitempty"`
	HonorificSuffix string `json:"honorificSuffix,omitempty"`
}

// EmailItem is one of the e-mails.
type EmailItem struct {
	Value   string `json:"value,omitempty"`
	Display string `json:"display,omitempty"`
	Type    string `json:"type,omitempty"`
	Primary *bool  `json:"primary,omitempty"` // nil: nothing was said
}

// maxEmails is the greatest number of e-mails of a User. What is done to each of them by each
// operation stays linear in the body so.
const maxEmails = 100

// ParseUser reads the body of a POST or a PUT. A User without a userName is invalidValue.
func ParseUser(body []byte) (User, error) {
	operations, err := membersOf(body, replace, path{})
	if err != nil {
		return User{}, err
	}
	u, err := PatchUser(User{}, operations)
	if err == nil && u.UserName == "" {
		err = refuse(InvalidValue, "Send a userName.")
	}
	if err != nil {
		return User{}, err
	}
	return u, nil
}

// PatchUser returns u after the operations of a PATCH. With an error, none of them counts. u isn't changed.
func PatchUser(u User, operations []Operation) (User, error) {
	u.Emails = slices.Clone(u.Emails)
	for _, o := range operations {
		if err := u.apply(&o); err != nil {
			return User{}, err
		}
	}
	return u, nil
}

func (u *User) apply(o *Operation) error {
	switch {
	case o.path.schema == enterprise:
		return u.Enterprise.apply(o)
	case o.path.schema == foreign || o.path.only == Groups:
		return nil
	}
	switch o.path.name {
	case "username":
		t, err := o.required()
		if err == nil {
			u.UserName = t
		}
		return err
	case "active":
		return u.applyActive(o)
	case "name":
		return u.Name.apply(o)
	case "emails":
		return u.applyEmails(o)
	}
	target, err := o.target(map[string]*string{"externalid": &u.ExternalID, "displayname": &u.DisplayName})
	if err == nil && target != nil {
		*target, err = o.text()
	}
	return err
}

func (u *User) applyActive(o *Operation) error {
	if err := o.alone(); err != nil {
		return err
	}
	if o.verb == remove {
		return refuse(Mutability, "Send true or false as active: it can't be removed.")
	}
	if !o.named && isNull(o.value) {
		return nil
	}
	is, err := Bool(o.value)
	if err == nil {
		u.Active = &is
	}
	return err
}

func (n *Name) parts() map[string]*string {
	return map[string]*string{
		"formatted": &n.Formatted, "familyname": &n.FamilyName, "givenname": &n.GivenName,
		"middlename": &n.MiddleName, "honorificprefix": &n.HonorificPrefix, "honorificsuffix": &n.HonorificSuffix,
	}
}

// apply changes one part, or those that the value names: both add and replace leave the others (RFC 7644,
// section 3.5.2.3).
func (n *Name) apply(o *Operation) error {
	switch {
	case o.path.picks:
		return refuse(NoTarget, "Send the path without a filter: there is one name.")
	case o.path.sub == "" && (o.verb == remove || isNull(o.value)):
		*n = Name{}
		return nil
	case o.path.sub == "":
		return eachMember(o.value, "Send an object as name.", func(part string, value jsontext.Value) error {
			if part == "" {
				return nil
			}
			return n.apply(&Operation{verb: replace, path: path{name: "name", sub: lower(part)}, value: value})
		})
	}
	part := n.parts()[o.path.sub]
	if part == nil {
		return nil
	}
	t, err := o.text()
	if err == nil {
		*part = t
	}
	return err
}
