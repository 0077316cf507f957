package scim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/npmtest"
)

// object is JSON as testdata/reference.mjs reads and writes it.
type object = map[string]any

// judgements are the answers of testdata/reference.mjs.
type judgements struct {
	Filters []filterJudgement
	Patches []patchJudgement
}

type filterJudgement struct{ Supported, Matches bool }

type patchJudgement struct {
	Resource object
	Error    string
}

// ask has filters and patches judged by the npm packages scim2-parse-filter and scim-patch.
func ask(t *testing.T, filters, patches [][2]any) (answers judgements) {
	t.Helper()
	if testing.Short() {
		t.Skip("installs packages with npm")
	}
	npmtest.Ask(t, map[string]any{"filters": filters, "patches": patches}, &answers)
	if len(answers.Filters) != len(filters) || len(answers.Patches) != len(patches) {
		t.Fatalf("%d and %d answers", len(answers.Filters), len(answers.Patches))
	}
	return answers
}

// generator makes filters, users and operations.
type generator struct{ *rand.Rand }

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

// filter makes a filter; some have what isn't supported.
func (g generator) filter(depth int) string {
	if g.IntN(4) == 0 && depth < 4 {
		return "(" + g.filter(depth+1) + ")"
	}
	if g.IntN(3) == 0 && depth < 4 {
		return g.filter(depth+1) + " " + g.pick("and", "AND", "and", "and", "or") + " " + g.filter(depth+1)
	}
	left := g.pick("userName", "USERNAME", "id", "externalId", "displayName", "emails.value", `emails[type eq "work"].value`,
		`emails[type eq "home"].value`, "name.familyName", "emails.type", "active", "emails")
	operator := g.pick("eq", "eq", "eq", "Eq", "eq", "EQ", "eq", "ne", "sw")
	right := g.pick(`"a"`, `"b"`, `"c"`, `"a"`, `"b"`, `true`, `false`, `"a\"b"`, `5`, `null`)
	if left == "active" {
		right = g.pick("true", "false", "5", "null")
	}
	return left + " " + operator + " " + right
}

// broken makes a text that is nearly a filter.
func (g generator) broken(text string) string {
	at := g.IntN(len(text))
	return text[:at] + g.pick("", " ", "(", ")", `"`, "and", "[") + text[at+1:]
}

func (g generator) value() string { return g.pick("a", "b", "c") }

func (g generator) user() object {
	u := object{"id": g.value(), "userName": g.value(), "active": g.IntN(2) == 0, "emails": []any{
		object{"type": "work", "value": g.value()}, object{"type": "home", "value": g.value()},
	}}
	if g.IntN(2) == 0 {
		u["displayName"], u["externalId"] = g.value(), g.value()
	}
	if g.IntN(2) == 0 {
		u["name"] = object{"familyName": g.value(), "givenName": g.value()}
	}
	if g.IntN(2) == 0 {
		u[EnterpriseSchema] = object{"department": g.value(), "manager": object{"value": g.value()}}
	}
	return u
}

// matches is what a filter means, for the comparison alone: the store asks the database.
func matches(f Filter, u object) bool {
	return !slices.ContainsFunc(f, func(c Condition) bool { return !meets(c, u) })
}

func meets(c Condition, u object) bool {
	if c.Attribute == Active {
		return u["active"] == c.Bool
	}
	if c.Attribute != Email && c.Attribute != WorkEmail {
		return u[string(c.Attribute)] == c.Text
	}
	// The reference reads emails[type eq "work"].value eq "a" as two conditions, which two e-mails may meet. Each
	// user here has one for work.
	return slices.ContainsFunc(u["emails"].([]any), func(e any) bool { return e.(object)["value"] == c.Text })
}

