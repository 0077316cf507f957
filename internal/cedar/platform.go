package cedar

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/cedar-policy/cedar-go/types"
)

// Limits on the operator's own text; nesting is bounded as in Parse.
const (
	maxPlatformBytes    = 1 << 20
	maxPlatformPolicies = 1_000
)

// Entities are what the operator's own policies know beside the request.
type Entities struct{ known types.EntityMap }

// ParseEntities reads entities in Cedar's JSON: a list of {uid: {type, id}, attrs,
// parents}.
func ParseEntities(text []byte) (Entities, error) {
	var known types.EntityMap
	if err := json.Unmarshal(text, &known); err != nil {
		return Entities{}, fmt.Errorf("read the entities: %w", err)
	}
	return Entities{known}, nil
}

// ParsePlatform reads the operator's own policies: permit and forbid, each with an
// @id of its own, for actions of the schema. Types are not checked, since callers may
// state attributes that no schema declares; a policy that errs refuses.
func ParsePlatform(text string, entities Entities, schema *Schema) (*Set, Faults) {
	r := &reader{schema: schema, platform: true}
	set, faults := r.set(text, limits{maxPlatformBytes, maxPlatformPolicies})
	if set == nil {
		return nil, faults
	}
	if set.known = entities.known; set.known == nil {
		set.known = types.EntityMap{} // nil says that the set is a tenant's
	}
	return set, nil
}

// resource returns the resource of a request, over what is known of it. Of the
// declared attributes it has those that are read.
func (s *Set) resource(r *Resource, read []types.String) *types.Entity {
	declared, attributes := s.schema.resources[r.Type], types.RecordMap{}
	for _, name := range read {
		if value := declared[string(name)].value(r.Attributes[string(name)]); value != nil {
			attributes[name] = value
		}
	}
	e := s.overlay(types.Entity{
		UID:        types.NewEntityUID(types.EntityType(r.Type), types.String(r.ID)),
		Attributes: types.NewRecord(attributes),
	}, s.undeclared(r))
	return &e
}

// undeclared returns the attributes that the schema does not declare, which only the
// operator's own policies read.
func (s *Set) undeclared(r *Resource) map[string]any {
	if s.known == nil {
		return nil
	}
	others := maps.Clone(r.Attributes)
	for name := range s.schema.resources[r.Type] {
		delete(others, name)
	}
	return others
}

// overlay lays an entity and the attributes that a caller states over what is known
// of it. In a tenant's set it returns the entity, so that what policies read is what
// the schema says.
func (s *Set) overlay(e types.Entity, stated map[string]any) types.Entity {
	if s.known == nil {
		return e
	}
	stored := s.known[e.UID]
	attributes := stored.Attributes.Map()
	if attributes == nil {
		attributes = types.RecordMap{}
	}
	maps.Copy(attributes, e.Attributes.Map())
	maps.Copy(attributes, record(stated).Map())
	parents := append(stored.Parents.Slice(), e.Parents.Slice()...)
	return types.Entity{
		UID: e.UID, Parents: types.NewEntityUIDSet(parents...),
		Attributes: types.NewRecord(attributes), Tags: stored.Tags,
	}
}

// record returns what a caller states in the engine's terms. What Cedar has no value
// for, like null and fractions, is left out.
func record(stated map[string]any) types.Record {
	m := types.RecordMap{}
	for name, v := range stated {
		if value := anyValue(v); value != nil {
			m[types.String(name)] = value
		}
	}
	return types.NewRecord(m)
}

// anyValue returns a value of decoded JSON in the engine's terms, nil where there is
// none.
func anyValue(v any) types.Value {
	switch v := v.(type) {
	case string:
		return types.String(v)
	case bool:
		return types.Boolean(v)
	case map[string]any:
		return record(v)
	case []any:
		values := make([]types.Value, 0, len(v))
		for _, e := range v {
			if value := anyValue(e); value != nil {
				values = append(values, value)
			}
		}
		return types.NewSet(values...)
	}
	return long(v)
}
