// Package modelfile reads the model of a platform: its actions, who may perform them,
// the types of the objects that they act on, and the operator's policies.
//
//	file, err := modelfile.Read(text)
//	var faults modelfile.Faults
//	if errors.As(err, &faults) {
//		for _, f := range faults { … } // f.Line, f.Column, f.Code, f.Message
//	}
//
// The text is YAML, read strictly, because a misspelt name in it would grant or refuse
// something without anybody noticing. These are faults:
//
//   - a name that is unknown, or repeated
//   - a value of another type than the one expected, null included
//   - anchors, aliases, merge keys and tags
//   - a second document, a byte order mark, invalid UTF-8, control characters
//   - more than 1 MiB, 500 actions, 5,000 entities, or 32 levels
//
// All faults are reported at once, up to 50, in the order of the text, each with its
// line and column and with what to do. But a text that can't be parsed has only its first
// fault, and one with anchors, aliases, tags or too many levels has only those.
//
// Of policies and entities only the form is checked. Package cedar reads them.
package modelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward"
)

// Limits of a model.
const (
	MaxSize   = 1 << 20 // bytes of the text
	MaxName   = 64      // characters of a name
	MaxAbout  = 200     // characters of a description
	maxDepth  = 32      // levels of mappings and lists
	maxFaults = 50      // reported at once
)

// Roles are the names of the built-in roles, the highest first. A higher role has every action of a
// lower one.
var Roles = func() (names []string) {
	for _, r := range slices.Backward(doorward.Roles) {
		names = append(names, string(r))
	}
	return names
}()

// Reserved are the first words of Doorward's own actions, which a model can't use.
var Reserved = []string{
	"user", "tenant", "session", "settings", "apikey", "webhook", "audit", "policy", "role", "sso", "mfa", "account",
	"invitation", "password", "key", "model", "installation", "request", "access",
}

// Types are the types that an attribute of a resource can have. A set has strings,
// and a user is the id of a person.
var Types = []string{"bool", "long", "string", "set", "user", "datetime"}

// TypeUser is the type of entities that can be subjects of AuthZEN requests. Doorward's own
// users are no entities; their ids begin with ownUserPrefix.
const (
	TypeUser      = "user"
	ownUserPrefix = "usr_"
)

// reservedTypes can't be names of resources or types of entities: Doorward has objects of
// that name.
var reservedTypes = []string{"tenant", "key", "role", "session"}

// reservedWords have a meaning in the language of policies, so they can't be names of
// resources or attributes.
var reservedWords = []string{"true", "false", "if", "then", "else", "in", "is", "like", "has", "__cedar"}

// File is the content of a model.
type File struct {
	Actions   []Action   // in the order of the text
	Resources []Resource // in the order of the text
	// Policies is the text of the operator's policies; empty for none. PolicyPlace
	// returns the place in the file of a place in it.
	Policies string
	// Entities is a JSON array of the operator's entities; nil for none.
	Entities []byte

	policies block
	entities []place
	// isUnreadable: the policies or the entities have a fault.
	isUnreadable bool
}

// place is a place in the file.
type place struct{ line, column int }

// Action is an action of the platform.
type Action struct {
	Name, About  string
	Roles        []string // that grant it, the highest first
	Resource     string   // the type that it acts on; empty for none
	StepUp       bool     // it needs a recent proof of identity
	Keys         bool     // API keys can have it
	Line, Column int      // of its name
}

// Resource is a type of the objects that actions act on.
type Resource struct {
	Name         string
	Attributes   []Attribute // in the order of the text
	Line, Column int         // of its name
}

// Attribute is an attribute of a resource.
type Attribute struct{ Name, Type string }

// PolicyPlace returns the line and column in the file of a line and column in Policies.
// If the policies are not a literal block (|), it is the place where they begin.
func (f *File) PolicyPlace(line, column int) (inFileLine, inFileColumn int) {
	if !f.policies.isLiteral {
		return f.policies.line, f.policies.column
	}
	return f.policies.line + line, f.policies.column + column
}

// EntityPlace returns the line and column in the file of an entity, by its index in
// Entities; 1, 1 if there is no such index.
func (f *File) EntityPlace(i int) (line, column int) {
	if i < 0 || i >= len(f.entities) {
		return 1, 1
	}
	return f.entities[i].line, f.entities[i].column
}

// block is where the text of the policies is in the file. If isLiteral, line and column are
// to be added to a place in the text; else they are the place where it begins.
type block struct {
	line, column int
	isLiteral    bool
}

// Codes of faults.
const (
	CodeSyntax    = "syntax"     // not YAML, or a part of it that is refused
	CodeType      = "type"       // a value of another type
	CodeUnknown   = "unknown"    // a name that has no meaning here
	CodeDuplicate = "duplicate"  // a repeated name
	CodeRequired  = "required"   // something is missing
	CodeInvalid   = "invalid"    // a name or value outside of what is allowed
	CodeReserved  = "reserved"   // a name that Doorward uses
	CodeNotClosed = "not_closed" // a role without all higher ones
	CodeTooLarge  = "too_large"
	CodeTooDeep   = "too_deep"
	CodeTooMany   = "too_many"
)

// Fault is what is wrong at one place of a file.
type Fault struct {
	Line, Column int // from 1, the column in characters
	Code         string
	Message      string // what is wrong and what to do, as sentences
}

// String is the fault on one line, beginning with the place.
func (f Fault) String() string { return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message) }

// Faults are the faults of one file, in the order of the text.
type Faults []Fault

// Error returns a fault on each line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// ordered returns the faults in the order of the text, without duplicates and limited in
// number. Faults behind the end of the text are moved to its end.
func (f Faults) ordered(text []byte) Faults {
	lines := strings.Split(string(text), "\n")
	for i, fault := range f {
		if fault.Line > len(lines) {
			f[i].Line, f[i].Column = len(lines), utf8.RuneCountInString(lines[len(lines)-1])+1
		}
	}
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	f = slices.Compact(f)
	return f[:min(len(f), maxFaults)]
}
