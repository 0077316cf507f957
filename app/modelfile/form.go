package modelfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parse returns the only document of the text. Where possible, faults are found before the
// YAML parser sees the text.
func parse(text []byte) (*yaml.Node, *Fault) {
	if fault := checkBytes(text); fault != nil {
		return nil, fault
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	document, err := decode(decoder)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		return nil, &Fault{1, 1, CodeRequired, `The file is empty. It needs at least "actions: {}".`}
	}
	if err != nil {
		return nil, syntaxFault(text, err)
	}
	second, err := decode(decoder)
	switch {
	case errors.Is(err, io.EOF):
		return document.Content[0], nil
	case err != nil:
		return nil, syntaxFault(text, err)
	}
	return nil, &Fault{second.Line, second.Column, CodeSyntax, "A second document begins here. Keep one in a file."}
}

// decode reads one document. The parser panics on some texts that aren't YAML.
func decode(d *yaml.Decoder) (document *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	document = new(yaml.Node)
	return document, d.Decode(document)
}

func checkBytes(text []byte) *Fault {
	if len(text) > MaxSize {
		return &Fault{1, 1, CodeTooLarge, fmt.Sprintf("The file has %d bytes. It may have %d.", len(text), MaxSize)}
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return &Fault{1, 1, CodeSyntax, "The file begins with a byte order mark. Save it as UTF-8 without one."}
	}
	line, column := 1, 1
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			return &Fault{line, column, CodeSyntax, "This is not UTF-8. Save the file as UTF-8."}
		case isInvisible(r) && !bytes.HasPrefix(rest, []byte("\r\n")):
			return &Fault{line, column, CodeSyntax, fmt.Sprintf("Remove the invisible character U+%04X.", r)}
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
		rest = rest[size:]
	}
	return nil
}

// isInvisible reports whether a character is a control character other than tab and newline, a
// byte order mark, or one that only some readers take for the end of a line.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

var lineOfError = regexp.MustCompile(`^line (\d+): `)

// grammarError matches the errors of yaml's parser, which count lines from 0. Those of its scanner
// count from 1; some begin with the same words.
var grammarError = regexp.MustCompile(`^did not find expected (<|key|node content|'-'|',')`)

// syntaxFault turns an error of the parser, which has a line at best, into a fault at the
// line's first character that isn't a space.
func syntaxFault(text []byte, err error) *Fault {
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if found := lineOfError.FindStringSubmatch(message); found != nil {
		line, _ = strconv.Atoi(found[1])
		message = message[len(found[0]):]
		if grammarError.MatchString(message) {
			line++
		}
	}
	lines := bytes.Split(text, []byte("\n"))
	line = min(max(line, 1), len(lines))
	content := lines[line-1]
	indent := len(content) - len(bytes.TrimLeft(content, " "))
	return &Fault{line, indent + 1, CodeSyntax, fmt.Sprintf("This is not valid YAML: %s.", message)}
}

// reader collects the faults of a file.
type reader struct{ faults Faults }

func (r *reader) fault(at *yaml.Node, code, format string, args ...any) {
	r.faults = append(r.faults, Fault{at.Line, at.Column, code, fmt.Sprintf(format, args...)})
}

// checkForm refuses the features of YAML that a model doesn't need, in a node at this depth
// and below it. It reports whether the node can be read.
func (r *reader) checkForm(n *yaml.Node, depth int) bool {
	switch {
	case depth > maxDepth:
		r.fault(n, CodeTooDeep, "The file is nested more than %d levels here.", maxDepth)
		return false
	case n.Kind == yaml.AliasNode:
		r.fault(n, CodeSyntax, "Aliases (*name) are not supported. Repeat what the alias stands for.")
		return false
	case n.Anchor != "":
		r.fault(n, CodeSyntax, "Anchors (&name) are not supported. Remove it.")
		return false
	case n.Style&yaml.TaggedStyle != 0:
		r.fault(n, CodeSyntax, "Tags (!name) are not supported. Remove it.")
		return false
	}
	readable := true
	for _, child := range n.Content {
		readable = r.checkForm(child, depth+1) && readable
	}
	return readable
}

// pair is a member of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs returns the members of a mapping in the order of the text, without those that are
// faults: those whose names aren't text, and repeated ones.
func (r *reader) pairs(n *yaml.Node, what string) (all []pair) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, CodeType, "Write %s as names with values, or {} for none.", what)
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := pair{n.Content[i], n.Content[i+1]}
		switch before, twice := lines[p.key.Value]; {
		case !isText(p.key):
			r.fault(p.key, CodeType, "This name is not text. Write it in quotes.")
		case twice:
			r.fault(p.key, CodeDuplicate, "%s is already in line %d. Keep one of them.", quote(p.key.Value), before)
		default:
			lines[p.key.Value] = p.key.Line
			all = append(all, p)
		}
	}
	return all
}

// fields returns the members of a mapping by name. Unknown names are faults.
func (r *reader) fields(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	for _, p := range r.pairs(n, what) {
		if slices.Contains(known, p.key.Value) {
			found[p.key.Value] = p.value
		} else {
			r.fault(p.key, CodeUnknown, "Unknown name %s. Here it can be %s.", quote(p.key.Value), orList(known))
		}
	}
	return found
}

// text returns the value of a string, and whether it is one.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	if !isText(n) {
		r.fault(n, CodeType, "Write %s as text, in quotes if it looks like a number or true.", what)
		return "", false
	}
	return n.Value, true
}

// flag returns the value of a boolean, or the default where there is none.
func (r *reader) flag(n *yaml.Node, what string, byDefault bool) bool {
	if n == nil {
		return byDefault
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		r.fault(n, CodeType, "Write %s as true or false.", what)
		return byDefault
	}
	return strings.EqualFold(n.Value, "true")
}

func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

// quote returns a name from the file for a message, in quotes and cut to MaxName characters.
func quote(name string) string {
	if r := []rune(name); len(r) > MaxName {
		name = string(r[:MaxName]) + "…"
	}
	return strconv.Quote(name)
}

// orList returns a list such as "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
