package doorward_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
)

// The habits of reading: what a stranger may count on in every folder.

// habit is one of them.
type habit struct {
	name   string
	remedy string
	// faults returns the places, "file:line: what", that lack it.
	faults func(*tree) []string
	// plants are files of which each alone lacks the habit, on the line that says here.
	plants []file
}

const (
	longest = 100 // lines of a function, its braces included
	deepest = 3   // names in a folder's path from the root
)

var habits = []habit{
	{
		name:   "every package says what it is, in one file",
		remedy: `begin the comment above one package clause with "Package x …" ("Command x …" or "X …" for a program) and a full sentence`,
		faults: mute,
		plants: []file{
			{"store/store.go", "package store // here"},
			{"store/store.go", "// Rows are kept in one database.\npackage store // here"},
			{"store/store.go", "// Package store\npackage store // here"},
			{"store/store.go", "// Package store keeps the rows of every feature\npackage store // here"},
			{"store/zmore.go", "// Package store says what it is a second time.\npackage store // here"},
			{"cmd/doorward/main.go", "// Package main runs the server of the whole.\npackage main // here"},
		},
	},
	{
		name:   fmt.Sprintf("no function is over %d lines", longest),
		remedy: "name its parts",
		faults: long,
		plants: []file{
			{"store/long.go", "package store\n\nfunc long() { // here\n" + strings.Repeat("\tlong()\n", longest) + "}"},
			{"store/long_test.go", "package store\n\nfunc long() { // here\n" + strings.Repeat("\tlong()\n", longest) + "}"},
			{"store/long.go", "package store\n\nvar long = func() { // here\n" + strings.Repeat("\tprintln()\n", longest) + "}"},
		},
	},
	{
		name:   "every exported name says what it is",
		remedy: "write the comment: what goes in and out, units and limits, which errors",
		faults: undocumented,
		plants: []file{
			{"store/open.go", "package store\n\nfunc Open() {} // here"},
			{"store/open.go", "package store\n\nfunc (*DB) Open() {} // here"},
			{"store/open.go", "package store\n\nfunc (Rows[T]) Open() {} // here"},
			{"store/open.go", "package store\n\ntype Open int // here"},
			{"store/open.go", "package store\n\nvar (\n\ta = 1 // one\n\there, Open = 1, 1\n)"},
		},
	},
	{
		name:   fmt.Sprintf("no folder is more than %d deep", deepest),
		remedy: "move it up, or into the package that uses it",
		faults: deep,
		plants: []file{{"web/api/v2/users/page.html", ""}},
	},
}

func TestHabitsAreKept(t *testing.T) {
	tree := read(t, ".")
	for _, h := range habits {
		for _, fault := range h.faults(tree) {
			t.Errorf("%s: lacks the habit %q: %s", fault, h.name, h.remedy)
		}
	}
}

func TestEachHabitIsWatched(t *testing.T) {
	for _, h := range habits {
		for _, plant := range h.plants {
			t.Run(h.name, func(t *testing.T) {
				got := h.faults(read(t, writeTree(t, tidy, plant)))
				want := position(plant)
				if plant.text == "" {
					want = path.Dir(plant.name)
				}
				if len(got) != 1 || !strings.HasPrefix(got[0], want+": ") {
					t.Errorf("want one fault at %s in\n%s\ngot %q", want, plant.text, got)
				}
			})
		}
	}
}

func TestTidyTreeHasNoFault(t *testing.T) {
	tree := read(t, writeTree(t, tidy, file{}))
	for _, h := range habits {
		for _, fault := range h.faults(tree) {
			t.Error(fault)
		}
	}
}

// tidy is a small tree that has every habit, just so.
var tidy = []file{
	{"store/store.go", `// Package store keeps rows.
//
// It holds no rule.
package store

// DB is a database.
type DB struct{ Path string }

// Rows are what a query found.
type Rows[T any] []T

// What a row may be.
const (
	Old = iota
	New
)

var (
	// Limit is in rows.
	Limit = 1
	Size  = 2 // in bytes
)

type hidden struct{}

func (hidden) Method() {}

func _() {` + strings.Repeat("\n\thidden{}.Method()", longest-2) + `
}
`},
	{"store/user.go", "package store"},
	{"store/user_test.go", "// Package store_test needs no comment.\npackage store_test\n\nfunc Exported() {}"},
	{"app/app_test.go", "package app"},
	{"cmd/doorward/main.go", "// Doorward is a door.\npackage main\n\nfunc Run() {}"},
	{"cmd/ward/main.go", "// Command ward is a ward.\npackage main"},
	{"cmd/doorward/testdata/deep/deeper/x.go", "no Go"},
}

