package ui

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/doorward/doorward/app/proof"
)

// Field is an input with its label, as the template "field" shows it.
type Field struct {
	Name, ID     string
	Label, Hint  string // keys of messages
	Type         string
	Autocomplete string // for password managers and browsers
	Value, Fault string
	Optional     bool
	IsLenient    bool   // may be sent empty, though the label doesn't call it optional
	Focus        bool   // has the focus when the page opens
	New          int    // a new password's minimum length in code points; else 0
	Words        string // words that a new password may not contain, separated by line breaks
	MaxLength    int    // of the value; 0 for any
	InputMode    string // which keyboard a phone shows; empty for the usual one
	Suggest      string // address that finds people while one types, for the element "suggested"; empty for none
	Min, Max     int64  // of a number
	wasSent      bool   // in the form that the page answers
}

// Confirmation are the buttons of a page that asks before something is done, as the template
// "confirmButtons" shows them.
type Confirmation struct {
	Text    string // of the button that does it; empty: nothing can be done
	Cancel  string // address of the page to go back to
	IsGrave bool   // it takes or ends something
}

func confirmation(text, cancel string, isGrave bool) Confirmation {
	return Confirmation{text, cancel, isGrave}
}

// fieldOf is the name of the field that a JSON Pointer such as "/settings/name"
// is about.
func fieldOf(pointer string) string { return pointer[strings.LastIndex(pointer, "/")+1:] }

// field makes the field of a name for the template "field", with its value and
// fault. Secrets are never sent back.
func field(f Frame, name string, attributes ...any) (Field, error) {
	input := Field{Name: name, ID: name, Label: "field." + name, Type: "text", Autocomplete: "off", Value: f.Form.Get(name), Fault: f.Faults[name], wasSent: f.Form.Has(name)}
	for i := 0; i+1 < len(attributes); i += 2 {
		if err := input.set(fmt.Sprint(attributes[i]), attributes[i+1]); err != nil {
			return input, err
		}
	}
	if input.Type == "password" {
		input.Value = ""
	}
	return input, nil
}

func (f *Field) set(attribute string, value any) error {
	texts := map[string]*string{
		"id": &f.ID, "label": &f.Label, "hint": &f.Hint, "type": &f.Type, "autocomplete": &f.Autocomplete, "words": &f.Words, "inputmode": &f.InputMode, "suggest": &f.Suggest,
	}
	switch text := texts[attribute]; {
	case text != nil:
		*text = fmt.Sprint(value)
	case attribute == "value": // unless the form was sent with this field, perhaps emptied
		if !f.wasSent {
			f.Value = fmt.Sprint(value)
		}
	case attribute == "optional":
		f.Optional, _ = value.(bool)
	case attribute == "lenient":
		f.IsLenient, _ = value.(bool)
	case attribute == "focus":
		f.Focus, _ = value.(bool)
	case attribute == "new":
		f.New, _ = value.(int)
	case attribute == "min":
		f.Min, _ = value.(int64)
	case attribute == "max":
		f.Max, _ = value.(int64)
	case attribute == "maxlength":
		f.MaxLength, _ = value.(int)
	default:
		return fmt.Errorf("ui: a field has no %q", attribute)
	}
	return nil
}

// MaxPasswordLength is a new password's maximum length in code points.
func (Field) MaxPasswordLength() int { return proof.MaxPasswordLength }

// Invalid reports whether something is wrong with the value.
func (f Field) Invalid() bool { return f.Fault != "" }

// PastedCode returns the code in text that a person has pasted: the code, perhaps with line breaks or
// invisible characters, or the whole link that has it, perhaps in the angle brackets of a mail.
func PastedCode(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text)
	if _, after, found := strings.Cut(text, "token="); found {
		return strings.TrimSuffix(after, ">")
	}
	return text
}
