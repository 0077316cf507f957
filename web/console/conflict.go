package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// edited is the part of a page with a form that edits an object. The field "was" has the
// values that the form was made with, so that after somebody else's change it is known
// which values the person has changed: only those are kept.
type edited struct {
	Was       string
	Conflicts []conflict
}

// conflict is a field that two people have changed. The form keeps what was typed.
type conflict struct {
	Label         string // key of a message
	Kind          string // of the values: role, check, minutes, or that of a wordField; empty for text
	Typed, Stored []string
}

// conflictValues are values of a conflict, for templates.
type conflictValues struct {
	Kind   string
	Values []string
}

// WithKind returns the values with their kind.
func (c conflict) WithKind(values []string) conflictValues { return conflictValues{c.Kind, values} }

// Minutes returns the duration of a number of minutes; 0 for other text.
func (conflictValues) Minutes(text string) time.Duration {
	n, _ := strconv.Atoi(text)
	return time.Duration(n) * time.Minute
}

// editedField is a field of a form that edits an object.
type editedField struct {
	name, label, kind string
	stored            []string
	typed             []string // as sent
	set               func(to []string)
}

// textField is a field with one text.
func textField(c *ui.Call, name, label, stored string) editedField {
	return editedField{
		name: name, label: label, stored: nonEmpty(stored), typed: nonEmpty(c.Value(name)),
		set: func(to []string) { c.Preset(name, strings.Join(to, "")) },
	}
}

// wordField is a field with one of several words, which a conflict shows by messages of its kind. Anything
// else that was sent is shown as it is.
func wordField(c *ui.Call, name, label, kind, stored string, words []string) editedField {
	f := textField(c, name, label, stored)
	if typed := c.Value(name); typed == "" || slices.Contains(words, typed) {
		f.kind = kind
	}
	return f
}

// listField is a text field with several words.
func listField(c *ui.Call, name, label string, stored []string) editedField {
	return editedField{
		name: name, label: label, stored: stored, typed: strings.Fields(strings.ReplaceAll(c.Value(name), ",", " ")),
		set: func(to []string) { c.Preset(name, strings.Join(to, "\n")) },
	}
}

// choiceField is a group of checkboxes.
func choiceField(c *ui.Call, name, label, kind string, stored []string) editedField {
	return editedField{
		name: name, label: label, kind: kind, stored: sorted(stored), typed: sorted(c.Values(name)),
		set: func(to []string) { c.PresetAll(name, to) },
	}
}

func nonEmpty(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return []string{text}
}

func sorted(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}

// Hidden fields, which also keep the state of the form for the page in another language: the
// values that it was made with, whether it was refused because of somebody else's change,
// and the names of the fields that both have changed.
const (
	wasField      = "was"
	staleField    = "stale"
	conflictField = "conflict"
)

// changedSince is the notice of a page without fields to keep.
const changedSince = "notice." + string(doorward.CodePreconditionFailed)

// keepTyped prepares a page that is shown again. If the change was refused because of somebody
// else's, the form gets the current version; the fields that this person has changed keep what was
// typed, and the others get the stored values. If that page is then shown in another language, that
// request has no refusal, and the notice is note. On a page with several forms, the sent one is
// known by its first field.
func keepTyped(c *ui.Call, version, note string, fields []editedField) (e edited, notice string) {
	stored := url.Values{"_": {"1"}} // never empty, so that the values of empty fields are known
	for _, f := range fields {
		stored[f.name] = f.stored
	}
	e.Was = stored.Encode()
	isSent := len(fields) > 0 && c.Values(fields[0].name) != nil
	if c.RefusalCode() == doorward.CodePreconditionFailed {
		if c.Value("version") != "" {
			c.Preset("version", version)
		}
		c.Preset(staleField, "1")
		if isSent {
			mergeChanges(c, fields)
			c.Preset(wasField, e.Was)
		}
	} else if c.Value(staleField) != "" {
		notice = note
	}
	if !isSent {
		return e, notice
	}
	if was := c.Value(wasField); was != "" {
		e.Was = was
	}
	for _, f := range fields {
		if slices.Contains(c.Values(conflictField), f.name) {
			e.Conflicts = append(e.Conflicts, conflict{f.label, f.kind, f.typed, f.stored})
		}
	}
	return e, notice
}

// mergeChanges takes over the fields that only somebody else has changed, and keeps the names
// of those that both have changed. A form without earlier values counts as changed by both.
func mergeChanges(c *ui.Call, fields []editedField) {
	was, err := url.ParseQuery(c.Value(wasField))
	hasEarlier := err == nil && len(was) > 0
	var both []string
	for _, f := range fields {
		switch before := was[f.name]; {
		case slices.Equal(f.typed, f.stored):
		case hasEarlier && slices.Equal(f.typed, before):
			f.set(f.stored)
		case !hasEarlier || !slices.Equal(f.stored, before):
			both = append(both, f.name)
		}
	}
	c.PresetAll(conflictField, both)
}