func (t *tree) at(pos token.Pos, what string, args ...any) string {
	where := t.Position(pos)
	for _, f := range t.files {
		if f.FileStart <= pos && pos < f.FileEnd {
			where.Filename = f.name
		}
	}
	return fmt.Sprintf("%s:%d: ", where.Filename, where.Line) + fmt.Sprintf(what, args...)
}

func mute(t *tree) (faults []string) {
	for _, folder := range t.folders {
		files, said := t.shipped(folder)
		if len(files) > 0 && len(said) == 0 {
			faults = append(faults, t.at(files[0].Package, "package %s has no comment", files[0].Name))
		}
		for i, f := range said {
			switch {
			case i > 0:
				faults = append(faults, t.at(f.Package, "package %s is explained in %s already", f.Name, said[0].name))
			case !introduces(f):
				faults = append(faults, t.at(f.Package, "the comment of package %s is no introduction", f.Name))
			}
		}
	}
	return faults
}

// shipped returns the files of a folder that are no tests, and those of them
// with a package comment.
func (t *tree) shipped(folder string) (files, said []*source) {
	for _, f := range t.files {
		if f.folder != folder || f.test {
			continue
		}
		files = append(files, f)
		if f.Doc != nil {
			said = append(said, f)
		}
	}
	return files, said
}

// introduces says whether the package comment begins with the package's name
// and a full sentence.
func introduces(f *source) bool {
	sentence, _, ended := strings.Cut(strings.ReplaceAll(f.Doc.Text(), "\n", " "), ". ")
	subjects := []string{"Package " + f.Name.Name + " "}
	if f.Name.Name == "main" {
		program := path.Base(f.folder)
		subjects = []string{"Command " + program + " ", strings.ToUpper(program[:1]) + program[1:] + " "}
	}
	for _, subject := range subjects {
		if predicate, ok := strings.CutPrefix(sentence, subject); ok {
			return ended && len(strings.Fields(predicate)) > 1
		}
	}
	return false
}

func long(t *tree) (faults []string) {
	for _, f := range t.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				if lines := t.line(n.End()) - t.line(n.Pos()) + 1; lines > longest {
					faults = append(faults, t.at(n.Pos(), "a function of %d lines", lines))
				}
			}
			return true
		})
	}
	return faults
}

func undocumented(t *tree) (faults []string) {
	for _, f := range t.files {
		if f.test || f.Name.Name == "main" {
			continue
		}
		for _, decl := range f.Decls {
			for _, name := range bare(decl) {
				faults = append(faults, t.at(name.Pos(), "%s has no comment", name))
			}
		}
	}
	return faults
}

// bare returns the exported names in decl that no comment explains. A comment on
// a group explains all of it; one behind a value explains the value.
func bare(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && visible(d.Recv) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Doc == nil {
			return bareSpecs(d.Specs)
		}
	}
	return nil
}

func bareSpecs(specs []ast.Spec) (names []*ast.Ident) {
	for _, spec := range specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Doc == nil && s.Name.IsExported() {
				names = append(names, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if s.Doc == nil && s.Comment == nil && name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// visible says whether a method's receiver is of an exported type; a function
// has none and is visible.
func visible(receiver *ast.FieldList) bool {
	if receiver == nil {
		return true
	}
	exported := true
	ast.Inspect(receiver.List[0].Type, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		if ok {
			exported = name.IsExported()
		}
		return !ok
	})
	return exported
}

func deep(t *tree) (faults []string) {
	for _, folder := range t.folders {
		if n := strings.Count(folder, "/") + 1; n > deepest {
			faults = append(faults, fmt.Sprintf("%s: %d deep", folder, n))
		}
	}
	return faults
}
