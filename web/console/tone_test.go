package console

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

// The icons and colours of the trail are named after actions that there are.
func TestIconsAndTonesAreOfActions(t *testing.T) {
	words, verbs := map[string]bool{}, map[string]bool{}
	for _, v := range doorward.Verbs() {
		word, verb, _ := strings.Cut(string(v.Action), ".")
		words[word], verbs[verb] = true, true
	}
	for word, icon := range eventIcons {
		if !words[word] || icons[icon] == "" {
			t.Errorf("%s: %s: no action begins so, or there is no such icon", word, icon)
		}
	}
	for _, verb := range slices.Concat(slices.Collect(maps.Values(tones))...) {
		if !verbs[verb] {
			t.Errorf("no action ends in %s", verb)
		}
	}
}
