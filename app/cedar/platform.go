package cedar

import (
	"fmt"
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/doorward/doorward"
)

// Limits on the operator's own text; nesting is bounded as in Parse.
const (
	maxPlatformBytes    = 1 << 20
	maxPlatformPolicies = 500
	maxID               = 128 // bytes; also in a tenant's text
)

// ParsePlatform reads the operator's own policies: permit and forbid, for the actions of
// the platform, about the schema's entities. A policy without an @id gets one by its place
// in the text: policy0, policy1, and so on. Types are not checked, since callers may state
// attributes that no schema declares; a policy that errs refuses.
func ParsePlatform(text string, schema *Schema) (*Set, Faults) {
	return (&reader{schema: schema, platform: true}).readPlatform(text)
}

// ParseStoredPlatform is ParsePlatform for a text that had no faults before. A reason that is faulty today is made to fit.
func ParseStoredPlatform(text string, schema *Schema) (*Set, Faults) {
	return (&reader{schema: schema, platform: true, stored: true}).readPlatform(text)
}

func (r *reader) readPlatform(text string) (*Set, Faults) {
	set, faults := r.readSet(text, limits{maxPlatformBytes, maxPlatformPolicies})
	if set != nil {
		set.platform = true
	}
	return set, faults
}

// nameFindings finds types that no entity can have, and roles that not every tenant has.
func (r *reader) nameFindings(p *policy) findings {
	all := findings{}
	checkType := func(t types.EntityType) {
		if !r.schema.isType(t) {
			all.add(WrongType, fmt.Sprintf("there is no type %s: neither the model's resources nor its entities have it", t)+r.schema.suggestType(t))
		}
	}
	checkRole := func(uid types.EntityUID) {
		if uid.Type == typeRole && !slices.Contains(builtInRoles, uid.ID) {
			all.add(WrongType, fmt.Sprintf("the platform's policies know the roles OWNER, ADMIN, USER and VIEWER, not %q: a tenant can give its own roles any name", uid.ID))
		}
	}
	for _, t := range scopeTypes(p.ast.Principal, p.ast.Resource) {
		checkType(t)
	}
	for _, uid := range scopeEntities(p.ast.Principal) {
		checkRole(uid)
	}
	inspect(p.ast, func(n ast.IsNode) bool {
		switch n := n.(type) {
		case ast.NodeValue:
			if uid, ok := n.Value.(types.EntityUID); ok {
				checkType(uid.Type)
				checkRole(uid)
			}
		case ast.NodeTypeIs:
			checkType(n.EntityType)
		case ast.NodeTypeIsIn:
			checkType(n.EntityType)
		}
		return true
	})
	return all
}

// builtInRoles are the roles that every tenant has under these names.
var builtInRoles = []types.String{"OWNER", "ADMIN", "USER", "VIEWER"}

// scopeEntities are the entities that a scope names.
func scopeEntities(scope any) []types.EntityUID {
	switch scope := scope.(type) {
	case ast.ScopeTypeEq:
		return []types.EntityUID{scope.Entity}
	case ast.ScopeTypeIn:
		return []types.EntityUID{scope.Entity}
	case ast.ScopeTypeIsIn:
		return []types.EntityUID{scope.Entity}
	}
	return nil
}

// scopeTypes are the types that the scopes of a policy name.
func scopeTypes(scopes ...any) (all []types.EntityType) {
	for _, scope := range scopes {
		switch scope := scope.(type) {
		case ast.ScopeTypeEq:
			all = append(all, scope.Entity.Type)
		case ast.ScopeTypeIn:
			all = append(all, scope.Entity.Type)
		case ast.ScopeTypeIs:
			all = append(all, scope.Type)
		case ast.ScopeTypeIsIn:
			all = append(all, scope.Type, scope.Entity.Type)
		}
	}
	return all
}

// Texts returns the text of each policy by its id, as Cedar writes it, so that policies that
// differ only in spaces and comments have equal texts.
func (s *Set) Texts() map[string]string {
	texts := make(map[string]string, len(s.policies))
	for _, p := range s.policies {
		texts[p.id] = string(public(p.ast).MarshalCedar())
	}
	return texts
}

// Schema returns the schema that the text was read with.
func (s *Set) Schema() *Schema { return s.schema }

// principal returns who acts, with the attributes that are known.
func (s *Set) principal(who Principal) types.Entity {
	e := who.entity()
	if !s.platform || who.Type == "" {
		return e
	}
	return s.schema.entity(e.UID, who.Attributes)
}

// resource returns the resource of a request, with the attributes that the request states in
// place of the known ones. For a tenant's policies it has only the declared ones in read.
func (s *Set) resource(r *doorward.Resource, read []types.String) *types.Entity {
	uid := entityName{r.Type, r.ID}.uid()
	if s.platform {
		e := s.schema.entity(uid, r.Attributes)
		return &e
	}
	attributes := make(types.RecordMap, len(read))
	for _, name := range read {
		if value := s.attribute(r, name); value != nil {
			attributes[name] = value
		}
	}
	return &types.Entity{UID: uid, Attributes: types.NewRecord(attributes)}
}

// attribute returns a declared attribute of a resource for a tenant's policies, nil where it
// is absent.
func (s *Set) attribute(r *doorward.Resource, name types.String) types.Value {
	declared := s.schema.resources[r.Type][string(name)]
	switch v, isStated := r.Attributes[string(name)]; {
	case declared == "":
		return nil
	case isStated:
		return s.schema.value(declared, v)
	}
	value, _ := s.schema.known[entityName{r.Type, r.ID}.uid()].Attributes.Get(name)
	return value
}

// entities returns the entities that policies can look up besides principal and resource.
func (s *Set) entities() types.EntityMap {
	if !s.platform {
		return nil
	}
	return s.schema.known
}

// Permit returns a permit of ParsePlatform that holds for the request, and whether there is one: the first that always holds, or else the first that depends on the request. It
// ignores the policies that refuse; ask Verdict, too.
func (p *Prepared) Permit(action string, request *Request) (doorward.PolicyPermit, bool) {
	i, ok := p.set.schema.index[action]
	if !ok {
		return doorward.PolicyPermit{}, false
	}
	for _, r := range p.alwaysPermit {
		if r.applies(i) {
			return doorward.PolicyPermit{PolicyID: r.id, Line: r.line}, true
		}
	}
	if !hasBit(p.conditionalActions, i) {
		return doorward.PolicyPermit{}, false
	}
	e := p.newEvaluation(i, request)
	for _, r := range p.conditional {
		if r.applies(i) && !r.isForbid() && e.permits(r) {
			return doorward.PolicyPermit{PolicyID: r.id, Line: r.line}, true
		}
	}
	return doorward.PolicyPermit{}, false
}
