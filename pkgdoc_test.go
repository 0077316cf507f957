package doorward_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
)

// These tests check the conventions that make a package readable on its own.

type convention struct {
	name   string
	remedy string
	// faults returns the places that break it, as "file:line: text".
	faults func(*tree) []string
	// violations are files that each break it once, on the line that contains "here".
	violations []file
}

const (
	maxLines = 100 // of a function, its braces included
	maxDepth = 3   // names in a folder's path from the root
)

var conventions = []convention{
	{
		name:   "every package has one package comment",
		remedy: `begin the comment above one package clause with "Package x …" ("Command x …" or "X …" for a program) and a full sentence`,
		faults: badPackageComments,
		violations: []file{
			{"store/store.go", "package store // here"},
			{"store/store.go", "// Rows are kept in one database.\npackage store // here"},
			{"store/store.go", "// Package store\npackage store // here"},
			{"store/store.go", "// Package store keeps the rows of every feature\npackage store // here"},
			{"store/zmore.go", "// Package store says what it is a second time.\npackage store // here"},
			{"cmd/doorward/main.go", "// Package main runs the server of the whole.\npackage main // here"},
		},
	},
	{
		name:   fmt.Sprintf("no function is over %d lines", maxLines),
		remedy: "name its parts",
		faults: longFunctions,
		violations: []file{
			{"store/long.go", "package store\n\nfunc long() { // here\n" + strings.Repeat("\tlong()\n", maxLines) + "}"},
			{"store/long_test.go", "package store\n\nfunc long() { // here\n" + strings.Repeat("\tlong()\n", maxLines) + "}"},
			{"store/long.go", "package store\n\nvar long = func() { // here\n" + strings.Repeat("\tprintln()\n", maxLines) + "}"},
		},
	},
	{
		name:   "every exported name has a comment",
		remedy: "write the comment: what goes in and out, units and limits, which errors",
		faults: undocumentedNames,
		violations: []file{
			{"store/open.go", "package store\n\nfunc Open() {} // here"},
			{"store/open.go", "package store\n\nfunc (*DB) Open() {} // here"},
			{"store/open.go", "package store\n\nfunc (Rows[T]) Open() {} // here"},
			{"store/open.go", "package store\n\ntype Open int // here"},
			{"store/open.go", "package store\n\nvar (\n\ta = 1 // one\n\there, Open = 1, 1\n)"},
		},
	},
	{
		name:       fmt.Sprintf("no folder is more than %d deep", maxDepth),
		remedy:     "move it up, or into the package that uses it",
		faults:     deepFolders,
		violations: []file{{"web/api/v2/users/page.html", ""}},
	},
}

func TestConventionsHold(t *testing.T) {
	tree := parseTree(t, ".")
	for _, c := range conventions {
		for _, fault := range c.faults(tree) {
			t.Errorf("%s: breaks the convention %q: %s", fault, c.name, c.remedy)
		}
	}
}

func TestEachConventionIsEnforced(t *testing.T) {
	for _, c := range conventions {
		for _, violation := range c.violations {
			t.Run(c.name, func(t *testing.T) {
				got := c.faults(parseTree(t, writeTree(t, tidyTree, violation)))
				want := position(violation)
				if violation.text == "" {
					want = path.Dir(violation.name)
				}
				if len(got) != 1 || !strings.HasPrefix(got[0], want+": ") {
					t.Errorf("want one fault at %s in\n%s\ngot %q", want, violation.text, got)
				}
			})
		}
	}
}

func TestTidyTreeHasNoFault(t *testing.T) {
	tree := parseTree(t, writeTree(t, tidyTree, file{}))
	for _, c := range conventions {
		for _, fault := range c.faults(tree) {
			t.Error(fault)
		}
	}
}

// tidyTree is a small tree that follows every convention and reaches the limits.
var tidyTree = []file{
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

func _() {` + strings.Repeat("\n\thidden{}.Method()", maxLines-2) + `
}
`},
	{"store/user.go", "package store"},
	{"store/user_test.go", "// Package store_test needs no comment.\npackage store_test\n\nfunc Exported() {}"},
	{"app/app_test.go", "package app"},
	{"cmd/doorward/main.go", "// Doorward is a door.\npackage main\n\nfunc Run() {}"},
	{"cmd/ward/main.go", "// Command ward is a ward.\npackage main"},
	{"cmd/doorward/testdata/deep/deeper/x.go", "no Go"},
}

// fault formats a fault as "file:line: text".
func (t *tree) fault(pos token.Pos, format string, args ...any) string {
	where := t.Position(pos)
	for _, f := range t.files {
		if f.FileStart <= pos && pos < f.FileEnd {
			where.Filename = f.name
		}
	}
	return fmt.Sprintf("%s:%d: ", where.Filename, where.Line) + fmt.Sprintf(format, args...)
}

func badPackageComments(t *tree) (faults []string) {
	for _, folder := range t.folders {
		files, commented := t.filesOf(folder)
		if len(files) > 0 && len(commented) == 0 {
			faults = append(faults, t.fault(files[0].Package, "package %s has no comment", files[0].Name))
		}
		for i, f := range commented {
			switch {
			case i > 0:
				faults = append(faults, t.fault(f.Package, "package %s is explained in %s already", f.Name, commented[0].name))
			case !isIntroduction(f):
				faults = append(faults, t.fault(f.Package, "the comment of package %s doesn't begin with its name and a full sentence", f.Name))
			}
		}
	}
	return faults
}

// filesOf returns the files of a folder, without tests, and those of them with a package
// comment.
func (t *tree) filesOf(folder string) (files, commented []*source) {
	for _, f := range t.files {
		if f.folder != folder || f.isTest {
			continue
		}
		files = append(files, f)
		if f.Doc != nil {
			commented = append(commented, f)
		}
	}
	return files, commented
}

// isIntroduction reports whether the package comment begins with the package's name
// and a full sentence.
func isIntroduction(f *source) bool {
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

func longFunctions(t *tree) (faults []string) {
	for _, f := range t.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				if lines := t.line(n.End()) - t.line(n.Pos()) + 1; lines > maxLines {
					faults = append(faults, t.fault(n.Pos(), "a function of %d lines", lines))
				}
			}
			return true
		})
	}
	return faults
}

func undocumentedNames(t *tree) (faults []string) {
	for _, f := range t.files {
		if f.isTest || f.Name.Name == "main" {
			continue
		}
		for _, decl := range f.Decls {
			for _, name := range undocumentedIn(decl) {
				faults = append(faults, t.fault(name.Pos(), "%s has no comment", name))
			}
		}
	}
	return faults
}

// undocumentedIn returns the exported names in decl without a comment. A comment on a group
// counts for the whole group, a comment behind a value for that value.
func undocumentedIn(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && hasExportedReceiver(d.Recv) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Doc == nil {
			return undocumentedSpecs(d.Specs)
		}
	}
	return nil
}

func undocumentedSpecs(specs []ast.Spec) (names []*ast.Ident) {
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

// hasExportedReceiver reports whether the receiver of a method has an exported type. It is true
// for functions.
func hasExportedReceiver(receiver *ast.FieldList) bool {
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

func deepFolders(t *tree) (faults []string) {
	for _, folder := range t.folders {
		if n := strings.Count(folder, "/") + 1; n > maxDepth {
			faults = append(faults, fmt.Sprintf("%s: %d names deep", folder, n))
		}
	}
	return faults
}
