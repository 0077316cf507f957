// Package model shows, compares and applies the model of the platform: its own actions,
// which roles grant them, the resources that they act on, and the operator's policies and
// entities.
//
// A model is a text that package modelfile reads. All versions of it are kept; the last one is
// in force, on every node before Apply returns. Until one is applied, the built-in model,
// version 0, is in force.
package model

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/store"
)

// builtIn is the text of doorward.BuiltIn.
//
//go:embed builtin.yaml
var builtIn string

// Version is one version of the model.
type Version = store.ModelVersion

// Models is the feature. Make it with New.
type Models struct {
	writer *access.Writer
	db     *store.DB
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB) *Models { return &Models{writer, db} }

// object is what the events are about.
var object = doorward.Object{Type: "model"}

// Current returns the current model; version 0 is the built-in one, without CreatedAt and
// CreatedBy. Errors: unavailable.
func (m *Models) Current(ctx context.Context) (Version, error) {
	return current(ctx, m.db.Read())
}

func current(ctx context.Context, read store.Reader) (Version, error) {
	v, err := read.Model(ctx)
	if errors.Is(err, store.ErrNone) {
		return Version{Text: builtIn}, nil
	}
	return v, err
}

// Version returns a version that is or was in force. Errors: not_found, unavailable.
func (m *Models) Version(ctx context.Context, number int64) (Version, error) {
	all, err := m.db.Read().ModelVersions(ctx)
	if err != nil || number == 0 {
		return Version{Text: builtIn}, err
	}
	i := slices.IndexFunc(all, func(v Version) bool { return v.Version == number })
	if i < 0 {
		return Version{}, doorward.Fail(doorward.CodeNotFound, "There is no version %d of the model. The last is %d.", number, len(all))
	}
	return all[i], nil
}

// Tag returns the ETag of a version.
func Tag(v Version) string { return strconv.FormatInt(v.Version, 10) }

// Check returns validation_failed unless the text can be applied, with the line and
// column of each fault.
func Check(text string) error {
	_, err := read(text)
	return err
}

func read(text string) (*modelfile.File, error) {
	if text == "" {
		return nil, doorward.Invalid("/text", "required", "Send the model, as YAML.")
	}
	file, err := modelfile.Read([]byte(text))
	var faults modelfile.Faults
	if errors.As(err, &faults) {
		return nil, invalid(faults)
	}
	if err != nil {
		return nil, err
	}
	err = rules.Check(file)
	if errors.As(err, &faults) {
		return nil, invalid(faults)
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

func invalid(faults modelfile.Faults) *doorward.Error {
	var fields []doorward.FieldError
	for _, f := range faults {
		fields = append(fields, doorward.FieldError{Pointer: "/text", Line: f.Line, Column: f.Column, Code: f.Code, Message: f.Message})
	}
	return doorward.InvalidFields(fields...)
}

// Applied is a version that is in force on every node.
type Applied struct {
	Model      Version
	Changes    []modelfile.Change // of actions
	Parts      []PartChange
	Broken     []BrokenPolicy // policies of tenants that no longer apply; only with force
	Revocation doorward.Revocation
}

// Apply makes the text the model of the installation, and returns when it is in force on
// every node. If it is the current text, there is no new version. Keys and custom roles keep
// actions that the model lacks, without effect. Unless versions is empty, it must have the tag
// of the current version. If policies of tenants name something that the text no longer has,
// Apply changes nothing; with force it applies the text, and those policies no longer apply.
// Errors: validation_failed, precondition_failed, model_in_use without force, forbidden,
// unavailable.
func (m *Models) Apply(ctx context.Context, by doorward.Caller, text string, versions []string, force bool) (a Applied, err error) {
	file, err := read(text)
	if err != nil {
		return a, err
	}
	a.Revocation, err = m.writer.Do(ctx, by, doorward.ModelApply, object, func(tx *access.Tx) error {
		if err := tx.LockModel(ctx); err != nil {
			return err
		}
		before, err := current(ctx, tx.Reader)
		if err != nil {
			return err
		}
		if err := doorward.CheckVersion(Tag(before), versions); err != nil {
			return err
		}
		if a = (Applied{Model: before}); before.Text == text { // reset, since the transaction may be repeated
			tx.SkipEvent()
			return nil
		}
		if a.Changes, err = changes(before, file); err != nil {
			return err
		}
		if a.Parts, err = partChanges(before, file, text); err != nil {
			return err
		}
		if a.Broken, err = brokenPolicies(ctx, tx.Reader, before, text); err != nil {
			return err
		}
		if len(a.Broken) > 0 && !force {
			return inUseError(a.Broken)
		}
		a.Model = Version{Version: before.Version + 1, Text: text, CreatedAt: tx.Now, CreatedBy: tx.By.ID}
		return insert(ctx, tx, before, a)
	})
	return a, err
}

// changes returns how the file changes the actions of an earlier version.
func changes(base Version, file *modelfile.File) ([]modelfile.Change, error) {
	before, err := modelfile.ReadStored([]byte(base.Text))
	if err != nil {
		return nil, fmt.Errorf("model: version %d: %w", base.Version, err)
	}
	return modelfile.Diff(before, file), nil
}

func insert(ctx context.Context, tx *access.Tx, before Version, a Applied) error {
	added, err := tx.InsertModel(ctx, a.Model)
	if err != nil {
		return err
	}
	if !added {
		return doorward.Fail(doorward.CodePreconditionFailed, "Somebody else has just applied a model. Compare yours with that one, and apply it again.")
	}
	tx.Changed("version", Tag(before), Tag(a.Model))
	for _, c := range a.fields() {
		if len(c.names) > 0 {
			tx.Changed(c.field, "", joinNames(c.names))
		}
	}
	if len(a.Broken) > 0 {
		tx.Changed("policiesOff", "", strconv.Itoa(len(a.Broken)))
	}
	return nil
}

// maxNames bounds the names in one field of an event.
const maxNames = 50

func joinNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		names = append(names[:maxNames:maxNames], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, " ")
}

// changedField is a field of the event, with the names of what was changed.
type changedField struct {
	field string
	names []string
}

func (a *Applied) fields() []changedField {
	var added, removed, changed, policies, entities []string
	for _, c := range a.Changes {
		switch {
		case c.Before == nil:
			added = append(added, c.Name)
		case c.After == nil:
			removed = append(removed, c.Name)
		default:
			changed = append(changed, c.Name)
		}
	}
	for _, c := range a.Parts {
		if c.Kind == PolicyPart {
			policies = append(policies, c.Name)
		} else {
			entities = append(entities, c.Name)
		}
	}
	return []changedField{
		{"actionsAdded", added},
		{"actionsRemoved", removed},
		{"actionsChanged", changed},
		{"policiesChanged", policies},
		{"entitiesChanged", entities},
	}
}

// compile returns the doorward.Model of a stored version.
func compile(v Version) (*doorward.Model, error) {
	if v.Version == 0 {
		return doorward.BuiltIn(), nil
	}
	file, err := modelfile.ReadStored([]byte(v.Text))
	if err != nil {
		return nil, fmt.Errorf("model: version %d: %w", v.Version, err)
	}
	return rules.Model(file)
}
