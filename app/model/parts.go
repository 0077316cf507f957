package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/app/rules"
)

// The kinds of parts of a model, besides its actions.
const (
	PolicyPart = "policy" // of the operator
	EntityPart = "entity"
)

// PartChange is the change of an operator's policy, or of an entity, between two models.
type PartChange struct {
	Kind   string
	Name   string // the policy's id in quotes, or the entity as policies write it
	Before string // empty: added
	After  string // empty: removed
}

// partChanges returns what differs from an earlier version: policies, then entities, each by
// name.
func partChanges(base Version, file *modelfile.File, text string) (all []PartChange, err error) {
	before, err := partsOf(base)
	if err != nil {
		return nil, err
	}
	after, err := parts(file, text)
	if err != nil {
		return nil, err
	}
	for name := range union(before, after) {
		c := PartChange{name.kind, name.name, before[name], after[name]}
		if c.Before != c.After {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b PartChange) int { return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

type part struct{ kind, name string }

func union(a, b map[part]string) map[part]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func partsOf(v Version) (map[part]string, error) {
	file, err := modelfile.ReadStored([]byte(v.Text))
	if err != nil || v.Version == 0 {
		return map[part]string{}, err
	}
	return parts(file, v.Text)
}

// parts returns the policies and entities of a model in a canonical form, in which a change of
// the layout makes no difference.
func parts(file *modelfile.File, text string) (map[part]string, error) {
	all := map[part]string{}
	policies, err := rules.OperatorPolicies(text)
	if err != nil {
		return nil, err
	}
	for id, text := range policies {
		all[part{PolicyPart, strconv.Quote(id)}] = text
	}
	if len(file.Entities) == 0 {
		return all, nil
	}
	var entities []map[string]any
	if err := json.Unmarshal(file.Entities, &entities); err != nil {
		return nil, fmt.Errorf("model: read the entities: %w", err)
	}
	for _, e := range entities {
		text, err := json.Marshal(e) // with sorted names
		if err != nil {
			return nil, fmt.Errorf("model: write an entity: %w", err)
		}
		uid, _ := e["uid"].(map[string]any)
		all[part{EntityPart, fmt.Sprintf("%v::%q", uid["type"], uid["id"])}] = string(text)
	}
	return all, nil
}
