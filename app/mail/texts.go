package mail

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"

	"go.yaml.in/yaml/v3"

	"github.com/doorward/doorward/internal/texts"
)

// section is the section of the mails in an operator's file of texts. It has the form of
// text/en.yaml, without the direction.
const section = "mail"

// rolesName is the member of a catalogue that has the names of roles, and directionName that of the
// direction of writing.
const (
	rolesName     = "roles"
	directionName = "direction"
)

// builtInNode returns the catalogue of a language that is built in; nil for another language.
func builtInNode(tag string) *yaml.Node {
	source, err := builtInTexts.ReadFile("text/" + strings.ToLower(tag) + ".yaml")
	var document yaml.Node
	if err != nil || yaml.Unmarshal(source, &document) != nil {
		return nil
	}
	return expanded(document.Content[0])
}

// expanded returns a copy of a node in which texts that are written once and used several times are
// written out, so that one of them can be replaced.
func expanded(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	out := *n
	out.Anchor, out.Content = "", make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		out.Content[i] = expanded(child)
	}
	return &out
}

// isList reports whether a part of a mail is a list of sentences.
func isList(part string) bool {
	return slices.Contains([]string{"paragraphs", "details", "advice"}, part)
}

// cataloguesWith returns the built-in catalogues with the operator's texts in their place.
func cataloguesWith(own *texts.File) catalogueSet {
	if own == nil {
		return catalogues()
	}
	all := maps.Clone(catalogues())
	for _, l := range own.Languages {
		var c catalogue
		if err := merged(own, l.Tag).Decode(&c); err != nil {
			panic(fmt.Sprintf("mail: texts that were not checked: %v", err))
		}
		c.isOwn = true
		if l.Direction != "" {
			c.Direction = l.Direction
		}
		all[strings.ToLower(l.Tag)] = c
	}
	return all
}

// merged returns the catalogue of a language, or else the English one, with the operator's texts in
// its place.
func merged(own *texts.File, tag string) *yaml.Node {
	base := builtInNode(tag)
	if base == nil {
		base = builtInNode(fallback)
	}
	if s, found := own.Section(tag, section); found {
		merge(base, s.Node)
	}
	return base
}

// merge puts the members of a mapping into another one, in place of those of the same name. What is a
// mapping in both is merged.
func merge(into, from *yaml.Node) {
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		before := member(into, key.Value)
		switch {
		case before == nil:
			into.Content = append(into.Content, key, value)
		case before.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			merge(before, value)
		default:
			*before = *value
		}
	}
}

// member returns the value of a member of a mapping; nil if there is none.
func member(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// ListTexts returns the section of the mails in a language, with the operator's own texts.
func ListTexts(own *texts.File, tag string) texts.Section {
	node := merged(own, tag)
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == directionName {
			node.Content = slices.Delete(node.Content, i, i+2)
			break
		}
	}
	simplify(node)
	return texts.Section{Name: section, Node: node}
}

// simplify removes comments and styles: comments of the file that is built in say how to add a file.
func simplify(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	if n.Kind == yaml.ScalarNode {
		n.Style = 0
		n.SetString(strings.Join(strings.Fields(n.Value), " "))
	}
	for _, child := range n.Content {
		simplify(child)
	}
}

// CheckTexts returns the section of mails, and what is wrong with the operator's texts in it:
// unknown mails and parts; sentences that can't be read; variables that the English part has and the
// sentences lack, or that the English mail doesn't have; and for a language that isn't built in each
// missing mail and part.
func CheckTexts(own *texts.File) (sectionName string, faults texts.Faults) {
	for _, l := range own.Languages {
		s, found := own.Section(l.Tag, section)
		isWhole := builtInNode(l.Tag) == nil
		switch {
		case found:
			faults = append(faults, checkSection(s.Node, l, isWhole)...)
		case isWhole:
			faults = append(faults, texts.Fault{Line: l.Line, Message: fmt.Sprintf("the language %s is not built in, so it must be whole: the section %s is missing", l.Tag, section)})
		}
	}
	return section, faults
}

func checkSection(n *yaml.Node, l texts.Language, isWhole bool) (faults texts.Faults) {
	english := builtInNode(fallback)
	for _, p := range texts.Pairs(n, &faults) {
		name := p.Key.Value
		want := member(english, name)
		if name == directionName || want == nil {
			faults = append(faults, texts.At(p.Key, "there is no mail %q; \"doorward texts list\" prints all", name))
			continue
		}
		faults = append(faults, checkMail(name, p, want, isWhole)...)
	}
	if missing := missingMembers(n, english); isWhole && len(missing) > 0 {
		faults = append(faults, texts.At(n, "the language %s is not built in, so it must be whole: %s lacks %s", l.Tag, section, strings.Join(missing, ", ")))
	}
	return faults
}

