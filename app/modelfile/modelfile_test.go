package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/doorward/doorward/internal/waittest"

	"github.com/doorward/doorward"
)

const invoices = `# The actions of an invoice service.
actions:
  invoice.read:
    about: See invoices
    roles: [OWNER, ADMIN, USER, VIEWER]
    resource: invoice
  invoice.approve:
    about: "Approve invoices: payment follows"
    roles: [ADMIN, OWNER]
    resource: invoice
    stepUp: true
    keys: false
  export: {roles: [OWNER]}
resources:
  invoice: {amount: long, owner: user, tags: set}
  user: {}
policies: |
  @id("large")
  forbid (principal, action, resource);
entities:
  - uid: {type: team, id: sales}
    attrs: {floor: 3, open: true, cities: [Bonn, "2"]}
    parents: [{type: team, id: all}]
`

func TestReadsModel(t *testing.T) {
	got, err := Read([]byte(invoices))
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Actions: []Action{
			{Name: "invoice.read", About: "See invoices", Roles: Roles, Resource: "invoice", Keys: true, Line: 3, Column: 3},
			{Name: "invoice.approve", About: "Approve invoices: payment follows", Roles: []string{"OWNER", "ADMIN"}, Resource: "invoice", StepUp: true, Line: 7, Column: 3},
			{Name: "export", Roles: []string{"OWNER"}, Keys: true, Line: 13, Column: 3},
		},
		Resources: []Resource{
			{Name: "invoice", Attributes: []Attribute{{"amount", "long"}, {"owner", "user"}, {"tags", "set"}}, Line: 15, Column: 3},
			{Name: "user", Line: 16, Column: 3},
		},
		Policies: "@id(\"large\")\nforbid (principal, action, resource);\n",
		Entities: []byte(`[{"attrs":{"cities":["Bonn","2"],"floor":3,"open":true},"parents":[{"id":"all","type":"team"}],"uid":{"id":"sales","type":"team"}}]`),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(File{})); diff != "" {
		t.Error(diff)
	}
	if line, column := got.PolicyPlace(2, 1); line != 19 || column != 3 {
		t.Errorf("the second line of the policies is at %d:%d of the file", line, column)
	}
}

func TestPlaceOfPolicies(t *testing.T) {
	for text, want := range map[string]string{
		"actions: {}\npolicies: |2\n\n     permit;\n  forbid;": "4:6",
		"actions: {}\npolicies: |+\r\n  permit;\r\n  forbid;":  "4:6",
		"policies: \"permit;\\n\\n  forbid\"\nactions: {}":     "1:11",
		"actions: {}\npolicies: >\n  permit;\n\n  forbid;":     "2:11",
	} {
		file, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if line, column := file.PolicyPlace(2, 4); fmt.Sprintf("%d:%d", line, column) != want {
			t.Errorf("2:4 of the policies of %q is at %d:%d, want %s", text, line, column, want)
		}
	}
}

// chain returns an entity for each id but the last, with the next id as its parent.
func chain(ids ...string) string {
	var text strings.Builder
	for i, id := range ids[:len(ids)-1] {
		fmt.Fprintf(&text, "  - {uid: {type: a, id: %s}, parents: [{type: a, id: %s}]}\n", id, ids[i+1])
	}
	return text.String()
}

func parents(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "{type: a, id: p%d},", i)
	}
	return text.String()
}

// action returns a model with one action, which begins at line 2, column 3.
func action(text string) string { return "actions:\n  " + text }

func resources(text string) string { return "actions: {}\nresources:\n  " + text }

