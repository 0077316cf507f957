package modelfile

import (
	"encoding/json"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// entities returns the list of entities as JSON. Values that JSON or the language of
// policies doesn't have are faults.
func (r *reader) entities(n *yaml.Node) []byte {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, CodeType, `Write entities as a list, such as "- uid: {type: team, id: sales}".`)
		return nil
	}
	all := make([]any, 0, len(n.Content))
	for _, item := range n.Content {
		r.checkEntity(item)
		all = append(all, r.value(item))
	}
	text, err := json.Marshal(all)
	if err != nil {
		r.fault(n, CodeInvalid, "The entities can't be written as JSON: %v.", err)
	}
	return text
}

// checkEntity checks the names of an entity and of those that it refers to.
func (r *reader) checkEntity(n *yaml.Node) {
	faults := len(r.faults)
	fields := r.fields(n, "an entity", "uid", "attrs", "parents", "tags")
	if len(r.faults) > faults {
		return
	}
	uid := fields["uid"]
	if uid == nil {
		r.fault(n, CodeRequired, `This entity has no "uid". Write one, such as "uid: {type: team, id: sales}".`)
		return
	}
	r.checkReference(uid)
	parents := fields["parents"]
	if parents == nil {
		return
	}
	if parents.Kind != yaml.SequenceNode {
		r.fault(parents, CodeType, `Write parents as a list, such as "[{type: team, id: sales}]".`)
		return
	}
	for _, parent := range parents.Content {
		r.checkReference(parent)
	}
}

func (r *reader) checkReference(n *yaml.Node) {
	names := []string{"type", "id"}
	fields := r.fields(n, "a reference to an entity", names...)
	for _, name := range names {
		switch value := fields[name]; {
		case value != nil:
			r.text(value, name)
		case n.Kind == yaml.MappingNode:
			r.fault(n, CodeRequired, "There is no %s. Write {type: …, id: …}.", quote(name))
		}
	}
}

// value returns the value of a node as package json takes it.
func (r *reader) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for _, p := range r.pairs(n, "this") {
			object[p.key.Value] = r.value(p.value)
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, r.value(item))
		}
		return list
	}
	return r.scalar(n)
}

func (r *reader) scalar(n *yaml.Node) any {
	switch tag := n.ShortTag(); {
	case tag == "!!str":
		return n.Value
	case tag == "!!bool":
		return slices.Contains([]string{"true", "True", "TRUE"}, n.Value)
	case tag == "!!int":
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil && strconv.FormatInt(i, 10) == n.Value {
			return i
		}
		r.fault(n, CodeType, "Write a whole number in decimal digits, between -2^63 and 2^63-1.")
	default:
		r.fault(n, CodeType, "Write text, a whole number, or true or false. Put times and decimals in quotes.")
	}
	return nil
}
