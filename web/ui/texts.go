package ui

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/internal/texts"
)

// sharedSection is the section of the messages that all sets share.
const sharedSection = "shared"

// actionsSection is the section that describes the platform's own actions, which the model describes in
// one language only. A language needn't have it.
const actionsSection = "actions"

// addActions adds the descriptions of the platform's own actions.
func (c catalogue) addActions(s texts.Section) {
	if s.Node == nil {
		return
	}
	var faults texts.Faults // CheckTexts has reported them
	for _, one := range s.Texts(&faults) {
		c[actionsSection+"/"+one.Key] = one.Text
	}
}

// about returns the description of an action that the model describes, in this language if the operator
// has written it; empty for others.
func (c catalogue) about(a doorward.Action, about string) string {
	if own := c[actionsSection+"/"+string(a)]; own != "" && about != "" {
		return own
	}
	return about
}

// checkActions returns what is wrong with the descriptions of the platform's own actions. It doesn't know
// the model, which may change at any time.
func checkActions(own *texts.File) (faults texts.Faults) {
	for _, l := range own.Languages {
		s, found := own.Section(l.Tag, actionsSection)
		if !found {
			continue
		}
		for _, one := range s.Texts(&faults) {
			switch {
			case modelfile.IsReserved(one.Key):
				faults = append(faults, texts.Fault{Line: one.Line, Message: fmt.Sprintf("%q is an action of Doorward's own; its text is %q in %s", one.Key, "can."+one.Key, sharedSection)})
			case !modelfile.IsActionName(one.Key):
				faults = append(faults, texts.Fault{Line: one.Line, Message: fmt.Sprintf("%q is no name of an action", one.Key)})
			case utf8.RuneCountInString(one.Text) > modelfile.MaxAbout:
				faults = append(faults, texts.Fault{Line: one.Line, Message: fmt.Sprintf("%q is longer than %d characters", one.Key, modelfile.MaxAbout)})
			}
		}
	}
	return faults
}

// replace puts the texts of a section in the place of the messages.
func (c catalogue) replace(s texts.Section) {
	if s.Node == nil {
		return
	}
	var faults texts.Faults // CheckTexts has reported them
	for _, one := range s.Texts(&faults) {
		c[one.Key] = one.Text
	}
}

// CheckLanguages returns what is wrong with the languages of a file: with their tags, and with the
// names of those that aren't built in.
func CheckLanguages(own *texts.File) (faults texts.Faults) {
	seen := map[string]int{}
	for _, l := range own.Languages {
		tag, err := language.Parse(l.Tag)
		switch before := seen[strings.ToLower(l.Tag)]; {
		case err != nil || tag.String() != l.Tag:
			faults = append(faults, texts.Fault{Line: l.Line, Message: fmt.Sprintf("%q is no language tag such as fr or pt-BR", l.Tag)})
		case before > 0:
			faults = append(faults, texts.Fault{Line: l.Line, Message: fmt.Sprintf("the language %s is already in line %d", l.Tag, before)})
		case isBuiltIn(l.Tag) && l.Name+l.Direction != "":
			faults = append(faults, texts.Fault{Line: l.Line, Message: fmt.Sprintf("the language %s is built in: leave out its name and direction", l.Tag)})
		case !isBuiltIn(l.Tag) && (l.Name == "" || l.Direction == ""):
			faults = append(faults, texts.Fault{Line: l.Line, Message: fmt.Sprintf("the language %s is not built in: give it a name and a direction, ltr or rtl", l.Tag)})
		}
		seen[strings.ToLower(l.Tag)] = l.Line
	}
	return faults
}

// CheckTexts returns the sections of the sets, and what is wrong with the texts in them: unknown
// keys, placeholders that the English message has and the text lacks, or the reverse, and for a
// language that isn't built in each missing key and plural form.
func CheckTexts(own *texts.File, sets ...*Set) (sections []string, faults texts.Faults, err error) {
	for _, s := range append([]*Set{errorPages}, sets...) {
		english := catalogue{}
		if err := english.read(s.files[len(s.files)-1], "text/"+Languages[0].Tag+".txt"); err != nil {
			return nil, nil, err
		}
		sections = append(sections, s.name)
		for _, l := range own.Languages {
			section, found := own.Section(l.Tag, s.name)
			if !found && isBuiltIn(l.Tag) {
				continue
			}
			faults = append(faults, english.check(l, s.name, section)...)
		}
	}
	return append(sections, actionsSection), append(faults, checkActions(own)...), nil
}

var placeholder = regexp.MustCompile(`\{[a-zA-Z]+\}`)