// Each text has the faults at line:column, with their codes.
var faultTests = []struct{ name, text, want string }{
	{"empty", "", "1:1 required"},
	{"comments only", "# nothing\n\n", "1:1 required"},
	{"a list", "- actions", "1:1 type"},
	{"text", "actions", "1:1 type"},
	{"no actions", "resources: {}", "1:1 required"},
	{"null", "actions:", "1:9 type"},
	{"a list of actions", "actions: [a]", "1:10 type"},
	{"unknown name", "actions: {}\naction: {}", "2:1 unknown"},
	{"another case", "Actions: {}", "1:1 unknown, 1:1 required"},
	{"twice", "actions: {}\nactions: {}", "2:1 duplicate"},
	{"second document", "actions: {}\n---\nactions: {}", "2:1 syntax"},
	{"a list as name", "actions: {}\n? [a]\n: b", "2:3 type"},
	{"byte order mark", "\ufeffactions: {}", "1:1 syntax"},
	{"invalid UTF-8", "actions: {}\n# ä\xff", "2:4 syntax"},
	{"NUL", "actions: {}\n\x00", "2:1 syntax"},
	{"control character", "actions: {}\n# \u009b", "2:3 syntax"},
	{"carriage return", "actions: {}\r\n#\r#", "2:2 syntax"},
	{"tab", "actions:\n\ta: {}", "2:1 syntax"},
	{"open brace", "actions: {}\nresources: {a: {b: long}", "2:1 syntax"},
	{"wrong indent", "actions:\n  a: {roles: [OWNER]}\n b: {}", "3:2 syntax"},
	{"anchor without a name", "actions:\n  a: & {}\n  b: {}", "2:3 syntax"},
	{"quote not closed", "actions: {}\npolicies: \"permit", "2:1 syntax"},
	{"anchor", "actions: &all {}", "1:10 syntax"},
	{"alias", "actions: &all {}\nresources: *all", "1:10 syntax, 2:12 syntax"},
	{"unknown alias", "actions: {}\nresources: *all", "1:1 syntax"},
	{"merge", action("a: {roles: [OWNER]}\n  b: {<<: {roles: [OWNER]}}"), "3:3 required, 3:7 type"},
	{"tag", action("a: {roles: !!seq [OWNER]}"), "2:14 syntax"},
	{"own tag", action("a: {roles: [!role OWNER]}"), "2:15 syntax"},
	{"too deep", "actions: {}\nentities: " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "2:42 too_deep"},

	{"action is null", action("a:"), "2:5 type"},
	{"action is a list", action("a: [OWNER]"), "2:6 type"},
	{"no roles", action("a: {about: b}"), "2:3 required"},
	{"empty roles", action("a: {roles: []}"), "2:14 required"},
	{"role without a list", action("a: {roles: OWNER}"), "2:14 type"},
	{"unknown role", action("a: {roles: [OWNER, MANAGER]}"), "2:22 invalid"},
	{"small letters", action("a: {roles: [owner]}"), "2:15 invalid"},
	{"role twice", action("a: {roles: [OWNER, OWNER]}"), "2:22 duplicate"},
	// not_closed: a higher role is missing.
	{"without OWNER", action("a: {roles: [ADMIN]}"), "2:14 not_closed"},
	{"a gap", action("a: {roles: [OWNER, USER]}"), "2:14 not_closed"},
	{"unknown member", action("a: {roles: [OWNER], stepup: true}"), "2:23 unknown"},
	{"member twice", action("a: {roles: [OWNER], roles: [OWNER]}"), "2:23 duplicate"},
	{"flag as text", action("a: {roles: [OWNER], stepUp: \"true\"}"), "2:31 type"},
	{"flag yes", action("a: {roles: [OWNER], keys: yes}"), "2:29 type"},
	{"about as number", action("a: {roles: [OWNER], about: 7}"), "2:30 type"},
	{"about on two lines", action("a:\n    roles: [OWNER]\n    about: |\n      b\n      c"), "4:12 invalid"},
	{"long about", action("a: {roles: [OWNER], about: " + strings.Repeat("ä", MaxAbout+1) + "}"), "2:30 invalid"},
	{"resource not declared", action("a: {roles: [OWNER], resource: invoice}"), "2:33 unknown"},
	{"resource as list", action("a: {roles: [OWNER], resource: [invoice]}"), "2:33 type"},

	{"capitals", action("Invoice.read: {roles: [OWNER]}"), "2:3 invalid"},
	{"digit first", action("invoice.2read: {roles: [OWNER]}"), "2:3 invalid"},
	{"underscore first", action("_a: {roles: [OWNER]}"), "2:3 invalid"},
	{"hyphen", action("invoice-read: {roles: [OWNER]}"), "2:3 invalid"},
	{"empty word", action("invoice..read: {roles: [OWNER]}"), "2:3 invalid"},
	{"dot at the end", action("invoice.: {roles: [OWNER]}"), "2:3 invalid"},
	{"no name", action("\"\": {roles: [OWNER]}"), "2:3 invalid"},
	{"name with newline", action("\"a\\n\": {roles: [OWNER]}"), "2:3 invalid"},
	{"long name", action("a" + strings.Repeat("b", MaxName) + ": {roles: [OWNER]}"), "2:3 invalid"},
	{"number as name", action("12: {roles: [OWNER]}"), "2:3 type"},
	{"name twice", action("a: {roles: [OWNER]}\n  'a': {roles: [OWNER]}"), "3:3 duplicate"},
	{"reserved", action("access.read: {roles: [OWNER]}"), "2:3 reserved"},
	{"reserved alone", action("user: {roles: [OWNER]}"), "2:3 reserved"},

	{"resource is null", resources("invoice:"), "3:11 type"},
	{"reserved resource", resources("tenant: {}"), "3:3 reserved"},
	{"word of policies", resources("in: {}"), "3:3 reserved"},
	{"dotted resource", resources("a.b: {}"), "3:3 invalid"},
	{"unknown type", resources("a: {b: int}"), "3:10 invalid"},
	{"type as list", resources("a: {b: [long]}"), "3:10 invalid"},
	{"attribute with hyphen", resources("a: {b-c: long}"), "3:7 invalid"},
	{"attribute named by a word of policies", resources("a: {has: long}"), "3:7 reserved"},
	{"attribute twice", resources("a: {b: long, b: set}"), "3:16 duplicate"},

	{"policies as list", "actions: {}\npolicies: [a]", "2:11 type"},
	{"entities as mapping", "actions: {}\nentities: {a: b}", "2:11 type"},
	{"entity without uid", "actions: {}\nentities: [{attrs: {}}]", "2:12 required"},
	{"entity without id", "actions: {}\nentities: [{uid: {type: a}}]", "2:18 required"},
	{"number as id", "actions: {}\nentities: [{uid: {type: a, id: 1}}]", "2:32 type"},
	{"unknown member of an entity", "actions: {}\nentities: [{uid: {type: a, id: b}, attributes: {}}]", "2:36 unknown"},
	{"type of an entity", "actions: {}\nentities: [{uid: {type: User, id: b}}]", "2:25 invalid"},
	{"reserved type of an entity", "actions: {}\nentities: [{uid: {type: tenant, id: b}}]", "2:25 reserved"},
	{"own user as entity", "actions: {}\nentities: [{uid: {type: user, id: usr_1}}]", "2:35 reserved"},
	{"own user as parent", "actions: {}\nentities: [{uid: {type: a, id: b}, parents: [{type: user, id: usr_1}]}]", "2:63 reserved"},
	{"empty id", "actions: {}\nentities: [{uid: {type: a, id: ''}}]", "2:32 invalid"},
	{"long id", "actions: {}\nentities: [{uid: {type: a, id: " + strings.Repeat("i", maxEntityID+1) + "}}]", "2:32 invalid"},
	{"entity twice", "actions: {}\nentities: [{uid: {type: a, id: b}}, {uid: {id: b, type: a}}]", "2:43 duplicate"},
	{"attributes as list", "actions: {}\nentities: [{uid: {type: a, id: b}, attrs: []}]", "2:43 type"},
	{"too many entities", "actions: {}\nentities: [" + strings.Repeat("a, ", MaxEntities) + "b]", "2:15012 too_many"},
	{"its own parent", "actions: {}\nentities: [{uid: {type: a, id: b}, parents: [{type: a, id: b}]}]", "2:12 invalid"},
	{"parents in a circle", "actions: {}\nentities:\n" + chain("a", "b", "c", "a"), "3:5 invalid, 4:5 invalid, 5:5 invalid"},
	{"many parents", "actions: {}\nentities: [{uid: {type: a, id: b}, parents: [" + parents(maxAncestors+1) + "]}]", "2:12 too_many"},
	{"parent as mapping", "actions: {}\nentities: [{uid: {type: a, id: b}, parents: {}}]", "2:45 type"},
	{"fraction", "actions: {}\nentities: [{uid: {type: a, id: b}, attrs: {c: 1.5}}]", "2:47 type"},
	{"octal", "actions: {}\nentities: [{uid: {type: a, id: b}, attrs: {c: 010}}]", "2:47 type"},
	{"large number", "actions: {}\nentities: [{uid: {type: a, id: b}, attrs: {c: 9223372036854775808}}]", "2:47 type"},
	{"date", "actions: {}\nentities: [{uid: {type: a, id: b}, attrs: {c: 2026-01-02}}]", "2:47 type"},
	{"value is null", "actions: {}\nentities: [{uid: {type: a, id: b}, attrs: {c: null}}]", "2:47 type"},
	{"attribute of an entity twice", "actions: {}\nentities: [{uid: {type: a, id: b}, attrs: {c: 1, c: 2}}]", "2:50 duplicate"},

	{"several", action("a: {}\n  B: {roles: [ADMIN], x: 1}\nother: 1"), "2:3 required, 3:3 invalid, 3:14 not_closed, 3:23 unknown, 4:1 unknown"},
}

