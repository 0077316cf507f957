package ui

import (
	"fmt"
	"html/template"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"github.com/doorward/doorward"
)

// catalogue are the messages of one language by their keys, and its tag by languageKey.
type catalogue map[string]string

// languageKey is the key of the language's tag. No message can have it.
const languageKey = ""

// read adds the lines "key = message" of a file. Empty lines and those that begin
// with # are ignored.
func (c catalogue) read(fsys fs.FS, name string) error {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, message, ok := strings.Cut(line, " = ")
		if _, isDuplicate := c[key]; !ok || isDuplicate {
			return fmt.Errorf("ui: %s: %q is not \"key = message\", or its key is there twice", name, line)
		}
		c[key] = message
	}
	return nil
}

// say returns the message with {name} replaced by the value after that name.
func (c catalogue) say(key string, args ...any) (string, error) {
	message, ok := c[key]
	if !ok {
		return "", fmt.Errorf("ui: no message %q", key)
	}
	message = strings.ReplaceAll(message, " …", "\u00a0…") // no line begins with an ellipsis
	return c.fill(message, args, func(s string) string { return s }), nil
}

// rich returns the message as HTML, with the values in bold and isolated in writing direction.
func (c catalogue) rich(key string, args ...any) (template.HTML, error) {
	message, ok := c[key]
	if !ok {
		return "", fmt.Errorf("ui: no message %q", key)
	}
	return template.HTML(c.fill(template.HTMLEscapeString(message), args, func(s string) string {
		return "<strong><bdi>" + template.HTMLEscapeString(s) + "</bdi></strong>"
	})), nil
}

// alphabetical returns the actions in the order of the messages whose keys are the
// prefix and an action.
func (c catalogue) alphabetical(prefix string, actions []doorward.Action) []doorward.Action {
	message := func(a doorward.Action) string { return strings.ToLower(c[prefix+string(a)]) }
	return slices.SortedFunc(slices.Values(actions), func(a, b doorward.Action) int { return strings.Compare(message(a), message(b)) })
}

// count returns the message for a number, such as key.one or key.other: that of the plural form of
// the language, or else key.other.
func (c catalogue) count(key string, n int, args ...any) (string, error) {
	form := pluralForm(c[languageKey], n)
	if c[key+"."+form] == "" {
		form = otherForm
	}
	return c.say(key+"."+form, append(args, "n", n)...)
}

// fill replaces all placeholders at once, so that a value is never treated as one. Numbers are written
// as by number; format is applied to the values.
func (c catalogue) fill(message string, args []any, format func(string) string) string {
	var pairs []string
	for i := 0; i+1 < len(args); i += 2 {
		pairs = append(pairs, fmt.Sprintf("{%v}", args[i]), format(c.text(args[i+1])))
	}
	return strings.NewReplacer(pairs...).Replace(message)
}

// text returns a value of a message as text: whole numbers as by number, others as fmt.Sprint.
func (c catalogue) text(value any) string {
	switch value.(type) {
	case int, int64, *int64:
		return c.number(value)
	}
	return fmt.Sprint(value)
}

// number returns a whole number, or the one that a pointer leads to, with the separators of thousands of
// the language (Unicode CLDR).
func (c catalogue) number(n any) string {
	whole := reflect.Indirect(reflect.ValueOf(n)).Int()
	return message.NewPrinter(language.Make(c[languageKey])).Sprint(number.Decimal(whole))
}
