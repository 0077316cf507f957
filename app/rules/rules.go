// Package rules compiles the rules of a tenant: the platform's model, and the tenant's own roles
// and policies. Package store reads them and caches the compiled rules.
package rules

import (
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/store"
)

// Compiler compiles rules. It caches the last model, which the rules of all tenants share.
// The zero Compiler is ready for use.
type Compiler struct {
	mu       sync.Mutex
	revision int64 // RulesVersion.Model of last
	last     compiledModel
}

// Compile is a store.CompileRules.
func (c *Compiler) Compile(s store.RulesSource) (*doorward.Rules, error) {
	model, err := c.modelOf(s)
	if err != nil {
		return nil, err
	}
	rules := doorward.NewRules(s.Version, model.model, s.Roles)
	policy, err := compile(s.Policies, model)
	if policy == nil || err != nil {
		return rules, err
	}
	return rules.WithPolicy(policy), nil
}

func (c *Compiler) modelOf(s store.RulesSource) (compiledModel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.model != nil && c.revision == s.Version.Model {
		return c.last, nil
	}
	model, err := compileModel(s.Model)
	if err != nil {
		return compiledModel{}, err
	}
	c.revision, c.last = s.Version.Model, model
	return model, nil
}

// compileModel compiles the text of a model. An empty text is the built-in model.
func compileModel(text string) (compiledModel, error) {
	if text != "" {
		return compileStored(text)
	}
	schema, err := Schema(doorward.BuiltIn(), nil)
	return compiledModel{model: doorward.BuiltIn(), schema: schema}, err
}

// Model returns the model with the actions of a model file and Doorward's own.
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