func TestFaults(t *testing.T) {
	for _, test := range faultTests {
		t.Run(test.name, func(t *testing.T) {
			file, err := Read([]byte(test.text))
			if got := places(err); got != test.want {
				t.Errorf("%s\nhas the faults %s, want %s\n%v", test.text, got, test.want, err)
			}
			if file != nil {
				t.Error("a file with faults was returned")
			}
		})
	}
}

// places returns the faults of an error as "line:column code".
func places(err error) string {
	var faults Faults
	errors.As(err, &faults)
	var all []string
	for _, f := range faults {
		all = append(all, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Code))
	}
	return strings.Join(all, ", ")
}

func TestLimits(t *testing.T) {
	many := func(n int) string {
		var text strings.Builder
		text.WriteString("actions:\n")
		for i := range n {
			fmt.Fprintf(&text, "  a%d: {roles: [OWNER]}\n", i)
		}
		return text.String()
	}
	longest := strings.Repeat("a", MaxName)
	filled := "actions: {}\n#" + strings.Repeat("x", MaxSize-len("actions: {}\n#"))
	for _, text := range []string{many(doorward.PlatformActionsMax), action(longest + ": {roles: [OWNER]}"), filled} {
		if _, err := Read([]byte(text)); err != nil {
			t.Errorf("a model at a limit is refused: %v", err)
		}
	}
	for text, want := range map[string]string{many(doorward.PlatformActionsMax + 1): "502:3 too_many", filled + "x": "1:1 too_large"} {
		if _, err := Read([]byte(text)); places(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := Read([]byte(strings.ReplaceAll(many(doorward.PlatformActionsMax), "OWNER", "ROOT")))
	if got := len(err.(Faults)); got != maxFaults {
		t.Errorf("%d faults were reported, want %d", got, maxFaults)
	}
}

// No text, even of the largest size, takes long to read.
func TestHostileTexts(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, MaxSize/len(s)) }
	for name, text := range map[string]string{
		"brackets":         fill("["),
		"braces":           fill("{"),
		"indents":          fill("- "),
		"question marks":   fill("? "),
		"colons":           fill(": "),
		"lines of indents": fill(strings.Repeat("- ", 1000) + "\n"),
		"comments":         fill("#\n"),
		"comments of keys": fill("a:\n# b\n"),
		"plain lines":      fill("a\n"),
		"quotes":           fill("\""),
		"aliases":          "actions: &a [" + fill("x,")[:MaxSize/4] + "]\nresources: [" + fill("*a,")[:MaxSize/2] + "]",
		"documents":        fill("---\n"),
		"tags":             fill("!a "),
		"equal keys":       fill("a: 1\n"),
		"long key":         fill("a") + ": 1",
		"digits":           "actions: " + fill("9")[20:],
		"newlines":         fill("\n"),
		"spaces":           fill(" "),
		"escapes":          "actions: \"" + fill("\\x41")[20:] + "\"",
		"policies":         "actions: {}\npolicies: |\n  " + fill("a")[40:],
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := Read([]byte(text[:min(len(text), MaxSize)]))
			if took := time.Since(began); took > waittest.Limit {
				t.Errorf("took %v: %.80s", took, fmt.Sprint(err))
			}
		})
	}
}

