// Package cedar evaluates policies that are written in Cedar: it reads a text under
// limits, checks it against a schema, and evaluates it in two steps, once per
// principal and once per request.
//
//	schema, err := cedar.NewSchema(actions, resources)
//	set, faults := cedar.Parse(text, schema)
//	prepared := set.Prepare(cedar.Principal{ID: "usr_1", Role: "ADMIN", Tenant: "ten_1"})
//	verdict := prepared.Verdict("invoice.approve", &cedar.Request{Now: now, IP: ip})
//
// Parse reads the text of a tenant, which can only forbid. ParsePlatform reads the operator's,
// called the platform's, which can also permit, for actions with Action.Platform. No policy
// refuses an action that is not in the schema.
package cedar

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
)

// Type is the type of an attribute of a resource.
type Type string

// The types that an attribute may have, with the Go values that Resource.Attributes
// takes for them.
const (
	Bool     Type = "bool"     // bool
	Long     Type = "long"     // int, int64, or a float64 (up to ±2⁵³) or json.Number without a fraction
	String   Type = "string"   // string
	Strings  Type = "set"      // []string, or []any of strings
	User     Type = "user"     // string, the id of a user
	Datetime Type = "datetime" // time.Time, or a string in the format of RFC 3339
	Decimal  Type = "decimal"  // string with up to four digits after the point
	IP       Type = "ip"       // string, an address or a network
)

var cedarTypes = map[Type]string{
	Bool: "Bool", Long: "Long", String: "String", Strings: "Set<String>", User: "User", Datetime: "datetime", Decimal: "decimal", IP: "ipaddr",
}

// Action is an action that policies can refuse and, if Platform, permit.
type Action struct {
	Name     string
	Resource string // the type of its resource; "" for the tenant
	Platform bool   // policies of ParsePlatform apply to it, too
}

// Schema says which actions, resources and attributes there are. It is immutable.
type Schema struct {
	text      string
	actions   []Action                   // sorted by name
	index     map[string]int             // by name, the index in actions
	resources map[string]map[string]Type // by type and attribute
	resolved  *resolved.Schema           // the text, as cedar-go reads it
	known     types.EntityMap            // of WithEntities; nil for none
	types     map[types.EntityType]bool  // of the known entities and of their parents
}

// The entity types of every schema.
const (
	typeUser   = "User"
	typeKey    = "Key"
	typeRole   = "Role"
	typeTenant = "Tenant"
	typeAction = "Action"
)

const fixedTypes = `entity Role;
entity Tenant;
entity User in [Role] = {
  "email": String,
  "role": String,
};
entity Key in [Role] = {
  "owner": User,
};
type Request = {
  "now": datetime,
  "weekday": Long,
  "hour": Long,
  "ip": ipaddr,
  "kind": String,
  "authAge"?: Long,
  "aal"?: Long,
  "method"?: String,
  "host"?: String,
  "path"?: String,
};
`

var (
	dottedName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]*$`)
	resourceName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	// reservedWords can't name an entity type.
	reservedWords = []string{"true", "false", "if", "then", "else", "in", "is", "like", "has"}
)

// NewSchema makes the schema of actions and of resources, which are the attributes
// of each type by name. It returns an error for an invalid or repeated name, an unknown
// type, and an action whose resource is not among the resources.
func NewSchema(actions []Action, resources map[string]map[string]Type) (*Schema, error) {
	s := &Schema{actions: slices.Clone(actions), index: map[string]int{}, resources: resources}
	slices.SortFunc(s.actions, func(a, b Action) int { return strings.Compare(a.Name, b.Name) })
	var text strings.Builder
	text.WriteString(fixedTypes)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if err := writeResource(&text, name, resources[name]); err != nil {
			return nil, err
		}
	}
	for i, action := range s.actions {
		if err := s.writeAction(&text, i, action); err != nil {
			return nil, err
		}
	}
	s.text = text.String()
	return s, s.resolve()
}

func writeResource(text *strings.Builder, name string, attributes map[string]Type) error {
	if !resourceName.MatchString(name) || slices.Contains(reservedWords, name) {
		return fmt.Errorf("%q can't name a resource", name)
	}
	fmt.Fprintf(text, "entity %s = {\n", name)
	for _, attribute := range slices.Sorted(maps.Keys(attributes)) {
		cedarType, ok := cedarTypes[attributes[attribute]]
		if !ok || !dottedName.MatchString(attribute) {
			return fmt.Errorf("attribute %q of %s: no such name or type %q", attribute, name, attributes[attribute])
		}
		fmt.Fprintf(text, "  %q: %s,\n", attribute, cedarType)
	}
	text.WriteString("};\n")
	return nil
}

func (s *Schema) writeAction(text *strings.Builder, i int, action Action) error {
	if _, twice := s.index[action.Name]; twice || !dottedName.MatchString(action.Name) {
		return fmt.Errorf("%q can't name an action, or names two", action.Name)
	}
	if _, ok := s.resources[action.Resource]; !ok && action.Resource != "" {
		return fmt.Errorf("action %s: no resource %q", action.Name, action.Resource)
	}
	s.index[action.Name] = i
	fmt.Fprintf(text, "action %q appliesTo {\n  principal: [User, Key],\n  resource: [%s],\n  context: Request,\n};\n",
		action.Name, action.resourceType())
	return nil
}

// resourceType returns the entity type of the action's resource.
func (a Action) resourceType() types.EntityType {
	if a.Resource == "" {
		return typeTenant
	}
	return types.EntityType(a.Resource)
}

func (s *Schema) resolve() (err error) {
	var parsed schema.Schema
	if err = parsed.UnmarshalCedar([]byte(s.text)); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	if s.resolved, err = parsed.Resolve(); err != nil {
		return fmt.Errorf("resolve the schema: %w", err)
	}
	return nil
}

// Text returns the schema in Cedar's own syntax for schemas.
func (s *Schema) Text() string { return s.text }

func actionUID(name string) types.EntityUID {
	return types.NewEntityUID(typeAction, types.String(name))
}
