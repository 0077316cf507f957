// Package texts reads a file of texts that an operator gives to pages and mails, and writes one.
//
// The file is YAML, with a member for each language:
//
//	de:
//	  hosted:
//	    login.title: Willkommen
//	fr:
//	  name: Français
//	  direction: ltr
//	  shared: {…}
//
// Parse checks the form only, strictly: anchors, tags and repeated names are faults. What keys a
// section has, and what each text must say, is checked by the packages that show them. All faults
// name the line.
package texts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxSize of a file, in bytes.
const MaxSize = 1 << 20

// File is what a file says, by language. It is immutable. The nil File says nothing.
type File struct{ Languages []Language }

// Language has the texts in one language.
type Language struct {
	Tag       string // BCP 47, as written
	Name      string // in the language itself; empty if not given
	Direction string // ltr or rtl; empty if not given
	Line      int
	Sections  []Section
}

// Section is a part of a language, such as the texts of mails.
type Section struct {
	Name string
	Line int
	Node *yaml.Node // a mapping
}

// Text is one text of a section whose members are texts.
type Text struct {
	Key, Text string
	Line      int
}

// Fault is what is wrong in a line of a file, and what to do, without a full stop.
type Fault struct {
	Line    int
	Message string
}

// Faults are the faults of a file.
type Faults []Fault

// Error returns a fault on each line, with the line of the file.
func (f Faults) Error() string {
	var all []string
	for _, one := range f {
		all = append(all, fmt.Sprintf("line %d: %s", one.Line, one.Message))
	}
	return strings.Join(all, "\n")
}

// Sort sorts the faults by line.
func (f Faults) Sort() {
	slices.SortStableFunc(f, func(a, b Fault) int { return a.Line - b.Line })
}

// At returns a fault in the line of a node.
func At(n *yaml.Node, format string, args ...any) Fault {
	return Fault{n.Line, fmt.Sprintf(format, args...)}
}

// Parse reads a file. Errors: Faults.
func Parse(source []byte) (*File, error) {
	if len(source) > MaxSize {
		return nil, Faults{{1, fmt.Sprintf("the file has more than %d bytes", MaxSize)}}
	}
	root, err := decode(source)
	if err != nil {
		return nil, Faults{{lineOf(err), strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	f := &File{}
	if root == nil {
		return f, nil
	}
	faults := checkForm(root)
	if len(faults) > 0 {
		return nil, faults
	}
	for _, p := range Pairs(root, &faults) {
		f.Languages = append(f.Languages, language(p, &faults))
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return f, nil
}

// decode returns the only document; nil for an empty file.
func decode(source []byte) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil { // as the parser does on some texts that aren't YAML
			err = fmt.Errorf("%v", p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(source))
	var document, next yaml.Node
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("a second document begins; keep one in a file")
	}
	return document.Content[0], nil
}

// lineOf returns the line in an error of the parser; 1 if it has none.
func lineOf(err error) (line int) {
	if _, scanned := fmt.Sscanf(err.Error(), "yaml: line %d:", &line); scanned != nil {
		return 1
	}
	return line
}

func checkForm(n *yaml.Node) (faults Faults) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return Faults{At(n, "anchors, aliases and tags are not supported; write the text out")}
	}
	for _, child := range n.Content {
		faults = append(faults, checkForm(child)...)
	}
	return faults
}

func language(p Pair, faults *Faults) Language {
	l := Language{Tag: p.Key.Value, Line: p.Key.Line}
	for _, member := range Pairs(p.Value, faults) {
		switch name := member.Key.Value; {
		case name == "name":
			l.Name = text(member.Value, faults)
		case name == "direction":
			if l.Direction = text(member.Value, faults); l.Direction != "ltr" && l.Direction != "rtl" {
				*faults = append(*faults, At(member.Value, "the direction is ltr or rtl"))
			}
		case member.Value.Kind != yaml.MappingNode:
			*faults = append(*faults, At(member.Value, "write %q as keys with texts", name))
		default:
			l.Sections = append(l.Sections, Section{name, member.Key.Line, member.Value})
		}
	}
	return l
}

// Pair is a member of a mapping.
type Pair struct{ Key, Value *yaml.Node }

// Pairs returns the members of a mapping. It adds a fault for any other node, and for each
// repeated name.
func Pairs(n *yaml.Node, faults *Faults) (all []Pair) {
	if n.Kind != yaml.MappingNode {
		*faults = append(*faults, At(n, "write this as names with values"))
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if before, isRepeated := lines[key.Value]; isRepeated {
			*faults = append(*faults, At(key, "%q is already in line %d; keep one of them", key.Value, before))
			continue
		}
		lines[key.Value] = key.Line
		all = append(all, Pair{key, n.Content[i+1]})
	}
	return all
}

func text(n *yaml.Node, faults *Faults) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		*faults = append(*faults, At(n, "write this as text, in quotes if it looks like a number or true"))
		return ""
	}
	return n.Value
}

// Texts returns the members of a section whose members are texts. It adds faults for others and
// for empty texts.
func (s Section) Texts(faults *Faults) (all []Text) {
	for _, p := range Pairs(s.Node, faults) {
		before := len(*faults)
		one := Text{p.Key.Value, strings.Join(strings.Fields(text(p.Value, faults)), " "), p.Key.Line}
		if len(*faults) > before {
			continue
		}
		if one.Text == "" {
			*faults = append(*faults, At(p.Key, "%q has no text", one.Key))
			continue
		}
		all = append(all, one)
	}
	return all
}

// Section returns the section of a language; false if there is none.
func (f *File) Section(tag, name string) (Section, bool) {
	if f == nil {
		return Section{}, false
	}
	for _, l := range f.Languages {
		if !strings.EqualFold(l.Tag, tag) {
			continue
		}
		for _, s := range l.Sections {
			if s.Name == name {
				return s, true
			}
		}
	}
	return Section{}, false
}

// NewSection returns a section of these texts.
func NewSection(name string, all []Text) Section {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, one := range all {
		node.Content = append(node.Content, scalar(one.Key), scalar(one.Text))
	}
	return Section{Name: name, Node: node}
}

func scalar(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}

// Write writes a language in the form that Parse reads.
func Write(w io.Writer, l Language) error {
	members := &yaml.Node{Kind: yaml.MappingNode}
	for _, member := range [][2]string{{"name", l.Name}, {"direction", l.Direction}} {
		if member[1] != "" {
			members.Content = append(members.Content, scalar(member[0]), scalar(member[1]))
		}
	}
	for _, s := range l.Sections {
		members.Content = append(members.Content, scalar(s.Name), s.Node)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	err := e.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar(l.Tag), members}})
	return errors.Join(err, e.Close())
}
