package modelfile

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/doorward/doorward"
)

var (
	actionName    = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)
	resourceName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	attributeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// Read reads a model. An error is of type Faults.
func Read(text []byte) (*File, error) {
	file, faults := read(text)
	if len(faults) > 0 {
		return nil, faults.ordered(text)
	}
	return file, nil
}

// ReadStored reads a model that another version of this package has accepted. Actions,
// resources and attributes with a fault are left out: nobody may perform such an action. If
// policies or entities have a fault, all actions are left out, since what they would refuse
// is unknown. An error means that nothing can be read.
func ReadStored(text []byte) (*File, error) {
	file, faults := read(text)
	if file == nil {
		return nil, faults.ordered(text)
	}
	if file.isUnreadable {
		file.Actions, file.Policies, file.Entities = nil, "", nil
	}
	return file, nil
}

// read returns the part that can be read, or nil, and all faults of the text.
func read(text []byte) (*File, Faults) {
	document, fault := parse(text)
	if fault != nil {
		return nil, Faults{*fault}
	}
	r := &reader{}
	if !r.checkForm(document, 1) {
		return nil, r.faults
	}
	if document.Kind != yaml.MappingNode {
		r.fault(document, CodeType, `Write the model as names with values, such as "actions: {}".`)
		return nil, r.faults
	}
	return r.file(document, text), r.faults
}

func (r *reader) file(n *yaml.Node, text []byte) *File {
	file, fields := &File{}, r.fields(n, "the model", "actions", "resources", "policies", "entities")
	if n := fields["resources"]; n != nil {
		file.Resources = r.resources(n)
	}
	switch actions := fields["actions"]; {
	case actions != nil:
		file.Actions = r.actions(actions, file.Resources)
	default:
		r.fault(n, CodeRequired, `There are no "actions". Write "actions: {}" if the platform has none.`)
	}
	faults := len(r.faults)
	if n := fields["policies"]; n != nil {
		file.Policies, _ = r.text(n, "policies")
		file.policies = placeOf(n, text)
	}
	if n := fields["entities"]; n != nil {
		file.Entities, file.entities = r.entities(n)
	}
	file.isUnreadable = len(r.faults) > faults
	return file
}

// placeOf returns where the text of a scalar begins. Only in a literal block (|) does
// every line of the text begin at the same column of the file.
func placeOf(n *yaml.Node, text []byte) block {
	if n.Style&yaml.LiteralStyle == 0 {
		return block{line: n.Line, column: n.Column}
	}
	lines := strings.Split(string(text), "\n")
	for i, content := range strings.Split(n.Value, "\n") {
		if at := n.Line + i; content != "" && at < len(lines) {
			indent := len(strings.TrimSuffix(lines[at], "\r")) - len(content)
			return block{n.Line, max(indent, 0), true}
		}
	}
	return block{n.Line, 0, true}
}

func (r *reader) actions(n *yaml.Node, declared []Resource) (all []Action) {
	pairs := r.pairs(n, "actions")
	if len(pairs) > doorward.PlatformActionsMax {
		r.fault(pairs[doorward.PlatformActionsMax].key, CodeTooMany, "There are %d actions. A model can have %d.", len(pairs), doorward.PlatformActionsMax)
		pairs = pairs[:doorward.PlatformActionsMax]
	}
	for _, p := range pairs {
		faults := len(r.faults)
		r.checkActionName(p.key)
		if a := r.action(p, declared); len(r.faults) == faults {
			all = append(all, a)
		}
	}
	return all
}

// IsReserved reports whether an action of this name is Doorward's own, or would be. Of words that Doorward has
// come to use later, such as domain and connection, only its own names are reserved: a platform that has
// had an action "domain.list" keeps it.
func IsReserved(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return slices.Contains(Reserved, first) || isOwn(name)
}

func isOwn(name string) bool {
	verb, isBuiltIn := doorward.Lookup(doorward.Action(name))
	return isBuiltIn && !verb.Platform
}

// IsActionName reports whether an action of the platform can have this name.
func IsActionName(name string) bool {
	return len(name) <= MaxName && actionName.MatchString(name) && !IsReserved(name)
}

func (r *reader) checkActionName(n *yaml.Node) {
	first, _, _ := strings.Cut(n.Value, ".")
	switch {
	case len(n.Value) > MaxName:
		r.fault(n, CodeInvalid, "The name %s is longer than %d characters.", quote(n.Value), MaxName)
	case !actionName.MatchString(n.Value):
		r.fault(n, CodeInvalid, `%s is not a name of an action. Write words such as "invoice.approve": small letters a to z, digits and _, each word beginning with a letter, joined by dots.`, quote(n.Value))
	case isOwn(n.Value) && !slices.Contains(Reserved, first):
		r.fault(n, CodeReserved, "%s is one of Doorward's own actions. Choose another name.", quote(n.Value))
	case IsReserved(n.Value):
		r.fault(n, CodeReserved, "Names that begin with %s are reserved for Doorward's own actions. Choose another first word.", quote(first))
	}
}

