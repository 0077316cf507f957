package doorward_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING.md has a table of what make test and make test-all run. These tests compare it
// with the steps of scripts/test.sh and the tests that ask fulltest for their size.

var (
	stepLine = regexp.MustCompile(`(?m)^[^#\n]*\bstep (?:"([^"]+)"|(\w+)) \w`)
	sizeRow  = regexp.MustCompile(`(?m)^\| ([^|]+) \|[^|]+\|[^|]+\|$`)
)

// sizes returns what the first column of the table names: steps, tests ("TestKilled…" are all
// that begin so), and folders, for all of their tests that ask.
func sizes(page string) (names []string) {
	_, section, _ := strings.Cut(page, "\n### Two sizes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i, row := range sizeRow.FindAllStringSubmatch(section, -1) {
		if i > 0 { // the first is the head
			names = append(names, strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")...)
		}
	}
	return names
}

// steps returns the names of the steps in a script, as the table has them.
func steps(script string) (names []string) {
	for _, found := range stepLine.FindAllStringSubmatch(script, -1) {
		if name := "step " + found[1] + found[2]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// sizedTests returns the tests that ask for their size, themselves or through a function of
// their folder, as folder.TestName.
func sizedTests(all *tree) (names []string) {
	uses, asks := map[string]map[string]bool{}, map[string]bool{}
	for _, f := range all.files {
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !f.isTest {
				continue
			}
			name := f.folder + "." + fn.Name.Name
			uses[name] = map[string]bool{}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if from, ok := n.X.(*ast.Ident); ok && (from.Name == "fulltest" || from.Name == "apptest" && n.Sel.Name == "Rounds") {
						asks[name] = true
					}
				case *ast.Ident:
					uses[name][f.folder+"."+n.Name] = true
				}
				return true
			})
		}
	}
	for before := -1; before < len(asks); { // until no caller of one that asks is new
		before = len(asks)
		for name, used := range uses {
			for other := range maps.Keys(asks) {
				if used[other] {
					asks[name] = true
					break
				}
			}
		}
	}
	for name := range asks {
		if isTest(strings.TrimPrefix(path.Ext(name), ".")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sizeFaults returns what differs between the names in the table, and the steps and tests.
func sizeFaults(listed, steps, tests []string) (faults []string) {
	used := map[string]bool{}
	find := func(is func(name string) bool) (found bool) {
		for _, name := range listed {
			if is(name) {
				used[name], found = true, true
			}
		}
		return found
	}
	for _, step := range steps {
		if !find(func(name string) bool { return name == step }) {
			faults = append(faults, "no row for "+step)
		}
	}
	for _, test := range tests {
		folder, short := strings.TrimSuffix(test, path.Ext(test)), strings.TrimPrefix(path.Ext(test), ".")
		if !find(func(name string) bool {
			prefix, isPrefix := strings.CutSuffix(name, "…")
			return name == short || name == folder || isPrefix && strings.HasPrefix(short, prefix)
		}) {
			faults = append(faults, "no row for "+test)
		}
	}
	for _, name := range listed {
		if !used[name] {
			faults = append(faults, fmt.Sprintf("%s is no step, and no test that asks for its size", name))
		}
	}
	return faults
}

func TestSizesAreListed(t *testing.T) {
	listed := sizes(readText(t, "CONTRIBUTING.md"))
	for _, fault := range sizeFaults(listed, steps(readText(t, "scripts/test.sh")), sizedTests(parseTree(t, "."))) {
		t.Errorf("CONTRIBUTING.md, Two sizes: %s", fault)
	}
}

// Each kind of difference is noticed.
func TestMissingSizesAreNoticed(t *testing.T) {
	root := writeTree(t, []file{
		{"node/fleet_test.go", "package node\n\nfunc size() int { return fulltest.Of(1, 2) }\n\nfunc run() { size() }"},
		{"node/run_test.go", "package node\n\nfunc TestFleet() { run() }\n\nfunc TestNode() { start() }"},
		{"app/user/user_test.go", "package user\n\nfunc TestErase() { apptest.Rounds(1, 2) }"},
	}, file{"web/run_test.go", "package web\n\nfunc TestRun() { run() }"})
	tests := sizedTests(parseTree(t, root))
	if want := []string{"app/user.TestErase", "node.TestFleet"}; !slices.Equal(tests, want) {
		t.Errorf("%q ask for their size, want %q", tests, want)
	}
	found := steps("step() { # NAME\nstep lint env A=1 x\n[ -z a ] || step \"other modules\" nested\nstep lint again\n")
	if want := []string{"step lint", "step other modules"}; !slices.Equal(found, want) {
		t.Errorf("the steps are %q, want %q", found, want)
	}
	page := "\n### Two sizes\n\n| What | a | b |\n|---|---|---|\n| step lint | a | b |\n| TestFl…, `app/user` | a | b |\n| TestNode | a | b |\n\n## More\n| x | a | b |\n"
	want := []string{"no row for step other modules", "no row for web.TestRun", "TestNode is no step, and no test that asks for its size"}
	if got := sizeFaults(sizes(page), found, append(tests, "web.TestRun")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