// TestReference compares filters and PATCH requests with implementations of others.
func TestReference(t *testing.T) {
	filters, patches, members := filterCases(), patchCases(), memberCases()
	answers := ask(t, filters, slices.Concat(patches, members))
	t.Run("filters", func(t *testing.T) { compareFilters(t, filters, answers.Filters) })
	t.Run("patches", func(t *testing.T) { comparePatches(t, patches, answers.Patches[:len(patches)]) })
	t.Run("members", func(t *testing.T) { compareMembers(t, members, answers.Patches[len(patches):]) })
}

func filterCases() (cases [][2]any) {
	for seed := range uint64(3000) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		text := g.filter(0)
		if g.IntN(5) == 0 {
			text = g.broken(text)
		}
		cases = append(cases, [2]any{text, g.user()})
	}
	return cases
}

// compareFilters compares what filters mean with scim2-parse-filter, which knows all of SCIM's: what it
// can't read, and what it reads as more than eq and and, is refused here.
func compareFilters(t *testing.T, cases [][2]any, answers []filterJudgement) {
	accepted := 0
	for i, answer := range answers {
		text, u := cases[i][0].(string), cases[i][1].(object)
		filter, err := ParseFilter(Users, text)
		if (err == nil) != answer.Supported {
			t.Errorf("%s: %v here, supported %v by the reference", text, err, answer.Supported)
		}
		if err == nil && answer.Supported {
			if accepted++; matches(filter, u) != answer.Matches {
				t.Errorf("%s matches %v: %v here, %v by the reference", text, u, !answer.Matches, answer.Matches)
			}
		}
	}
	if t.Logf("%d filters", accepted); accepted < 500 {
		t.Errorf("only %d filters were compared", accepted)
	}
}

// operation makes an operation on a user that means the same to both.
func (g generator) operation() object {
	verb := g.pick("add", "replace", "Add", "Replace")
	switch g.IntN(11) {
	case 0:
		return object{"op": verb, "path": "active", "value": []any{true, false, "True", "False"}[g.IntN(4)]}
	case 1:
		return object{"op": verb, "path": g.pick("userName", "displayName", UserSchema+":displayName", "externalId"), "value": g.value()}
	case 2:
		return object{"op": "Remove", "path": g.pick("displayName", "externalId", "name", "name.familyName", "emails", EnterpriseSchema+":department", EnterpriseSchema+":manager")}
	case 3:
		return object{"op": verb, "path": g.pick("name.familyName", "name.givenName", "name.formatted"), "value": g.value()}
	case 4:
		return object{"op": verb, "path": "name", "value": object{g.pick("familyName", "formatted"): g.value()}}
	case 5:
		return object{"op": verb, "path": `emails[type eq "` + g.pick("work", "home", "other") + `"].value`, "value": g.value()}
	case 6:
		return object{"op": "remove", "path": `emails[type eq "` + g.pick("work", "home", "other") + `"]`}
	case 7:
		return object{"op": verb, "path": "emails", "value": []any{object{"value": g.pick("d", "e", "f", "g")}}}
	case 8:
		return object{"op": verb, "path": EnterpriseSchema + ":" + g.pick("department", "division", "manager.value"), "value": g.value()}
	case 9:
		return object{"op": verb, "value": object{"displayName": g.value(), "name.familyName": g.value(), EnterpriseSchema + ":division": g.value()}}
	}
	return object{"op": "replace", "value": object{"active": g.IntN(2) == 0, "emails": []any{object{"value": g.value()}}}}
}

func patchCases() (cases [][2]any) {
	for seed := range uint64(3000) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		operations := []any{}
		for range 1 + g.IntN(4) {
			operations = append(operations, g.operation())
		}
		cases = append(cases, [2]any{g.user(), operations})
	}
	return cases
}

