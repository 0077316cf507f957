// Package rules compiles what decides in a tenant: the platform's model and the tenant's
// own roles. Package store reads them and keeps what is compiled.
package rules

import (
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/modelfile"
	"github.com/doorward/doorward/store"
)

// Compiler compiles rules. It keeps the last model, which the rules of all tenants share.
// The zero Compiler is ready for use.
type Compiler struct {
	mu       sync.Mutex
	revision int64
	model    *doorward.Model
}

// Compile is a store.CompileRules.
func (c *Compiler) Compile(s store.RulesSource) (*doorward.Rules, error) {
	model, err := c.modelOf(s)
	if err != nil {
		return nil, err
	}
	return doorward.NewRules(s.Version, model, s.Roles), nil
}

func (c *Compiler) modelOf(s store.RulesSource) (*doorward.Model, error) {
	if s.Version.Model == 0 {
		return doorward.BuiltIn(), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision == s.Version.Model {
		return c.model, nil
	}
	file, err := modelfile.ReadStored([]byte(s.Model))
	if err != nil {
		return nil, err
	}
	model, err := Model(file)
	if err != nil {
		return nil, err
	}
	c.revision, c.model = s.Version.Model, model
	return model, nil
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
