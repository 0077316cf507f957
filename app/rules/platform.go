package rules

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/cedar"
	"github.com/doorward/doorward/app/modelfile"
)

// compiledModel is what the text of a model compiles to.
type compiledModel struct {
	model    *doorward.Model
	schema   *cedar.Schema // of policies
	operator *cedar.Set    // the operator's own policies; nil without policies and entities
}

// operatorText returns the operator's policies as one text; nil without any.
func (c compiledModel) operatorText() *text {
	if c.operator == nil {
		return nil
	}
	return &text{set: c.operator, operator: true}
}

// Check returns the faults of the policies and entities of a model file that modelfile.Read
// has accepted, with their places in the file.
func Check(file *modelfile.File) error {
	_, faults, err := compileFile(file, cedar.ParsePlatform)
	if len(faults) > 0 {
		return faults
	}
	return err
}

// compileStored compiles a model that another version of Doorward may have accepted. If this
// version can't read its policies or entities, nobody may perform the platform's actions.
func compileStored(text string) (compiledModel, error) {
	file, err := modelfile.ReadStored([]byte(text))
	if err != nil {
		return compiledModel{}, err
	}
	c, faults, err := compileFile(file, cedar.ParseStoredPlatform)
	if len(faults) > 0 {
		c, _, err = compileFile(&modelfile.File{Resources: file.Resources}, cedar.ParseStoredPlatform)
	}
	return c, err
}

// compileFile compiles a model, of which parse reads the policies.
func compileFile(file *modelfile.File, parse func(string, *cedar.Schema) (*cedar.Set, cedar.Faults)) (c compiledModel, faults modelfile.Faults, err error) {
	if c.model, err = Model(file); err != nil {
		return c, nil, err
	}
	if c.schema, err = Schema(c.model, file.Resources); err != nil || file.Policies == "" && len(file.Entities) == 0 {
		return c, nil, err
	}
	if len(file.Entities) > 0 {
		schema, wrong, err := c.schema.WithEntities(file.Entities)
		if err != nil {
			return c, nil, err
		}
		for _, f := range wrong {
			line, column := file.EntityPlace(f.Index)
			faults = append(faults, modelfile.Fault{Line: line, Column: column, Code: modelfile.CodeType, Message: "In this entity " + f.Message + "."})
		}
		c.schema = schema
	}
	operator, wrong := parse(file.Policies, c.schema)
	for _, f := range wrong {
		line, column := file.PolicyPlace(f.Line, f.Column)
		faults = append(faults, modelfile.Fault{Line: line, Column: column, Code: string(f.Code), Message: "In the policies " + f.Message + "."})
	}
	c.operator = operator
	return c, faults, nil
}

// OperatorPolicies returns the texts of the operator's policies in a model, by id. An empty
// model is the built-in one.
func OperatorPolicies(model string) (map[string]string, error) {
	c, err := compileModel(model)
	if err != nil || c.operator == nil {
		return nil, err
	}
	return c.operator.Texts(), nil
}