func TestDiff(t *testing.T) {
	read := func(text string) *File {
		file, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	before := read("actions: {a: {roles: [OWNER, ADMIN]}, b: {roles: [OWNER]}, c: {roles: [OWNER]}, d: {roles: [OWNER]}}")
	after := read("actions:\n  e: {roles: [OWNER, ADMIN]}\n  c: {roles: [OWNER]}\n  b: {roles: [OWNER, ADMIN, USER]}\n  a: {roles: [OWNER]}\n  d: {roles: [OWNER], keys: false}")
	var got []string
	for _, c := range Diff(before, after) {
		got = append(got, fmt.Sprint(c.Name, " +", c.Gained(), " -", c.Lost(), " new=", c.Before == nil, " gone=", c.After == nil))
	}
	want := []string{
		"a +[] -[ADMIN] new=false gone=false",
		"b +[ADMIN USER] -[] new=false gone=false",
		"d +[] -[] new=false gone=false",
		"e +[OWNER ADMIN] -[] new=true gone=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if gone := Diff(after, read("actions: {}"))[4]; gone.Name != "e" || gone.After != nil || !slices.Equal(gone.Lost(), []string{"OWNER", "ADMIN"}) {
		t.Errorf("an action that is gone is %+v", gone)
	}
}

// Each fault is at a place in the text, and what is accepted keeps the rules.
func FuzzRead(f *testing.F) {
	for _, text := range []string{invoices, "actions: {}", action("a: {roles: [ADMIN]}"), "a: &b [*b]", "? [a]\n: b", "- \"\\x00\"", "actions: {}\n...\n---\n", "%YAML 1.1\n---\nactions: {}", "actions: {}\nentities:\n" + chain("a", "b", "c", "a")} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read([]byte(text))
		lines := strings.Split(text, "\n")
		var faults Faults
		if errors.As(err, &faults); (err == nil) == (len(faults) > 0) || (file == nil) == (err == nil) {
			t.Fatalf("got %v and %v", file, err)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > len(lines) || fault.Column < 1 || fault.Column > utf8.RuneCountInString(lines[fault.Line-1])+2 || fault.Message == "" {
				t.Errorf("%q: the fault %v is not in the text", text, fault)
			}
		}
		if file != nil {
			checkRules(t, file)
		}
	})
}

