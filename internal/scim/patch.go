package scim

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// verb is what an operation does.
type verb int

const (
	add verb = iota + 1
	remove
	replace
)

var verbs = map[string]verb{"add": add, "remove": remove, "replace": replace}

// Operation is one change of a PATCH, to one attribute.
type Operation struct {
	verb  verb
	path  path
	value jsontext.Value // lies in the body; empty where none was sent
	// named: the request names the attribute as its path. Else it came among others in an object, in
	// which what can't be written is read over: Okta sends the id along.
	named bool
}

// ParsePatch reads the body of a PATCH (RFC 7644, section 3.5.2). An operation without a path, and one
// whose path is a schema, become one for each attribute in its value. More than MaxMembers operations are
// refused with status 413: some directories send one for each member of a group.
func ParsePatch(body []byte) ([]Operation, error) {
	var operations []Operation
	sent := 0
	err := eachMember(body, "Send a JSON object.", func(name string, value jsontext.Value) error {
		if lower(name) != "operations" || isNull(value) {
			return nil
		}
		return eachItem(value, func(item jsontext.Value) error {
			sent++
			of, err := parseOperation(item)
			if operations = append(operations, of...); len(operations) > MaxMembers {
				return &Error{Status: http.StatusRequestEntityTooLarge, Detail: "Send at most 10000 operations in one request."}
			}
			return err
		})
	})
	if err == nil && sent == 0 {
		err = refuse(InvalidSyntax, "Send at least one operation in Operations.")
	}
	if err != nil {
		return nil, err
	}
	return operations, nil
}

// readOperation reads the members of an operation, and returns its path as a text.
func readOperation(item jsontext.Value) (o Operation, where string, err error) {
	o.named = true
	err = eachMember(item, "Send each operation as an object.", func(name string, value jsontext.Value) (err error) {
		switch lower(name) {
		case "op":
			var op string
			op, err = text("op", value)
			o.verb = verbs[lower(op)]
		case "path":
			where, err = text("path", value)
		case "value":
			o.value = value
		}
		return err
	})
	return o, where, err
}

func parseOperation(item jsontext.Value) ([]Operation, error) {
	o, where, err := readOperation(item)
	switch {
	case err != nil:
		return nil, err
	case o.verb == 0:
		return nil, refuse(InvalidSyntax, "Send add, remove or replace as op.")
	case o.verb != remove && len(o.value) == 0, o.verb == add && isNull(o.value):
		return nil, refuse(InvalidValue, "Send a value with add and replace.")
	case where == "" && o.verb == remove:
		return nil, refuse(NoTarget, "Send a path with remove.")
	case where == "":
		return membersOf(o.value, o.verb, path{})
	}
	o.path, err = parsePath(where)
	switch {
	case err != nil:
		return nil, err
	case o.path.isSchema() && o.verb != remove && !isNull(o.value):
		return membersOf(o.value, o.verb, o.path)
	case o.path.isSchema() && o.path.schema == core:
		return nil, refuse(NoTarget, "Send the path of an attribute.")
	}
	return []Operation{o}, nil
}

// membersOf returns an operation for each attribute in an object that can be kept. The names may be paths,
// too. Those within the object of an extension are its own.
func membersOf(object jsontext.Value, verb verb, within path) ([]Operation, error) {
	var operations []Operation
	err := eachMember(object, "Send an object of attributes as value, or a path.", func(name string, value jsontext.Value) error {
		o := Operation{verb: verb, value: value}
		var err error
		o.path, err = parsePath(name)
		switch {
		case err != nil:
			return err
		case verb == add && isNull(value):
			return nil
		case o.path.isSchema() && within == (path{}) && !isNull(value):
			inner, err := membersOf(value, verb, o.path)
			operations = append(operations, inner...)
			return err
		case within.schema == enterprise && o.path.schema == core:
			o.path.schema = enterprise
		}
		if o.path.isKept() {
			operations = append(operations, o)
		}
		return nil
	})
	return operations, err
}

// readOnly are the attributes that a directory doesn't write, in lower case.
var readOnly = map[string]bool{"id": true, "meta": true, "groups": true}

// target returns which of texts, by names in lower case, an operation changes: nil if none. It refuses a
// path to what can only be read.
func (o *Operation) target(texts map[string]*string) (*string, error) {
	if readOnly[o.path.name] && o.named {
		return nil, refuse(Mutability, "Leave this attribute as it is: it can only be read.")
	}
	target := texts[o.path.name]
	if target == nil {
		return nil, nil
	}
	return target, o.alone()
}

// alone refuses a filter and a part of an attribute that has neither.
func (o *Operation) alone() error {
	switch {
	case o.path.picks:
		return refuse(NoTarget, "Send the path without a filter: the attribute has one value.")
	case o.path.sub != "":
		return refuse(InvalidPath, "Send the path without a part: the attribute has none.")
	}
	return nil
}

// text returns the text that an operation sets, empty if it takes it away.
func (o *Operation) text() (string, error) {
	if o.verb == remove {
		return "", nil
	}
	return text(o.path.String(), o.value)
}

// required returns the text of an attribute that must have one.
func (o *Operation) required() (string, error) {
	if err := o.alone(); err != nil {
		return "", err
	}
	if o.verb == remove {
		return "", refuse(Mutability, "Replace this attribute: it can't be removed.")
	}
	t, err := o.text()
	if err == nil && t == "" {
		err = refuse(InvalidValue, "Send a text as "+o.path.String()+".")
	}
	return t, err
}
