package pages

import (
	"slices"
	"strings"

	"github.com/doorward/doorward"
)

// maxExamples is how many actions of a model a guide names.
const maxExamples = 8

// examples are the actions of a model that examples name in place of those that it lacks.
type examples struct {
	first   []doorward.Action // at most maxExamples
	missing []string          // actions of the built-in model
	names   *strings.Replacer // of these
}

func examplesOf(m *doorward.Model) (e examples) {
	var platform []doorward.Verb
	for _, v := range m.Verbs() {
		if v.Platform {
			platform = append(platform, v)
			e.first = append(e.first, v.Action)
		}
	}
	e.first = e.first[:min(len(e.first), maxExamples)]
	var pairs []string
	for _, v := range doorward.Verbs() {
		if _, known := m.Lookup(v.Action); known {
			continue
		}
		e.missing = append(e.missing, string(v.Action))
		pairs = append(pairs, string(v.Action), string(closest(platform, v)))
	}
	e.names = strings.NewReplacer(pairs...)
	return e
}

// closest returns the first action that the same roles grant, or else the first. If there is
// none, it is one of Doorward's own.
func closest(platform []doorward.Verb, like doorward.Verb) doorward.Action {
	i := slices.IndexFunc(platform, func(v doorward.Verb) bool { return slices.Equal(v.Roles(), like.Roles()) })
	switch {
	case i >= 0:
		return platform[i].Action
	case len(platform) > 0:
		return platform[0].Action
	}
	return doorward.UserRead
}

// replaceIn replaces the actions in a page that is made of the OpenAPI document.
func (e examples) replaceIn(page []byte) []byte {
	if len(e.missing) == 0 {
		return page
	}
	return []byte(e.names.Replace(string(page)))
}

// insteadOf returns the actions to name above a text that names missing ones; nil above others.
func (e examples) insteadOf(text string) []doorward.Action {
	if slices.ContainsFunc(e.missing, func(name string) bool { return strings.Contains(text, name) }) {
		return e.first
	}
	return nil
}
