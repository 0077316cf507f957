package modelfile

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of entities. A policy that asks whether one entity is in another visits the
// ancestors, so those are few and no entity is its own ancestor.
const (
	MaxEntities  = 5_000
	maxAncestors = 64
	maxEntityID  = 256 // bytes
)

// entities returns the list of entities as JSON, and where each is. Values that JSON or
// the language of policies doesn't have are faults.
func (r *reader) entities(n *yaml.Node) ([]byte, []place) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, CodeType, `Write entities as a list, such as "- uid: {type: team, id: sales}".`)
		return nil, nil
	}
	if len(n.Content) > MaxEntities {
		r.fault(n.Content[MaxEntities], CodeTooMany, "There are %d entities. A model can have %d.", len(n.Content), MaxEntities)
		return nil, nil
	}
	h := hierarchy{parents: map[reference][]reference{}}
	all, places := make([]any, 0, len(n.Content)), make([]place, 0, len(n.Content))
	for _, item := range n.Content {
		r.checkEntity(item, &h)
		all, places = append(all, r.value(item)), append(places, place{item.Line, item.Column})
	}
	r.checkHierarchy(&h)
	text, err := json.Marshal(all)
	if err != nil {
		r.fault(n, CodeInvalid, "The entities can't be written as JSON: %v.", err)
	}
	return text, places
}

// reference names an entity.
type reference struct{ kind, id string }

// hierarchy has the entities in the order of the text, and the parents of each.
type hierarchy struct {
	entities []located
	parents  map[reference][]reference
}

// located is an entity and where it is in the text.
type located struct {
	reference
	node *yaml.Node
}

// checkHierarchy refuses entities that are their own ancestor or have too many ancestors.
func (r *reader) checkHierarchy(h *hierarchy) {
	for _, e := range h.entities {
		switch count, isCycle := h.ancestors(e.reference); {
		case isCycle:
			r.fault(e.node, CodeInvalid, "The entity %s is its own ancestor. Remove one of the parents that form the cycle.", quote(e.id))
		case count > maxAncestors:
			r.fault(e.node, CodeTooMany, "The entity %s has more than %d ancestors. Remove parents until it has fewer.", quote(e.id), maxAncestors)
		}
	}
}

// ancestors counts the ancestors of an entity, until there are too many, and reports
// whether it is its own ancestor.
func (h *hierarchy) ancestors(e reference) (count int, isCycle bool) {
	seen, todo := map[reference]bool{}, []reference{e}
	for len(todo) > 0 && len(seen) <= maxAncestors {
		next := todo[0]
		todo = todo[1:]
		for _, parent := range h.parents[next] {
			if parent == e {
				return len(seen), true
			}
			if !seen[parent] {
				seen[parent] = true
				todo = append(todo, parent)
			}
		}
	}
	return len(seen), false
}

// checkEntity checks an entity and the names of its parents, and adds it to the hierarchy.
// References in its attributes are left to package cedar.
func (r *reader) checkEntity(n *yaml.Node, h *hierarchy) {
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
	self := r.reference(uid)
	if _, twice := h.parents[self]; twice {
		r.fault(uid, CodeDuplicate, "The entity %s is already in this list. Keep one of them.", quote(self.id))
	}
	h.entities, h.parents[self] = append(h.entities, located{self, n}), r.parents(fields["parents"])
	for _, name := range []string{"attrs", "tags"} {
		if value := fields[name]; value != nil && value.Kind != yaml.MappingNode {
			r.fault(value, CodeType, "Write %s as names with values, or {} for none.", name)
		}
	}
}

// parents returns the parents of an entity: none without a node.
func (r *reader) parents(n *yaml.Node) (all []reference) {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.fault(n, CodeType, `Write parents as a list, such as "[{type: team, id: sales}]".`)
		return nil
	}
	for _, parent := range n.Content {
		all = append(all, r.reference(parent))
	}
	return all
}

func (r *reader) reference(n *yaml.Node) (to reference) {
	fields := r.fields(n, "a reference to an entity", "type", "id")
	for _, name := range []string{"type", "id"} {
		if fields[name] == nil && n.Kind == yaml.MappingNode {
			r.fault(n, CodeRequired, "There is no %s. Write {type: …, id: …}.", quote(name))
		}
	}
	faults := len(r.faults)
	if kind := fields["type"]; kind != nil {
		if to.kind, _ = r.text(kind, "type"); len(r.faults) == faults {
			r.checkType(kind)
		}
	}
	faults = len(r.faults)
	if id := fields["id"]; id != nil {
		if to.id, _ = r.text(id, "id"); len(r.faults) == faults {
			r.checkID(id, to)
		}
	}
	return to
}

// checkType checks the type of an entity, which "resources" need not declare.
func (r *reader) checkType(n *yaml.Node) {
	if slices.Contains(reservedTypes, n.Value) {
		r.fault(n, CodeReserved, "The type %s is Doorward's own. Choose another name.", quote(n.Value))
		return
	}
	r.checkName(n, resourceName, "a type", "one word of small letters a to z, digits and _, beginning with a letter")
}

func (r *reader) checkID(n *yaml.Node, ref reference) {
	switch {
	case ref.id == "" || len(ref.id) > maxEntityID:
		r.fault(n, CodeInvalid, "Write an id of 1 to %d bytes.", maxEntityID)
	case ref.kind == TypeUser && strings.HasPrefix(ref.id, ownUserPrefix):
		r.fault(n, CodeReserved, "Ids that begin with %s are those of Doorward's users, who can't be entities.", quote(ownUserPrefix))
	}
}

// value returns the value of a node for json.Marshal.
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
