package cedar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cedar-policy/cedar-go/types"
)

// EntityFault is what is wrong with one of the entities given to WithEntities.
type EntityFault struct {
	Index   int // in the list
	Message string
}

// typeOwnUser is the type of the operator's own users, which are entities. Doorward's are
// of typeUser.
const typeOwnUser = "user"

type entityJSON struct {
	UID     entityName      `json:"uid"`
	Attrs   map[string]any  `json:"attrs"`
	Parents []entityName    `json:"parents"`
	Tags    json.RawMessage `json:"tags"`
}

type entityName struct{ Type, ID string }

func (u entityName) uid() types.EntityUID {
	return types.NewEntityUID(types.EntityType(u.Type), types.String(u.ID))
}

// WithEntities returns the schema with the operator's entities, a JSON list of {uid:
// {type, id}, attrs, parents, tags}, where all but the uid may be absent. Attributes that
// the schema declares are given as Resource.Attributes takes them, others as Cedar's own
// JSON has them. An entity that breaks this has a fault; the error is for a text that is no such
// list. The caller makes sure that no entity is its own ancestor.
func (s *Schema) WithEntities(text []byte) (*Schema, []EntityFault, error) {
	var all []entityJSON
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, nil, fmt.Errorf("read the entities: %w", err)
	}
	extended := *s
	extended.known, extended.types = make(types.EntityMap, len(all)), map[types.EntityType]bool{}
	for _, e := range all { // names first: attributes refer to them
		extended.known[e.UID.uid()] = types.Entity{}
		for _, named := range append(e.Parents, e.UID) {
			extended.types[types.EntityType(named.Type)] = true
		}
	}
	var faults []EntityFault
	for i, e := range all {
		entity, err := extended.readEntity(e)
		if err != nil {
			faults = append(faults, EntityFault{i, shorten(err.Error())})
		}
		extended.known[entity.UID] = entity
	}
	return &extended, faults, nil
}

func (s *Schema) readEntity(e entityJSON) (types.Entity, error) {
	entity := types.Entity{UID: e.UID.uid()}
	var parents []types.EntityUID
	for _, p := range e.Parents {
		parents = append(parents, p.uid())
	}
	entity.Parents = types.NewEntityUIDSet(parents...)
	if len(e.Tags) > 0 {
		if err := json.Unmarshal(e.Tags, &entity.Tags); err != nil {
			return entity, fmt.Errorf("the tags can't be read: %w", err)
		}
	}
	attributes := types.RecordMap{}
	for _, name := range slices.Sorted(maps.Keys(e.Attrs)) {
		value, err := s.readAttribute(e.UID.Type, name, e.Attrs[name])
		if err != nil {
			return entity, err
		}
		attributes[types.String(name)] = value
	}
	entity.Attributes = types.NewRecord(attributes)
	return entity, nil
}

func (s *Schema) readAttribute(kind, name string, v any) (types.Value, error) {
	if declared, ok := s.resources[kind][name]; ok {
		if value := s.value(declared, v); value != nil {
			return value, nil
		}
		return nil, fmt.Errorf("the attribute %q of %s is declared as %s", name, kind, declared)
	}
	text, err := json.Marshal(map[string]any{name: v})
	if err != nil {
		return nil, err
	}
	var one types.Record
	if err := json.Unmarshal(text, &one); err != nil {
		return nil, fmt.Errorf("the attribute %q can't be read: %w", name, err)
	}
	value, _ := one.Get(types.String(name))
	return value, nil
}

// Declares reports whether there is an entity of the type with the id.
func (s *Schema) Declares(kind, id string) bool {
	_, ok := s.known[entityName{kind, id}.uid()]
	return ok
}

// Declared returns the ids of the entities of a type, sorted.
func (s *Schema) Declared(kind string) []string {
	var ids []string
	for uid := range s.known {
		if uid.Type == types.EntityType(kind) {
			ids = append(ids, string(uid.ID))
		}
	}
	slices.Sort(ids)
	return ids
}

// entity returns an entity with the attributes that it has in the schema. Those that a caller
// states replace them. An attribute that is stated with another type than the declared one, or
// with a value that Cedar doesn't have, is absent.
func (s *Schema) entity(uid types.EntityUID, stated map[string]any) types.Entity {
	e := s.known[uid]
	e.UID = uid
	if len(stated) == 0 {
		return e
	}
	attributes := e.Attributes.Map()
	if attributes == nil {
		attributes = types.RecordMap{}
	}
	for name, v := range stated {
		if value := s.statedValue(string(uid.Type), name, v); value != nil {
			attributes[types.String(name)] = value
		} else {
			delete(attributes, types.String(name))
		}
	}
	e.Attributes = types.NewRecord(attributes)
	return e
}

func (s *Schema) statedValue(kind, name string, v any) types.Value {
	if declared, ok := s.resources[kind][name]; ok {
		return s.value(declared, v)
	}
	return anyValue(v)
}

// value is Type.value, but a user may be one of the operator's own.
func (s *Schema) value(t Type, v any) types.Value {
	if id, ok := v.(string); ok && t == User && s.Declares(typeOwnUser, id) {
		return types.NewEntityUID(typeOwnUser, types.String(id))
	}
	return t.value(v)
}

// isType reports whether there can be entities of the type.
func (s *Schema) isType(t types.EntityType) bool {
	_, isResource := s.resources[string(t)]
	return isResource || s.types[t] || slices.Contains([]types.EntityType{typeUser, typeKey, typeRole, typeTenant, typeAction, typeOwnUser}, t)
}

// record returns what a caller states as a Cedar record. Values that Cedar doesn't have, such
// as null and fractions, are left out.
func record(stated map[string]any) types.Record {
	m := types.RecordMap{}
	for name, v := range stated {
		if value := anyValue(v); value != nil {
			m[types.String(name)] = value
		}
	}
	return types.NewRecord(m)
}

// anyValue returns decoded JSON as a Cedar value, nil where there is none.
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