// missingMembers returns the names of the members that a mapping lacks.
func missingMembers(have, want *yaml.Node) (missing []string) {
	for i := 0; i+1 < len(want.Content); i += 2 {
		if name := want.Content[i].Value; name != directionName && member(have, name) == nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// checkMail checks the texts of one mail, or the names of roles.
func checkMail(name string, p texts.Pair, want *yaml.Node, isWhole bool) (faults texts.Faults) {
	known := mailVariables(want)
	for _, part := range texts.Pairs(p.Value, &faults) {
		english := member(want, part.Key.Value)
		if english == nil {
			faults = append(faults, texts.At(part.Key, "%q has no part %q", name, part.Key.Value))
			continue
		}
		have, fault := readPart(name, part)
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		needed, _ := readPart(name, texts.Pair{Key: part.Key, Value: english})
		faults = append(faults, compareVariables(part.Key, variablesOf(have), variablesOf(needed), known)...)
	}
	if missing := missingMembers(p.Value, want); isWhole && len(missing) > 0 {
		faults = append(faults, texts.At(p.Key, "the mail %q lacks %s, and the language is not built in", name, strings.Join(missing, ", ")))
	}
	return faults
}

// mailVariables returns the variables of the English mail.
func mailVariables(mail *yaml.Node) []string {
	known := []string{"Site", "Email"}
	for i := 0; i+1 < len(mail.Content); i += 2 {
		part, _ := readPart("", texts.Pair{Key: mail.Content[i], Value: mail.Content[i+1]})
		known = append(known, variablesOf(part)...)
	}
	return known
}

// readPart reads the sentences of a part, and tries them.
func readPart(mail string, part texts.Pair) (all []*sentence, fault *texts.Fault) {
	nodes := []*yaml.Node{part.Value}
	if mail != rolesName && isList(part.Key.Value) {
		if part.Value.Kind != yaml.SequenceNode {
			return nil, faultAt(part.Key, "write %q as a list of texts", part.Key.Value)
		}
		nodes = part.Value.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || strings.TrimSpace(n.Value) == "" {
			return nil, faultAt(n, "write a text for %q", part.Key.Value)
		}
		one := new(sentence)
		if err := one.UnmarshalYAML(n); err != nil {
			return nil, faultAt(n, "%q: %v", part.Key.Value, errors.Unwrap(err))
		}
		if err := one.try(); err != nil {
			return nil, faultAt(n, "%q: %v", part.Key.Value, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func faultAt(n *yaml.Node, format string, args ...any) *texts.Fault {
	f := texts.At(n, format, args...)
	return &f
}

// functions are those that a sentence can call.
var functions = []string{"strong", "eq", "ne", "and", "or", "not"}

// try returns why a sentence can't be filled in: it has a loop, calls another function, or fails with
// values or without.
func (s *sentence) try() error {
	if s.Tree == nil {
		return nil
	}
	for _, n := range nodesIn(s.Root) {
		switch n := n.(type) {
		case *parse.RangeNode, *parse.TemplateNode, *parse.ChainNode:
			return fmt.Errorf("%s is not supported", n)
		case *parse.IdentifierNode:
			if !slices.Contains(functions, n.Ident) {
				return fmt.Errorf("the function %q is not supported", n.Ident)
			}
		}
	}
	for _, v := range []variables{{}, filled("1"), filled("2")} {
		if _, err := s.fill(v); err != nil {
			return fmt.Errorf("it can't be filled in: %w", err)
		}
	}
	return nil
}

// filled returns variables with a value in each text.
func filled(value string) variables {
	v := variables{ByMail: true, RotateBy: true, Gone: true}
	fields := reflect.ValueOf(&v).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Kind() == reflect.String {
			fields.Field(i).SetString(value)
		}
	}
	return v
}

func compareVariables(at *yaml.Node, have, needed, known []string) (faults texts.Faults) {
	for _, name := range needed {
		if !slices.Contains(have, name) {
			faults = append(faults, texts.At(at, "%q lacks {{.%s}}", at.Value, name))
		}
	}
	for _, name := range have {
		if !slices.Contains(known, name) {
			faults = append(faults, texts.At(at, "%q has {{.%s}}, which this mail doesn't know", at.Value, name))
		}
	}
	return faults
}

// variablesOf returns the variables of sentences, without duplicates.
func variablesOf(all []*sentence) (names []string) {
	for _, s := range all {
		if s.Tree != nil {
			names = append(names, variablesIn(s.Root)...)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// variablesIn returns the variables that a part of a template reads, including those in
// branches that aren't taken.
func variablesIn(n parse.Node) (names []string) {
	for _, one := range nodesIn(n) {
		switch one := one.(type) {
		case *parse.FieldNode:
			names = append(names, strings.Join(one.Ident, "."))
		case *parse.VariableNode:
			names = append(names, strings.TrimPrefix(strings.Join(one.Ident, "."), "$."))
		}
	}
	return names
}

// nodesIn returns a part of a template and all parts of it.
func nodesIn(n parse.Node) (all []parse.Node) {
	visit := func(nodes ...parse.Node) {
		for _, n := range nodes {
			all = append(all, nodesIn(n)...)
		}
	}
	branch := func(b *parse.BranchNode) { visit(b.Pipe, b.List, b.ElseList) }
	if list, isList := n.(*parse.ListNode); isList && list == nil {
		return nil
	}
	all = append(all, n)
	switch n := n.(type) {
	case *parse.ListNode:
		visit(n.Nodes...)
	case *parse.ActionNode:
		visit(n.Pipe)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			visit(c.Args...)
		}
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	}
	return all
}