func checkRules(t *testing.T, file *File) {
	t.Helper()
	names := map[string]bool{}
	for _, a := range file.Actions {
		first, _, _ := strings.Cut(a.Name, ".")
		isDeclared := a.Resource == "" || slices.ContainsFunc(file.Resources, func(r Resource) bool { return r.Name == a.Resource })
		if names[a.Name] || len(a.Name) > MaxName || strings.Trim(a.Name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" ||
			slices.Contains(Reserved, first) || len(a.Roles) == 0 || !slices.Equal(a.Roles, Roles[:len(a.Roles)]) || !isDeclared {
			t.Errorf("the action %+v was accepted", a)
		}
		names[a.Name] = true
	}
}

// What can be read of a stored model stays in force, so that neither an upgrade nor a
// downgrade leaves an installation without its actions. But if policies or entities have a
// fault, no action is in force.
func TestStoredText(t *testing.T) {
	text := action("a: {roles: [OWNER, ADMIN], quorum: 2}\n  user.a: {roles: [OWNER]}\n  b: {roles: [OWNER]}\n  c: {roles: [OWNER], resource: x}\nnews: 1\nresources: {x: {y: matrix, in: long}, tenant: {}}")
	file, err := ReadStored([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range file.Actions {
		names = append(names, a.Name)
	}
	if !slices.Equal(names, []string{"b", "c"}) {
		t.Errorf("the actions are %v", names)
	}
	if diff := cmp.Diff([]Resource{{Name: "x", Line: 7, Column: 13}}, file.Resources); diff != "" {
		t.Error(diff)
	}
	for _, more := range []string{"policies: [a]", "entities: [{uid: {type: a, id: b}, kind: c}]", "entities: {}"} {
		file, err := ReadStored([]byte(action("b: {roles: [OWNER]}\n" + more)))
		if err != nil || len(file.Actions) > 0 {
			t.Errorf("with %s: %+v %v", more, file, err)
		}
	}
	for _, text := range []string{"", "[", "- a", "a: *b"} {
		if file, err := ReadStored([]byte(text)); err == nil || file != nil {
			t.Errorf("%q was read as %+v", text, file)
		}
	}
}
