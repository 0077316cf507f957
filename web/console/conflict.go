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

// edited is the part of a page with a form that edits something. The form has the values
// that it was made with in the field "was". So if somebody else has changed the object
// since, what the person changed is kept, and what the form only repeats isn't.
type edited struct {
	Was       string
	Conflicts []conflict
}

// conflict is a field that two people have changed. The form keeps what was typed.
type conflict struct {
	Label         string // key of a message
	Kind          string // of the values: role, check, minutes, or text
	Typed, Stored []string
}

// conflicted are values of a conflict, for templates.
type conflicted struct {
	Kind   string
	Values []string
}

// Of returns the values with their kind.
func (c conflict) Of(values []string) conflicted { return conflicted{c.Kind, values} }

// Minutes is a duration; text that is no number is none.
func (conflicted) Minutes(text string) time.Duration {
	n, _ := strconv.Atoi(text)
	return time.Duration(n) * time.Minute
}

// editedField is a field of such a form.
type editedField struct {
	name, label, kind string
	now               []string // as stored
	typed             []string // as sent
	set               func(to []string)
}

// textField is a field with one text.
func textField(c *ui.Call, name, label, now string) editedField {
	return editedField{
		name: name, label: label, now: nonEmpty(now), typed: nonEmpty(c.Value(name)),
		set: func(to []string) { c.Preset(name, strings.Join(to, "")) },
	}
}

// listField is a text field with several words.
func listField(c *ui.Call, name, label string, now []string) editedField {
	return editedField{
		name: name, label: label, now: now, typed: strings.Fields(strings.ReplaceAll(c.Value(name), ",", " ")),
		set: func(to []string) { c.Preset(name, strings.Join(to, "\n")) },
	}
}

// choiceField is a group of checkboxes.
func choiceField(c *ui.Call, name, label, kind string, now []string) editedField {
	return editedField{
		name: name, label: label, kind: kind, now: sorted(now), typed: sorted(c.Values(name)),
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

// The fields that remember, for the page in another language, that somebody else's change
// was met, and which fields both have changed.
const (
	wasField      = "was"
	staleField    = "stale"
	conflictField = "conflict"
)

// keepTyped prepares a form that is shown again. After somebody else's change it keeps what
// the person changed, takes the current value of all else, and has the current version: sent
// again, it replaces what is shown as a conflict, and undoes nothing else. A page with
// several forms calls it for each; the first field says which of them was sent.
func keepTyped(c *ui.Call, version, note string, fields []editedField) (e edited, shown string) {
	now := url.Values{"_": {"1"}} // never empty, so that the values of empty fields are known
	for _, f := range fields {
		now[f.name] = f.now
	}
	e.Was = now.Encode()
	isSent := c.Values(fields[0].name) != nil
	if c.Refused() == doorward.CodePreconditionFailed {
		c.Preset("version", version)
		c.Preset(staleField, "1")
		if isSent {
			meet(c, fields)
			c.Preset(wasField, e.Was)
		}
	} else if c.Value(staleField) != "" {
		shown = note
	}
	if !isSent {
		return e, shown
	}
	if was := c.Value(wasField); was != "" {
		e.Was = was
	}
	for _, f := range fields {
		if slices.Contains(c.Values(conflictField), f.name) {
			e.Conflicts = append(e.Conflicts, conflict{f.label, f.kind, f.typed, f.now})
		}
	}
	return e, shown
}

// meet takes over what only somebody else has changed, and remembers what both have.
func meet(c *ui.Call, fields []editedField) {
	was, err := url.ParseQuery(c.Value(wasField))
	known := err == nil && len(was) > 0
	var both []string
	for _, f := range fields {
		switch before := was[f.name]; {
		case slices.Equal(f.typed, f.now):
		case known && slices.Equal(f.typed, before):
			f.set(f.now)
		case !known || !slices.Equal(f.now, before):
			both = append(both, f.name)
		}
	}
	c.PresetAll(conflictField, both)
}
