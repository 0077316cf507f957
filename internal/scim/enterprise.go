package scim

import "github.com/go-json-experiment/json/jsontext"

// Enterprise is the enterprise extension (RFC 7643, section 4.3).
type Enterprise struct {
	EmployeeNumber string  `json:"employeeNumber,omitempty"`
	CostCenter     string  `json:"costCenter,omitempty"`
	Organization   string  `json:"organization,omitempty"`
	Division       string  `json:"division,omitempty"`
	Department     string  `json:"department,omitempty"`
	Manager        Manager `json:"manager,omitzero"`
}

// Manager is the superior of a person, as the directory says it: nothing follows from it here.
type Manager struct {
	Value       string `json:"value,omitempty"`
	Ref         string `json:"$ref,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
}

// enterpriseNames are the attributes of the extension, in lower case.
var enterpriseNames = map[string]bool{
	"employeenumber": true, "costcenter": true, "organization": true,
	"division": true, "department": true, "manager": true,
}

func (e *Enterprise) texts() map[string]*string {
	return map[string]*string{
		"employeenumber": &e.EmployeeNumber, "costcenter": &e.CostCenter, "organization": &e.Organization,
		"division": &e.Division, "department": &e.Department,
	}
}

func (e *Enterprise) apply(o *Operation) (err error) {
	if o.path.name == "manager" {
		return e.Manager.apply(o)
	}
	if o.path.name == "" && (o.verb == remove || isNull(o.value)) {
		*e = Enterprise{}
		return nil
	}
	target := e.texts()[o.path.name]
	if target == nil {
		return nil
	}
	if err := o.alone(); err != nil {
		return err
	}
	if o.verb == remove {
		o.value = nil
	}
	*target, err = textOrNumber(o.path.String(), o.value)
	return err
}

// apply takes the manager as an object, as a list with one, as its value alone, and by its parts. Another
// value is another person: what was said of the first doesn't stay.
func (m *Manager) apply(o *Operation) error {
	if o.verb == remove {
		o.value = nil
	}
	switch {
	case o.path.picks:
		return refuse(NoTarget, "Send the path without a filter: there is one manager.")
	case o.path.sub != "":
		return m.set(o.path.sub, o.value)
	case isNull(o.value):
		*m = Manager{}
		return nil
	}
	after, managers := Manager{}, 0
	err := eachItem(o.value, func(item jsontext.Value) error {
		if managers++; managers > 1 {
			return refuse(InvalidValue, "Send one manager.")
		}
		if item.Kind() != jsontext.KindBeginObject {
			return after.fill("value", item)
		}
		return eachMember(item, "", func(name string, value jsontext.Value) error { return after.fill(lower(name), value) })
	})
	if err == nil {
		*m = after
	}
	return err
}

// set changes one part.
func (m *Manager) set(part string, value jsontext.Value) error {
	after := *m
	if err := after.fill(part, value); err != nil {
		return err
	}
	if after.Value != m.Value {
		after = Manager{Value: after.Value}
	}
	*m = after
	return nil
}

// fill sets one part and nothing else. SCIM 1.1 called the value managerId.
func (m *Manager) fill(part string, value jsontext.Value) (err error) {
	switch part {
	case "value", "managerid":
		m.Value, err = textOrNumber("manager", value)
	case "$ref":
		m.Ref, err = text("manager.$ref", value)
	case "displayname":
		m.DisplayName, err = text("manager.displayName", value)
	}
	return err
}
