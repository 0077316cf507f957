package console

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// Each of Doorward's own permissions is in a group of the navigation; those of an applied model are in
// groups by their first word, even if Doorward has actions that begin so.
func TestGroupsOfPermissions(t *testing.T) {
	var names []string
	for _, g := range rolePermissions(doorward.BuiltIn(), none, none).Groups {
		names = append(names, g.Key)
		if len(g.Choices) == 0 || !messageKeys()[g.Key] {
			t.Errorf("%s: no permissions, or no message", g.Key)
		}
	}
	want := []string{"roles.word.billing", "roles.word.data", "roles.word.message", "roles.word.report", "nav.group.people", "nav.group.access", "nav.group.developers", "nav.group.organisation"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	m, err := doorward.NewModel([]doorward.PlatformAction{{Name: "people.paint", Lowest: doorward.RoleUser}, {Name: "user.paint", Lowest: doorward.RoleUser}})
	if err != nil {
		t.Fatal(err)
	}
	names = nil
	for _, g := range rolePermissions(m, none, none).Groups {
		names = append(names, g.Name)
	}
	if diff := cmp.Diff([]string{"people", "user", "own-people", "own-access", "own-developers", "own-organisation"}, names); diff != "" {
		t.Error(diff)
	}
}

func none(doorward.Action) bool { return false }