// check compares a section of a language with the English messages.
func (c catalogue) check(l texts.Language, name string, s texts.Section) (faults texts.Faults) {
	given := map[string]texts.Text{}
	if s.Node != nil {
		for _, one := range s.Texts(&faults) {
			given[one.Key] = one
		}
	}
	expected := c.expected(l.Tag)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		one := given[key]
		want, isKnown := expected[key]
		if !isKnown {
			faults = append(faults, texts.Fault{Line: one.Line, Message: fmt.Sprintf("%s has no text %q; \"doorward texts list\" prints all", name, key)})
		} else if message := want.compare(one.Text); message != "" {
			faults = append(faults, texts.Fault{Line: one.Line, Message: fmt.Sprintf("%q %s", key, message)})
		}
	}
	if isBuiltIn(l.Tag) {
		return faults
	}
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(expected)) {
		if _, found := given[key]; !found {
			missing = append(missing, key)
		}
	}
	return append(faults, missingFaults(l, name, missing, given)...)
}

// missingFaults reports missing plural forms each at a form that is there, and the other texts together.
func missingFaults(l texts.Language, name string, missing []string, given map[string]texts.Text) (faults texts.Faults) {
	var others []string
	for _, key := range missing {
		family, form := cutForm(key)
		if sibling, found := given[family+"."+otherForm]; found && form != otherForm {
			faults = append(faults, texts.Fault{Line: sibling.Line, Message: fmt.Sprintf("%q lacks the plural form %q, which %s needs", family, form, l.Tag)})
			continue
		}
		others = append(others, key)
	}
	if len(others) > 0 {
		message := fmt.Sprintf("the language %s is not built in, so it must be whole: %s lacks %s", l.Tag, name, strings.Join(others[:min(len(others), maxNamed)], ", "))
		if more := len(others) - maxNamed; more > 0 {
			message += fmt.Sprintf(" and %d more", more)
		}
		faults = append(faults, texts.Fault{Line: l.Line, Message: message})
	}
	return faults
}

// maxNamed is how many missing texts an error names.
const maxNamed = 5

func cutForm(key string) (family, form string) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:]
}

// wanted are the placeholders of a text.
type wanted struct {
	all         []string
	mayOmitSelf bool // {n}
}

// expected returns the keys that a language has, with their placeholders. The messages with a number
// have the plural forms of the language.
func (c catalogue) expected(tag string) map[string]wanted {
	all := map[string]wanted{}
	for key, message := range c {
		family, form := cutForm(key)
		_, hasOne := c[family+".one"]
		_, hasOther := c[family+"."+otherForm]
		if !hasOne || !hasOther {
			all[key] = wanted{all: placeholdersOf(message)}
			continue
		}
		if form != otherForm {
			continue
		}
		for form, isSingle := range pluralForms(tag) {
			all[family+"."+form] = wanted{placeholdersOf(message), isSingle}
		}
	}
	return all
}

func placeholdersOf(message string) []string {
	all := placeholder.FindAllString(message, -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// compare returns what is wrong with the placeholders of a text; empty for nothing.
func (w wanted) compare(text string) string {
	have := placeholdersOf(text)
	for _, p := range w.all {
		if !slices.Contains(have, p) && !(p == "{n}" && w.mayOmitSelf) {
			return "lacks the placeholder " + p
		}
	}
	for _, p := range have {
		if !slices.Contains(w.all, p) {
			return "has the unknown placeholder " + p
		}
	}
	return ""
}

// ListTexts returns the texts of the sets in a language, by section, with the operator's own. A
// language that isn't available has the English texts, with its own plural forms.
func ListTexts(own *texts.File, tag string, sets ...*Set) (sections []texts.Section, err error) {
	for _, s := range append([]*Set{errorPages}, sets...) {
		words, err := s.catalogue(tag, own)
		if err != nil {
			return nil, err
		}
		english := catalogue{}
		if err := english.read(s.files[len(s.files)-1], "text/"+Languages[0].Tag+".txt"); err != nil {
			return nil, err
		}
		var all []texts.Text
		expected := english.expected(tag)
		for _, key := range slices.Sorted(maps.Keys(expected)) {
			text := words[key]
			if family, _ := cutForm(key); text == "" || expected[key].compare(text) != "" {
				text = words[family+"."+otherForm] // English has no such form, or only for the number 1
			}
			all = append(all, texts.Text{Key: key, Text: text})
		}
		sections = append(sections, texts.NewSection(s.name, all))
	}
	if actions, found := own.Section(tag, actionsSection); found {
		var faults texts.Faults // CheckTexts has reported them
		sections = append(sections, texts.NewSection(actionsSection, actions.Texts(&faults)))
	}
	return sections, nil
}
