package scim

import "github.com/go-json-experiment/json/jsontext"

// What a request says of active, whatever else it says: to switch somebody off must not fail by a fault of something beside
// it. Where several parts say it the last one counts, and one that is no value of active makes all of them count for nothing.

// SwitchesOff reports whether operations of a PATCH set active to false.
func SwitchesOff(operations []Operation) bool {
	var u User
	for _, o := range operations {
		if o.path.isActive() && (o.verb == 0 || u.applyActive(&o) != nil) {
			return false
		}
	}
	return u.Active != nil && !*u.Active
}

// OffInPut is SwitchesOff for the body of a PUT that is refused, also because a text in it isn't Unicode or has NUL.
func OffInPut(body []byte) bool {
	text, err := inUnicode(body)
	if err != nil {
		return false
	}
	operations, err := activeIn(text, replace, path{})
	return err == nil && SwitchesOff(operations)
}

// inUnicode returns the JSON with U+FFFD in place of what is no character, such as half of one that a directory has cut:
// nobody's name may keep them in. A name of a member that is repeated stays a fault: which one counts isn't said.
func inUnicode(body []byte) (jsontext.Value, error) {
	return jsontext.AppendFormat(jsontext.Value{}, jsontext.Value(body), jsontext.AllowInvalidUTF8(true))
}

// OffInPatch is OffInPut for the body of a PATCH: what is said of other attributes isn't read.
func OffInPatch(body []byte) bool {
	var operations []Operation
	text, err := inUnicode(body)
	if err != nil {
		return false
	}
	err = eachMember(text, "", func(name string, value jsontext.Value) error {
		if lower(name) != "operations" || isNull(value) {
			return nil
		}
		return eachItem(value, func(item jsontext.Value) error {
			of, err := activeOf(item)
			operations = append(operations, of...)
			return err
		})
	})
	return err == nil && SwitchesOff(operations)
}

// activeOf returns what one operation does to active.
func activeOf(item jsontext.Value) ([]Operation, error) {
	o, where, err := readOperation(item)
	if err != nil {
		return nil, err
	}
	if where != "" {
		if o.path, err = parsePath(where); err != nil {
			return nil, nil // of another attribute
		}
	}
	switch {
	case where == "", o.path.isSchema() && o.path.schema == core:
		return activeIn(o.value, o.verb, o.path)
	case o.path.isActive():
		return []Operation{o}, nil
	}
	return nil, nil
}

// activeIn returns what an object of attributes says of active; nothing if the value is no object.
func activeIn(object jsontext.Value, verb verb, within path) (operations []Operation, err error) {
	if object.Kind() != jsontext.KindBeginObject {
		return nil, nil
	}
	err = eachMember(object, "", func(name string, value jsontext.Value) error {
		p, fault := parsePath(name)
		switch {
		case fault != nil: // of another attribute
		case p.isSchema() && p.schema == core && within == path{}:
			inner, err := activeIn(value, verb, p)
			operations = append(operations, inner...)
			return err
		case p.isActive():
			operations = append(operations, Operation{verb: verb, path: p, value: value})
		}
		return nil
	})
	return operations, err
}

// isActive reports whether a path leads to active, or to a part that it doesn't have.
func (p path) isActive() bool {
	return p.schema == core && p.only != Groups && p.name == "active"
}