// comparePatches compares what operations do to a user with scim-patch. It differs in what the comparison allows
// for: it leaves "False" as a text, keeps what has become empty, and ignores a remove that selects nothing.
func comparePatches(t *testing.T, cases [][2]any, answers []patchJudgement) {
	compared := 0
	for i, answer := range answers {
		before, err := ParseUser(encode(t, cases[i][0]))
		if err != nil {
			t.Fatal(err)
		}
		operations, err := ParsePatch(encode(t, object{"Operations": cases[i][1]}))
		if err != nil {
			t.Fatalf("%v: %v", cases[i][1], err)
		}
		after, err := PatchUser(before, operations)
		if fault, ok := err.(*Error); ok && fault.Type == NoTarget || answer.Error != "" && err == nil {
			continue
		}
		if err != nil {
			t.Fatalf("%v: %v", cases[i][1], err)
		}
		compared++
		if diff := cmp.Diff(normal(answer.Resource), decode(t, encode(t, after))); diff != "" {
			t.Errorf("%s\nby %s\n-reference +here\n%s", encode(t, cases[i][0]), encode(t, cases[i][1]), diff)
		}
	}
	if t.Logf("%d patches", compared); compared < 1500 {
		t.Errorf("only %d patches were compared", compared)
	}
}

// normal returns what the reference made as Doorward writes it.
func normal(resource object) object {
	delete(resource, "id")
	if text, ok := resource["active"].(string); ok {
		resource["active"] = strings.EqualFold(text, "true")
	}
	for name, value := range resource {
		if inner, ok := value.(object); ok {
			resource[name] = normal(inner)
		}
		if isEmpty(resource[name]) {
			delete(resource, name)
		}
	}
	return resource
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case object:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text []byte) (value object) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// groupOperation makes an operation on members that means the same to both.
func (g generator) groupOperation() object {
	ids := func() []any {
		list := []any{}
		for range 1 + g.IntN(3) {
			list = append(list, object{"value": g.pick("a", "b", "c", "d", "e", "f")})
		}
		return list
	}
	switch g.IntN(5) {
	case 0:
		return object{"op": "remove", "path": fmt.Sprintf("members[value eq %q]", g.pick("a", "b", "c", "d"))}
	case 1:
		return object{"op": "Remove", "path": "members", "value": ids()}
	case 2:
		return object{"op": "replace", "path": "members", "value": ids()}
	}
	return object{"op": g.pick("add", "Add"), "path": "members", "value": ids()}
}

func memberCases() (cases [][2]any) {
	for seed := range uint64(2000) {
		g := generator{rand.New(rand.NewPCG(seed, 3))}
		operations := []any{}
		for range 1 + g.IntN(4) {
			operations = append(operations, g.groupOperation())
		}
		members := []any{object{"value": "a"}, object{"value": "b"}, object{"value": "x"}, object{"value": "y"}}
		cases = append(cases, [2]any{object{"displayName": "g", "members": members}, operations})
	}
	return cases
}

// compareMembers compares what operations do to a group's members with scim-patch, which removes none from a
// group without members.
func compareMembers(t *testing.T, cases [][2]any, answers []patchJudgement) {
	compared := 0
	for i, answer := range answers {
		operations, err := ParsePatch(encode(t, object{"Operations": cases[i][1]}))
		if err != nil {
			t.Fatal(err)
		}
		change, err := PatchGroup(operations, false)
		if answer.Error != "" {
			continue
		}
		compared++
		got, want := membersAfter(cases[i][0], change), membersAfter(answer.Resource, GroupChange{})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v and %v here, %v by the reference", encode(t, cases[i][1]), err, got, want)
		}
	}
	if t.Logf("%d patches", compared); compared < 1500 {
		t.Errorf("only %d patches were compared", compared)
	}
}

// membersAfter returns the sorted members of a group after a change.
func membersAfter(group any, change GroupChange) []string {
	in := map[string]bool{}
	if list, ok := group.(object)["members"].([]any); ok && !change.Whole {
		for _, m := range list {
			in[m.(object)["value"].(string)] = true
		}
	}
	for _, id := range change.In {
		in[id] = true
	}
	for _, id := range change.Out {
		delete(in, id)
	}
	ids := []string{}
	for id := range in {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