func (r *reader) action(p pair, declared []Resource) Action {
	a := Action{Name: p.key.Value, Line: p.key.Line, Column: p.key.Column}
	fields := r.fields(p.value, "the action", "about", "roles", "resource", "stepUp", "keys")
	if n := fields["about"]; n != nil {
		a.About = r.about(n)
	}
	switch roles := fields["roles"]; {
	case roles != nil:
		a.Roles = r.roles(roles)
	case p.value.Kind == yaml.MappingNode:
		r.fault(p.key, CodeRequired, `The action %s has no "roles". Write those that grant it, at least [OWNER].`, quote(a.Name))
	}
	if n := fields["resource"]; n != nil {
		a.Resource = r.resourceOf(n, declared)
	}
	a.StepUp = r.flag(fields["stepUp"], "stepUp", false)
	a.Keys = r.flag(fields["keys"], "keys", true)
	return a
}

func (r *reader) about(n *yaml.Node) string {
	text, ok := r.text(n, "about")
	text = strings.TrimSpace(text)
	switch {
	case !ok:
	case utf8.RuneCountInString(text) > MaxAbout:
		r.fault(n, CodeInvalid, "This description has more than %d characters. Shorten it.", MaxAbout)
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		r.fault(n, CodeInvalid, "Write the description on one line, without control characters.")
	}
	return text
}

// roles returns the roles of a list, the highest first. They must include every role
// above the lowest of them.
func (r *reader) roles(n *yaml.Node) (all []string) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, CodeType, "Write roles as a list, such as [OWNER, ADMIN].")
		return nil
	}
	faults := len(r.faults)
	for _, item := range n.Content {
		switch {
		case !isText(item) || !slices.Contains(Roles, item.Value):
			r.fault(item, CodeInvalid, "Unknown role. It can be %s.", orList(Roles))
		case slices.Contains(all, item.Value):
			r.fault(item, CodeDuplicate, "The role %s is already in this list.", item.Value)
		default:
			all = append(all, item.Value)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return slices.Index(Roles, a) - slices.Index(Roles, b) })
	switch {
	case len(r.faults) > faults:
	case len(all) == 0:
		r.fault(n, CodeRequired, "OWNER has every action. Write at least [OWNER].")
	case !slices.Equal(all, Roles[:len(all)]):
		lowest := slices.Index(Roles, all[len(all)-1])
		r.fault(n, CodeNotClosed, "A higher role has every action of a lower one. Write [%s].", strings.Join(Roles[:lowest+1], ", "))
	}
	return all
}

func (r *reader) resourceOf(n *yaml.Node, declared []Resource) string {
	name, ok := r.text(n, "resource")
	isDeclared := slices.ContainsFunc(declared, func(d Resource) bool { return d.Name == name })
	if ok && !isDeclared {
		r.fault(n, CodeUnknown, `The resource %s is not declared. Add it to "resources", such as "resources: {invoice: {amount: long}}".`, quote(name))
	}
	return name
}

func (r *reader) resources(n *yaml.Node) (all []Resource) {
	for _, p := range r.pairs(n, "resources") {
		faults := len(r.faults)
		switch name := p.key.Value; {
		case slices.Contains(reservedTypes, name):
			r.fault(p.key, CodeReserved, "The resource %s is Doorward's own. Choose another name.", quote(name))
		default:
			r.checkName(p.key, resourceName, "a resource", "one word of small letters a to z, digits and _, beginning with a letter")
		}
		isNamed := len(r.faults) == faults
		if attributes := r.attributes(p.value); isNamed {
			all = append(all, Resource{p.key.Value, attributes, p.key.Line, p.key.Column})
		}
	}
	return all
}

func (r *reader) attributes(n *yaml.Node) (all []Attribute) {
	for _, p := range r.pairs(n, "the attributes") {
		faults := len(r.faults)
		r.checkName(p.key, attributeName, "an attribute", "one word of letters a to z or A to Z, digits and _, beginning with a letter")
		if !isText(p.value) || !slices.Contains(Types, p.value.Value) {
			r.fault(p.value, CodeInvalid, "Unknown type of an attribute. It can be %s.", orList(Types))
		}
		if len(r.faults) == faults {
			all = append(all, Attribute{p.key.Value, p.value.Value})
		}
	}
	return all
}

func (r *reader) checkName(n *yaml.Node, form *regexp.Regexp, what, rule string) {
	switch {
	case len(n.Value) > MaxName || !form.MatchString(n.Value):
		r.fault(n, CodeInvalid, "%s is not a name of %s. Write %s, at most %d characters.", quote(n.Value), what, rule, MaxName)
	case slices.Contains(reservedWords, n.Value):
		r.fault(n, CodeReserved, "%s has a meaning in policies. Choose another name.", quote(n.Value))
	}
}
