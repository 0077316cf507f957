// Package rules compiles what decides in a tenant: the platform's model, and the tenant's
// own roles and policies. Package store reads them and keeps what is compiled.
package rules

import (
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/cedar"
	"github.com/doorward/doorward/internal/modelfile"
	"github.com/doorward/doorward/store"
)

// Compiler compiles rules. It keeps the last model, which the rules of all tenants share.
// The zero Compiler is ready for use.
type Compiler struct {
	mu       sync.Mutex
	revision int64
	model    *doorward.Model
	schema   *cedar.Schema // of the model
}

// Compile is a store.CompileRules.
func (c *Compiler) Compile(s store.RulesSource) (*doorward.Rules, error) {
	model, schema, err := c.modelOf(s)
	if err != nil {
		return nil, err
	}
	rules := doorward.NewRules(s.Version, model, s.Roles)
	policy, err := compile(s.Policies, schema)
	if policy == nil || err != nil {
		return rules, err
	}
	return rules.WithPolicy(policy), nil
}

func (c *Compiler) modelOf(s store.RulesSource) (*doorward.Model, *cedar.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.model != nil && c.revision == s.Version.Model {
		return c.model, c.schema, nil
	}
	model, schema, err := read(s.Model)
	if err != nil {
		return nil, nil, err
	}
	c.revision, c.model, c.schema = s.Version.Model, model, schema
	return model, schema, nil
}

// read returns the actions of a model, and the schema of policies that it makes. Empty is
// the built-in model.
func read(text string) (*doorward.Model, *cedar.Schema, error) {
	if text == "" {
		schema, err := Schema(doorward.BuiltIn(), nil)
		return doorward.BuiltIn(), schema, err
	}
	file, err := modelfile.ReadStored([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	model, err := Model(file)
	if err != nil {
		return nil, nil, err
	}
	schema, err := Schema(model, file.Resources)
	return model, schema, err
}

// Model returns the list of actions of a model file and Doorward's own.
func Model(file *modelfile.File) (*doorward.Model, error) {
	var platform []doorward.PlatformAction
	for _, a := range file.Actions {
		platform = append(platform, doorward.PlatformAction{
			Name: doorward.Action(a.Name), About: a.About, Lowest: doorward.Role(a.Roles[len(a.Roles)-1]),
			Resource: a.Resource, StepUp: a.StepUp, NoKeys: !a.Keys,
		})
	}
	return doorward.NewModel(platform)
}
