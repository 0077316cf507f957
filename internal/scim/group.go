package scim

import (
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Group is what a directory says about a group in a POST or a PUT.
type Group struct {
	DisplayName string
	ExternalID  string
	Members     []string // ids, each once, sorted
}

// GroupChange is what the operations of a PATCH come to, whatever the group holds.
type GroupChange struct {
	DisplayName *string // nil: as it was
	ExternalID  *string // nil: as it was; empty: taken away
	// Whole: the members are In and nobody else. Otherwise those of In come in, and those of Out go.
	Whole bool
	In    []string // ids, each once, sorted
	Out   []string // ids, each once, sorted, none of In; empty with Whole
}

// ParseGroup reads the body of a POST or a PUT. A group without a displayName is invalidValue.
func ParseGroup(body []byte) (Group, error) {
	operations, err := membersOf(body, replace, path{})
	if err != nil {
		return Group{}, err
	}
	change, err := PatchGroup(operations, false)
	if err != nil {
		return Group{}, err
	}
	if change.DisplayName == nil {
		return Group{}, refuse(InvalidValue, "Send a displayName.")
	}
	g := Group{DisplayName: *change.DisplayName, Members: change.In}
	if change.ExternalID != nil {
		g.ExternalID = *change.ExternalID
	}
	return g, nil
}

// PatchGroup returns what operations come to. With emptyByRemove, "remove" of "members" that names nobody
// takes all; else it is noTarget, since some directories send it for a group that they failed to read. More
// than MaxMembers are refused with status 413.
func PatchGroup(operations []Operation, emptyByRemove bool) (GroupChange, error) {
	g := groupPatch{emptyByRemove: emptyByRemove, in: map[string]bool{}}
	for _, o := range operations {
		if err := g.apply(&o); err != nil {
			return GroupChange{}, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.in)) {
		switch {
		case g.in[id]:
			g.change.In = append(g.change.In, id)
		case !g.change.Whole:
			g.change.Out = append(g.change.Out, id)
		}
	}
	return g.change, nil
}

// groupPatch collects the operations of a PATCH.
type groupPatch struct {
	emptyByRemove bool
	change        GroupChange
	in            map[string]bool // the ids that were named: whether they are in by what was said last
	named         int             // how many ids were named so far
}

func (g *groupPatch) apply(o *Operation) error {
	if o.path.schema != core || o.path.only == Users {
		return nil
	}
	switch o.path.name {
	case "members":
		return g.applyMembers(o)
	case "displayname":
		t, err := o.required()
		g.change.DisplayName = &t
		return err
	}
	externalID := ""
	target, err := o.target(map[string]*string{"externalid": &externalID})
	if err == nil && target != nil {
		externalID, err = o.text()
		g.change.ExternalID = &externalID
	}
	return err
}

func (g *groupPatch) applyMembers(o *Operation) error {
	switch {
	case o.path.picks:
		return g.applySelected(o)
	case o.path.sub != "" && o.path.sub != "value":
		return nil // the name of a member, say: it isn't kept
	case o.verb == remove && namesNobody(o.value):
		if !g.emptyByRemove {
			return refuse(NoTarget, `Name the members to remove, as in members[value eq "…"]. To empty the group, replace members by [].`)
		}
		g.startOver()
		return nil
	case o.verb == replace:
		g.startOver()
	}
	if isNull(o.value) {
		return nil
	}
	return eachItem(o.value, func(item jsontext.Value) error {
		id, err := parseMember(item)
		if err != nil {
			return err
		}
		return g.say(id, o.verb != remove)
	})
}

// startOver forgets all members, those of the group and those that were named.
func (g *groupPatch) startOver() {
	g.change.Whole = true
	clear(g.in)
}

// say notes that a member is in, or out.
func (g *groupPatch) say(id string, isIn bool) error {
	if g.named++; g.named > MaxMembers {
		return &Error{Status: http.StatusRequestEntityTooLarge, Detail: "Send at most 10000 members in one request."}
	}
	g.in[id] = isIn
	return nil
}

// applySelected removes the members that a filter names. Members have nothing else that can be changed.
func (g *groupPatch) applySelected(o *Operation) error {
	ids, err := selectedMembers(o.path.filter)
	switch {
	case err != nil:
		return err
	case o.path.sub == "display":
		return nil // isn't kept
	case o.verb != remove || o.path.sub != "":
		return refuse(Mutability, "Add and remove members: what a member is can't be changed.")
	}
	for _, id := range ids {
		if err := g.say(id, false); err != nil {
			return err
		}
	}
	return nil
}

// selectedMembers returns the ids that a filter names: one, or several joined by or.
func selectedMembers(filter string) (ids []string, err error) {
	comparisons, err := parseComparisons(filter)
	isAnd := len(comparisons) > 1
	if err != nil {
		comparisons, err = parseAlternatives(filter)
	}
	if err != nil {
		return nil, refuse(InvalidFilter, `Select members as in members[value eq "…"].`)
	}
	for _, c := range comparisons {
		if isAnd || c.path != (path{name: "value"}) || unquote(c.value) == "" {
			return nil, refuse(NoTarget, `Select members by their value, as in members[value eq "…"] or members[value eq "…" or value eq "…"].`)
		}
		ids = append(ids, unquote(c.value))
	}
	return ids, nil
}

// namesNobody reports whether the value of a remove is absent, null or an empty list.
func namesNobody(value jsontext.Value) bool { return isNull(value) || isEmptyList(value) }

// parseMember reads the id of a member: an object with a value, or the id itself.
func parseMember(item jsontext.Value) (id string, err error) {
	value := item
	if item.Kind() == jsontext.KindBeginObject {
		value, err = valueOf(item)
	}
	if err == nil {
		id, err = text("members.value", value)
	}
	if err == nil && id == "" {
		err = refuse(InvalidValue, "Send the id of each member as its value.")
	}
	return id, err
}
